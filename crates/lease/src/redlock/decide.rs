//! What the answers of several servers come to. Pure: no server, no clock. Needs `redis/keys.rs`.
//!
//! `None` is a server that did not answer: what became of the request there is unknown, so it counts for nothing where something is to
//! be true, and against everything where something is to be false.

use crate::redis::keys::{Stored, Taken};
use crate::{LeaseName, Release, Renew};
use std::collections::BTreeMap;
use std::time::Duration;

/// More than half: any two of them share a server.
pub(super) fn quorum(servers: usize) -> usize {
    servers / 2 + 1
}

/// By how much the servers' clocks may run ahead of ours over one TTL.
pub(super) fn drift(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

/// What a round of questions came to. All but the first leaves something to give back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// By a majority, and long enough.
    Granted,
    /// By a majority, when it was over already.
    TooLate,
    /// Another has a majority, as far as the silent ones allow to say.
    Held(Stored),
    /// Nobody has one.
    Split,
    /// Too few servers answered.
    Unknown,
}

/// `elapsed` since before the first question was sent.
pub(super) fn acquired(answers: &[Option<Taken>], ttl: Duration, elapsed: Duration) -> Verdict {
    let (needed, answered) = (quorum(answers.len()), answers.iter().flatten().count());
    let ours = answers.iter().flatten().filter(|taken| **taken == Taken::Ours).count();
    if ours >= needed {
        return if elapsed + drift(ttl) < ttl { Verdict::Granted } else { Verdict::TooLate };
    }
    if answered < needed {
        return Verdict::Unknown;
    }
    let silent = answers.len() - answered;
    let strongest = holders(answers).into_iter().max_by_key(|(_, (count, _))| *count);
    match strongest {
        Some((value, (count, left_ms))) if count + silent >= needed => {
            Verdict::Held(Stored { value: Some(value.to_vec()), left_ms })
        }
        _ => Verdict::Split,
    }
}

/// Which values are there, on how many servers, and how long at the longest.
fn holders(answers: &[Option<Taken>]) -> BTreeMap<&[u8], (usize, Option<i64>)> {
    let mut holders = BTreeMap::new();
    for taken in answers.iter().flatten() {
        if let Taken::Theirs(Stored { value: Some(value), left_ms }) = taken {
            let (count, longest) = holders.entry(value.as_slice()).or_insert((0, None));
            *count += 1;
            *longest = (*longest).max(*left_ms);
        }
    }
    holders
}

/// Whether each server had our value, unexpired, and extended it. Nothing: not known.
pub(super) fn renewed(answers: &[Option<bool>]) -> Option<Renew> {
    majority(answers).map(|had_it| if had_it { Renew::Renewed } else { Renew::Lost })
}

/// Whether each server had our value, unexpired, and deleted it. Nothing: not known.
pub(super) fn released(answers: &[Option<bool>]) -> Option<Release> {
    majority(answers).map(|had_it| if had_it { Release::Released } else { Release::NotHeld })
}

/// Yes when a majority says yes, no when no majority can, whatever the silent ones would say.
fn majority(answers: &[Option<bool>]) -> Option<bool> {
    let count = |wanted| answers.iter().filter(|answer| **answer == wanted).count();
    let (yes, silent, needed) = (count(Some(true)), count(None), quorum(answers.len()));
    if yes >= needed {
        return Some(true);
    }
    (yes + silent < needed).then_some(false)
}

/// What is held by a majority, as far as the silent ones allow to say. Nothing: too few answered.
pub(super) fn listed(answers: &[Option<Vec<(LeaseName, Stored)>>]) -> Option<BTreeMap<LeaseName, Stored>> {
    let (needed, answered) = (quorum(answers.len()), answers.iter().flatten().count());
    if answered < needed {
        return None;
    }
    let enough = needed - (answers.len() - answered);
    let mut found: BTreeMap<(LeaseName, Vec<u8>), Vec<Option<i64>>> = BTreeMap::new();
    for (name, stored) in answers.iter().flatten().flatten() {
        if let Some(value) = &stored.value {
            found.entry((name.clone(), value.clone())).or_default().push(stored.left_ms);
        }
    }
    let held = found.into_iter().filter(|(_, left)| left.len() >= enough);
    Some(
        held.map(|((name, value), mut left)| {
            // it is over when so few are left that they are no majority
            left.sort_by(|one, other| other.cmp(one));
            (name, Stored { value: Some(value), left_ms: left[enough - 1] })
        })
        .collect(),
    )
}

#[cfg(test)]
mod tests;
