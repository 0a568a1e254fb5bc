//! The probe that does the faults.

use super::freeze::{self, Freezer};
use super::{Probability, Rule, Way, What, When};
use crate::history::{History, Of, Op};
use domain::ids::BatchId;
use domain::step::{Probe, Step};
use metrics::counter;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::io::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// Faults that chaos mode did to this process, by `what` and `step`. A rule that has done nothing yet is there with 0, so that whoever
/// has none has no chaos mode. The count of a kill dies with its process.
pub const FAULTS: &str = "settled_chaos_faults_total";

/// Rules that the kernel would not carry out on this process.
#[derive(Debug, thiserror::Error)]
#[error(
    "chaos mode cannot {word} this process: it has the process id 1, and an init process gets neither SIGSTOP nor SIGKILL from its own PID namespace (pid_namespaces(7)); start it under an init: `docker run --init`, `init: true` in a compose file, `shareProcessNamespace: true` in a pod, or tini as the image's entry point"
)]
pub struct NotHere {
    word: &'static str,
}

pub(super) fn can_be_done(rules: &[Rule], own: Pid) -> Result<(), NotHere> {
    let signal = rules.iter().find(|rule| rule.what.is_a_signal());
    match signal {
        Some(rule) if own.is_init() => Err(NotHere { word: rule.what.word() }),
        _ => Ok(()),
    }
}

pub(super) fn count_from_zero(rule: &Rule) {
    counter!(FAULTS, "what" => rule.what.word(), "step" => rule.step.to_string()).increment(0);
}

pub(super) struct Faults {
    armed: Vec<Armed>,
    way: Way,
    history: Option<Arc<History>>,
    freezer: Freezer,
}

/// A rule, and how often its time has come.
struct Armed {
    rule: Rule,
    so_far: Mutex<SoFar>,
}

struct SoFar {
    reached: u64,
    chance: StdRng,
}

impl Armed {
    /// Rules have chances of their own: one more or less of them changes nothing for those before it.
    fn new(rule: Rule, seed: u64, number: u64) -> Armed {
        let seed = seed ^ number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Armed { rule, so_far: Mutex::new(SoFar { reached: 0, chance: StdRng::seed_from_u64(seed) }) }
    }

    /// Counts this time; the number of it when something is to be done.
    fn is_due(&self) -> Option<u64> {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.reached += 1;
        let due = match self.rule.when {
            When::Nth(nth) => so_far.reached == nth,
            // one draw each time, whatever comes of it: the n-th is the n-th time's
            When::Chance(probability) => so_far.chance.random_range(0..Probability::ONE) < probability.per_million(),
        };
        due.then_some(so_far.reached)
    }
}

impl Faults {
    pub(super) fn new(rules: Vec<Rule>, seed: u64, way: Way, history: Option<Arc<History>>) -> Faults {
        let armed = rules.into_iter().zip(0..).map(|(rule, number)| Armed::new(rule, seed, number)).collect();
        Faults { armed, way, history, freezer: Freezer::of_this_program() }
    }

    /// Told before it is done: afterwards there may be nobody to tell it.
    fn tell(&self, rule: &Rule, time: u64) {
        let (step, what) = (rule.step, rule.what);
        if what.is_a_signal() {
            tracing::warn!(%step, %what, time, "signalling this process, as asked");
        } else {
            tracing::warn!(%step, %what, time, "hurting this process, as asked");
        }
        counter!(FAULTS, "what" => what.word(), "step" => step.to_string()).increment(1);
        if let Some(history) = &self.history {
            history.note(Op::Fault, Of { word: format!("{what} at {step}"), ..Of::default() });
        }
    }

    fn carry_out(&self, what: What) -> Result<(), Error> {
        match what {
            What::Freeze(span) => {
                self.freezer.freeze(span)?;
                tracing::warn!("awake again");
            }
            What::Stop => freeze::stop()?,
            What::Kill => kill_process(getpid(), Signal::KILL)?,
            What::Delay(span) => std::thread::sleep(span),
            What::Cut(span) => self.way.cut(span),
        }
        Ok(())
    }
}

impl Probe for Faults {
    fn at(&self, step: Step) {
        self.at_with(step, &[]);
    }

    fn at_with(&self, step: Step, batches: &[BatchId]) {
        for armed in self.armed.iter().filter(|armed| armed.rule.is_about(step, batches)) {
            let Some(time) = armed.is_due() else { continue };
            self.tell(&armed.rule, time);
            if let Err(error) = self.carry_out(armed.rule.what) {
                tracing::error!(%step, what = %armed.rule.what, %error, "nothing was done: chaos mode could not");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;
    use domain::ids::HolderId;
    use std::time::{Duration, Instant};
    use uuid::Uuid;

    fn rule(what: What, when: When) -> Rule {
        Rule { step: Step::Settled, what, when, batch: None }
    }

    fn chance(text: &str) -> When {
        When::Chance(text.parse().expect("a probability"))
    }

    /// Which of the first thousand times are due.
    fn due(seed: u64, number: u64, probability: &str) -> Vec<u64> {
        let armed = Armed::new(rule(What::Kill, chance(probability)), seed, number);
        (0..1_000).filter_map(|_| armed.is_due()).collect()
    }

    #[test]
    fn the_same_seed_does_the_same_at_the_same_counts() {
        let first = due(7, 0, "0.05");
        assert_eq!(first, due(7, 0, "0.05"));
        assert!((20..=90).contains(&first.len()), "about fifty of a thousand: {}", first.len());
        assert_ne!(first, due(8, 0, "0.05"), "another seed");
        assert_ne!(first, due(7, 1, "0.05"), "another rule");
        assert_eq!(due(7, 0, "1").len(), 1_000);
    }

    #[test]
    fn the_nth_time_comes_once() {
        let armed = Armed::new(rule(What::Kill, When::Nth(3)), 0, 0);
        assert_eq!((0..10).filter_map(|_| armed.is_due()).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn only_its_own_step_and_batch_count() {
        let about: Rule = "Settled=kill@2#7".parse().expect("a rule");
        assert!(about.is_about(Step::Settled, &[BatchId(6), BatchId(7)]));
        assert!(!about.is_about(Step::Settled, &[BatchId(6)]) && !about.is_about(Step::Settled, &[]));
        assert!(!about.is_about(Step::InsideSettleTx, &[BatchId(7)]));
    }

    #[test]
    fn a_delay_is_done_and_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("history");
        let history = Arc::new(History::begin(&file, HolderId(Uuid::new_v4())).expect("a history"));
        let rules = vec![rule(What::Delay(Duration::from_millis(30)), When::Nth(2))];
        let faults = Faults::new(rules, 0, Way::whole(), Some(history));
        let begun = Instant::now();
        faults.at(Step::Settled);
        faults.at(Step::BeforeRelease);
        assert_eq!(read(&file).expect("a history").len(), 0);
        faults.at_with(Step::Settled, &[BatchId(1)]);
        assert!(begun.elapsed() >= Duration::from_millis(30));
        let lines = read(&file).expect("a history");
        assert_eq!((lines.len(), lines[0].op, lines[0].of.word.as_str()), (1, Op::Fault, "delay for 30 ms at Settled"));
    }

    #[test]
    fn an_init_process_is_told_to_have_one() {
        let freeze = [rule(What::Delay(Duration::ZERO), When::Nth(1)), rule(What::Freeze(Duration::ZERO), When::Nth(1))];
        let told = can_be_done(&freeze, Pid::INIT).expect_err("it would do nothing").to_string();
        assert!(told.contains("cannot freeze") && told.contains("--init") && told.contains("shareProcessNamespace"), "{told}");
        assert!(can_be_done(&freeze, getpid()).is_ok());
        assert!(can_be_done(&freeze[..1], Pid::INIT).is_ok(), "what needs no signal");
    }
}
