//! The judge: what the processes wrote down, merged with the final books.
//!
//! Each rule is a function of its own and says what it saw, whether or not it holds. A history can accuse only of what is certain: a
//! call has its effect at some instant between invocation and answer, so one call is before another only when it was answered before
//! the other was invoked. (M. Herlihy and J. Wing, "Linearizability", 1990; Jepsen's histories.)

pub mod calls;
pub mod fences;
pub mod final_books;
pub mod leases;
pub mod once;
pub mod progress;
#[cfg(test)]
mod told;

use crate::DrillError;
use crate::history::{Line, Op, Phase};
use crate::recorded::FENCED;
use calls::{Call, calls};
use final_books::FinalBooks;
use ledger::Ledger;
use std::time::Duration;

/// What one rule saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What must be so.
    pub rule: &'static str,
    /// What was seen: how much was looked at, or the first things that contradict the rule.
    pub seen: String,
    /// Whether it is so.
    pub ok: bool,
}

/// Everything the judge has to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// One of every rule.
    pub findings: Vec<Finding>,
    /// How many writes were refused because of their fence: what a drill about a pause must have some of.
    pub refused: u64,
    /// How many settlements were not answered, because their process was killed or the line was.
    pub unanswered: u64,
    /// How many writes were asked for after a newer holder of their unit had registered: times that two believed they held it.
    pub overlaps: u64,
}

/// When a drill had healed everything, and how soon work must have gone on after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Healed {
    /// By [`crate::event::since_boot_us`].
    pub at_us: u64,
    /// Some TTLs.
    pub limit: Duration,
}

/// What a lock service promises: whether its history is judged as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockService {
    /// One grant at a time, whatever becomes of a server: etcd, and the database.
    KeepsOrder,
    /// Not that; or the history is of two services, one after the other. The ledger's invariants hold all the same.
    Forgets,
}

impl Judgement {
    /// Of one rule: [`fences::SUPERSEDED`].
    #[must_use]
    pub fn of(&self, rule: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.rule == rule)
    }

    /// Whether a rule was looked at and found broken, as a control arm wants it.
    #[must_use]
    pub fn breaks(&self, rule: &str) -> bool {
        self.of(rule).is_some_and(|finding| !finding.ok)
    }
}

/// Judges the histories of all processes of a ledger, which must have ended, by its books.
///
/// # Errors
/// The books cannot be read.
pub async fn judge(
    history: &[Line],
    books: &dyn Ledger,
    healed: Option<Healed>,
    lock_service: LockService,
) -> Result<Judgement, DrillError> {
    let books = FinalBooks::read(books).await?;
    let mut judgement = judge_by(&calls(history), &books, healed);
    if lock_service == LockService::KeepsOrder {
        judgement.findings.push(leases::in_order(history));
    }
    Ok(judgement)
}

fn judge_by(calls: &[Call], books: &FinalBooks, healed: Option<Healed>) -> Judgement {
    let mut findings = vec![
        final_books::verified(books),
        once::settled_once(calls),
        once::as_the_books_say(calls, books),
        once::unknown_resolved(calls, books),
        fences::never_decrease(calls),
        fences::superseded(calls),
        fences::losers_left_nothing(calls, books),
    ];
    findings.extend(healed.map(|healed| progress::soon_after(calls, healed)));
    let refused = |call: &&Call| call.op != Op::Step && call.phase == Phase::Fail && call.answered.word == FENCED;
    Judgement {
        findings,
        refused: calls.iter().filter(refused).count() as u64,
        unanswered: once::unanswered(calls) as u64,
        overlaps: fences::late(calls) as u64,
    }
}

/// How many contradictions a finding shows.
const SHOWN: usize = 3;

/// A rule that looked at so many things, and what contradicts it.
fn finding(rule: &'static str, looked_at: String, against: Vec<String>) -> Finding {
    let ok = against.is_empty();
    let more = against.len().saturating_sub(SHOWN);
    let mut seen = if ok { looked_at } else { against[..against.len().min(SHOWN)].join("; ") };
    if more > 0 {
        seen.push_str(&format!("; and {more} more"));
    }
    Finding { rule, seen, ok }
}

#[cfg(test)]
mod tests {
    use super::told::{B, Told};
    use super::*;
    use domain::batch::BatchState;

    #[test]
    fn a_history_in_which_nothing_went_wrong_breaks_no_rule() {
        let mut told = Told::default();
        told.registers(B, 1, 7).settles(B, 7, &[1]);
        let books = told.books(&[(1, BatchState::Settled, B, 7)]);
        let judgement = judge_by(&calls(&told.lines), &books, Some(Healed { at_us: 0, limit: Duration::from_secs(1) }));
        assert!(judgement.findings.iter().all(|finding| finding.ok), "{judgement:#?}");
        assert_eq!((judgement.findings.len(), judgement.refused), (8, 0));
    }

    #[test]
    fn refused_writes_are_counted() {
        let mut told = Told::default();
        told.refused(B, 7, &[1]).refused(B, 7, &[2]);
        assert_eq!(judge_by(&calls(&told.lines), &told.books(&[]), None).refused, 2);
    }

    #[test]
    fn a_finding_shows_the_first_contradictions_and_how_many_there_are() {
        let against = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        assert_eq!(finding("rule", String::new(), against).seen, "a; b; c; and 2 more");
    }
}
