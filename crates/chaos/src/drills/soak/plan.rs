//! What is done to whom, and when: all of it follows from the seed, so that a soak can be told again.

use rand::RngExt;
use rand::rngs::StdRng;
use std::time::Duration;

/// One thing that the director does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Freeze(usize),
    Wake(usize),
    Kill(usize),
    /// SIGTERM: it drains.
    Stop(usize),
    /// After a kill or a stop.
    Start(usize),
    Hurt(Line, Harm),
    Heal(Line),
    /// PostgreSQL, killed and started again.
    RestartDatabase,
    /// New batches.
    TakeIn,
}

/// What is behind a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    LockService,
    Database,
}

/// What a network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    Silent,
    Reset,
    HalfOpen,
    Slow,
}

impl Turn {
    /// Whether it does harm.
    pub(super) fn is_fault(self) -> bool {
        !matches!(self, Turn::Wake(_) | Turn::Start(_) | Turn::Heal(_) | Turn::TakeIn)
    }
}

/// The turns with the milliseconds from the beginning, in order. Nobody is hit twice at once, and what was begun is also ended.
pub(super) fn plan(chance: &mut StdRng, instances: usize, ttl: Duration, soak: Duration) -> Vec<(u64, Turn)> {
    let (ttl, end) = (millis(ttl), millis(soak));
    let mut turns: Vec<(u64, Turn)> = (0..end).step_by(3_000).map(|at| (at, Turn::TakeIn)).collect();
    let mut busy = vec![0_u64; instances];
    let mut lines = [0_u64; 2];
    let mut at = 1_000;
    while at < end {
        let who = chance.random_range(0..instances);
        let line = chance.random_range(0..2);
        let spell = chance.random_range(ttl / 4..ttl * 2);
        let chosen = chance.random_range(0..100);
        if chosen < 65 && busy[who] <= at {
            let (fault, end) = match chosen {
                0..35 => (Turn::Freeze(who), Turn::Wake(who)),
                35..52 => (Turn::Kill(who), Turn::Start(who)),
                _ => (Turn::Stop(who), Turn::Start(who)),
            };
            turns.extend([(at, fault), (at + spell, end)]);
            busy[who] = at + spell + ttl / 2;
        } else if (65..97).contains(&chosen) && lines[line] <= at {
            let hurt = [Line::LockService, Line::Database][line];
            let harm = [Harm::Silent, Harm::Reset, Harm::HalfOpen, Harm::Slow][chance.random_range(0..4)];
            turns.extend([(at, Turn::Hurt(hurt, harm)), (at + spell, Turn::Heal(hurt))]);
            lines[line] = at + spell + ttl / 2;
        } else if chosen >= 97 {
            turns.push((at, Turn::RestartDatabase));
        }
        at += chance.random_range(300..1_200);
    }
    turns.sort_by_key(|(at, _)| *at);
    turns
}

fn millis(of: Duration) -> u64 {
    u64::try_from(of.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn of(seed: u64, seconds: u64) -> Vec<(u64, Turn)> {
        plan(&mut StdRng::seed_from_u64(seed), 4, Duration::from_secs(2), Duration::from_secs(seconds))
    }

    #[test]
    fn a_plan_follows_from_its_seed() {
        assert_eq!(of(7, 60), of(7, 60));
        assert_ne!(of(7, 60), of(8, 60));
    }

    #[test]
    fn five_minutes_have_a_hundred_faults_of_every_kind() {
        for seed in 0..50 {
            let faults = of(seed, 300).into_iter().filter(|(_, turn)| turn.is_fault()).count();
            assert!(faults >= 100, "seed {seed}: {faults}");
        }
    }

    #[test]
    fn who_is_frozen_or_dead_is_woken_or_started_before_anything_else() {
        let mut down = [false; 4];
        for (_, turn) in of(7, 300) {
            match turn {
                Turn::Freeze(who) | Turn::Kill(who) | Turn::Stop(who) => assert!(!std::mem::replace(&mut down[who], true)),
                Turn::Wake(who) | Turn::Start(who) => assert!(std::mem::replace(&mut down[who], false)),
                Turn::Hurt(..) | Turn::Heal(_) | Turn::RestartDatabase | Turn::TakeIn => {}
            }
        }
        assert_eq!(down, [false; 4]);
    }
}
