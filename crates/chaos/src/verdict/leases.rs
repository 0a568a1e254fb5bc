//! Whether a history of leases can have been one after the other: is the lock service a lock service at all?
//!
//! The specification, for one name: an acquisition returns a token above every one that was returned before; a renewal succeeds for
//! the newest grant only; "held by another" is legal only while somebody's grant may be alive; a lease may expire at any time. The
//! token of a grant is the lock service's own, or the one that its process drew from the ledger, from the renewal on that proved it.
//!
//! What nobody knows the end of stays open for ever. A renewal or a release without an end can be left out: it changes nothing that an
//! expiry could not. An acquisition without an end counts as granted where something succeeded with its nonce later, and else may be
//! what kept others out. So does a place in the line: who waits in one may be the holder before it knows.
//!
//! Only a lock service that keeps its promises by itself is asked: etcd, and the database. Redis is known to break them, see its drills.
//!
//! Linearizability: M. Herlihy and J. Wing (1990).

mod search;
mod spec;
#[cfg(test)]
mod tests;

use super::{Finding, finding};
use crate::history::{Line, Op, Phase};
use domain::ids::HolderId;
use search::{Edge, Failed, search};
use spec::{Call, Came};
use std::collections::BTreeMap;
use thiserror::Error;
use uuid::Uuid;

/// The rule, of an arm whose leases are in etcd or in the database.
pub const LINEARIZABLE: &str = "the lease history is linearizable";

/// The same as a finding of the judge.
#[must_use]
pub fn in_order(lines: &[Line]) -> Finding {
    match linearizable(lines) {
        Ok(Checked { leases, calls, grants, tokens, unknown, most_orders }) => {
            let seen = format!(
                "{leases} leases, {calls} calls, {grants} grants, {tokens} tokens of the ledger, {unknown} calls without an answer, at most {most_orders} orders at once"
            );
            finding(LINEARIZABLE, seen, Vec::new())
        }
        Err(error) => finding(LINEARIZABLE, String::new(), vec![error.to_string()]),
    }
}

/// What was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    /// Leases, by name.
    pub leases: usize,
    /// Calls with an end.
    pub calls: usize,
    /// Grants.
    pub grants: usize,
    /// Tokens that were proven.
    pub tokens: usize,
    /// Calls that nobody knows the end of.
    pub unknown: usize,
    /// The most orders that were possible at once.
    pub most_orders: usize,
}

/// No order of the calls explains what they returned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("lease {lease:?}: no order of its calls, one after the other, explains {call}{also}")]
pub struct NotLinearizable {
    /// Its name.
    pub lease: String,
    /// The call at whose end no order was left.
    pub call: String,
    /// Whether it was looked at to the end.
    also: &'static str,
}

/// A call with its end, if it has one.
#[derive(Debug, Clone, Copy)]
struct Whole<'a> {
    begin: &'a Line,
    end: Option<&'a Line>,
}

/// Checks every lease in the histories of several processes, in any order.
///
/// # Errors
/// The first lease, by name, that no order explains.
pub fn linearizable(lines: &[Line]) -> Result<Checked, NotLinearizable> {
    let mut sorted: Vec<&Line> = lines.iter().collect();
    // an invocation is written before the call and its end after it, so of two at the same time the ends are first
    sorted.sort_by_key(|line| (line.at_us, line.phase == Phase::Invoke));
    let calls = whole(&sorted);
    let tokens = minted(&calls);
    let mut by_lease: BTreeMap<&str, Vec<Whole<'_>>> = BTreeMap::new();
    for call in calls.iter().filter(|call| matches!(call.begin.op, Op::Acquire | Op::StandInLine | Op::Renew | Op::Release)) {
        by_lease.entry(call.begin.of.lease.as_deref().unwrap_or_default()).or_default().push(*call);
    }
    let mut checked = Checked { leases: by_lease.len(), tokens: tokens.len(), ..Checked::default() };
    for (lease, calls) in by_lease {
        one(&calls, &tokens, &mut checked).map_err(|(call, also)| NotLinearizable { lease: lease.to_owned(), call, also })?;
    }
    Ok(checked)
}

/// Calls with their ends, by their beginning.
fn whole<'a>(sorted: &[&'a Line]) -> Vec<Whole<'a>> {
    let mut calls: Vec<Whole<'a>> = Vec::new();
    let mut open: BTreeMap<(Uuid, u64), usize> = BTreeMap::new();
    for line in sorted.iter().copied() {
        let key = (line.holder.0, line.call);
        match line.phase {
            Phase::Invoke => {
                open.insert(key, calls.len());
                calls.push(Whole { begin: line, end: None });
            }
            Phase::Ok | Phase::Fail => {
                if let Some(call) = open.remove(&key) {
                    calls[call].end = Some(line);
                }
            }
            Phase::Unknown => {}
        }
    }
    calls
}

impl Whole<'_> {
    fn succeeded(&self) -> bool {
        self.end.is_some_and(|end| end.phase == Phase::Ok)
    }

    /// Which grant: the end knows it where the beginning does not.
    fn nonce(&self) -> Option<Uuid> {
        self.begin.of.nonce.or_else(|| self.end.and_then(|end| end.of.nonce))
    }

    fn is_of(&self, holder: HolderId, op: Op) -> bool {
        self.begin.holder == holder && self.begin.op == op
    }
}

/// The renewals that prove a token that was drawn from the ledger, by process and call: the first that is asked for after it.
fn minted(calls: &[Whole<'_>]) -> BTreeMap<(Uuid, u64), i64> {
    let mut tokens = BTreeMap::new();
    let mut taken: Vec<Uuid> = Vec::new();
    for mint in calls.iter().filter(|call| call.begin.op == Op::Mint && call.succeeded()) {
        let (Some(end), holder) = (mint.end, mint.begin.holder) else { continue };
        let lease = mint.begin.of.lease.as_ref().or(end.of.lease.as_ref());
        let for_it = |call: &&Whole<'_>| {
            call.is_of(holder, Op::Acquire)
                && call.end.is_some_and(|granted| granted.phase == Phase::Ok && granted.at_us <= mint.begin.at_us)
                && (lease.is_none() || call.begin.of.lease.as_ref() == lease)
                && call.nonce().is_some_and(|nonce| !taken.contains(&nonce))
        };
        let (Some(grant), Some(fence)) = (calls.iter().rfind(for_it), end.of.fence) else { continue };
        let proves = |call: &&Whole<'_>| {
            call.is_of(holder, Op::Renew) && call.nonce() == grant.nonce() && call.begin.at_us >= end.at_us && call.succeeded()
        };
        taken.extend(grant.nonce());
        if let Some(proof) = calls.iter().find(proves) {
            tokens.insert((holder.0, proof.begin.call), fence.token);
        }
    }
    tokens
}

fn one(calls: &[Whole<'_>], tokens: &BTreeMap<(Uuid, u64), i64>, checked: &mut Checked) -> Result<(), (String, &'static str)> {
    let mut grants: BTreeMap<Option<Uuid>, usize> = BTreeMap::new();
    // when something first succeeded with a nonce
    let mut proven: BTreeMap<Option<Uuid>, u64> = BTreeMap::new();
    let shows =
        |call: &&Whole<'_>| matches!(call.begin.op, Op::Renew | Op::Release) && call.succeeded() && call.nonce().is_some();
    for call in calls.iter().filter(shows) {
        let at = call.end.map_or(u64::MAX, |end| end.at_us);
        proven.entry(call.nonce()).and_modify(|first| *first = at.min(*first)).or_insert(at);
    }
    let mut edges: Vec<(u64, u8, Edge)> = places(calls).map(|at| (at, 1, Edge::Orphan)).collect();
    for (number, call) in calls.iter().enumerate().filter(|(_, call)| call.begin.op != Op::StandInLine) {
        let next = grants.len();
        let grant = *grants.entry(call.nonce().or(Some(Uuid::from_u128(number as u128)))).or_insert(next);
        let begin = call.begin.at_us;
        let end = call.end.map(|end| (end.at_us, end.phase == Phase::Ok));
        let inferred = proven.get(&call.nonce()).map(|first| (*first, true));
        let end = if call.begin.op == Op::Acquire { end.or(inferred) } else { end };
        checked.calls += usize::from(call.end.is_some());
        checked.unknown += usize::from(call.end.is_none());
        let Some((end, ok)) = end else {
            edges.extend((call.begin.op == Op::Acquire).then_some((begin, 1, Edge::Orphan)));
            continue;
        };
        checked.grants += usize::from(call.begin.op == Op::Acquire && ok);
        let (asked, came) = in_spec(call, grant, ok, tokens);
        edges.push((begin, 1, Edge::Begins(number, asked, came)));
        // one that took no time that a clock can see still begins first
        edges.push((end, if end == begin { 2 } else { 0 }, Edge::Ends(number)));
    }
    edges.sort_by_key(|(at, rank, _)| (*at, *rank));
    let edges: Vec<Edge> = edges.into_iter().map(|(_, _, edge)| edge).collect();
    let most = search(&edges).map_err(|failed| match failed {
        Failed::At(number) => (in_words(&calls[number]), ""),
        Failed::TooMuch(number) => (in_words(&calls[number]), " (too many calls overlap there to try all orders)"),
    })?;
    checked.most_orders = checked.most_orders.max(most);
    Ok(())
}

/// When somebody first stood in the line. It is asked for again and again, and may be granted once.
fn places(calls: &[Whole<'_>]) -> impl Iterator<Item = u64> {
    let had = |call: &&Whole<'_>| call.begin.op == Op::StandInLine && call.end.is_none_or(|end| end.phase == Phase::Ok);
    let mut first: BTreeMap<Option<Uuid>, u64> = BTreeMap::new();
    for call in calls.iter().filter(had) {
        first.entry(call.nonce()).or_insert(call.begin.at_us);
    }
    first.into_values()
}

fn in_spec(call: &Whole<'_>, grant: usize, ok: bool, tokens: &BTreeMap<(Uuid, u64), i64>) -> (Call, Came) {
    let own = call.end.and_then(|end| end.of.fence).map(|fence| fence.token);
    let proven = tokens.get(&(call.begin.holder.0, call.begin.call)).copied();
    let (asked, token) = match call.begin.op {
        Op::Acquire => (Call::Acquire(grant), own),
        Op::Release => (Call::Release(grant), None),
        _ => (Call::Renew(grant, proven), None),
    };
    (asked, if ok { Came::Ok(token) } else { Came::No })
}

fn in_words(call: &Whole<'_>) -> String {
    let Line { at_us, holder, op, .. } = call.begin;
    let op = match op {
        Op::Acquire => "an acquisition",
        Op::Renew => "a renewal",
        _ => "a release",
    };
    let (came, until) = match call.end {
        Some(end) if end.phase == Phase::Ok => ("succeeded", end.at_us),
        Some(end) => ("was refused", end.at_us),
        None => ("had no answer and succeeded all the same", *at_us),
    };
    let nonce = call.nonce().map(|nonce| format!(" of grant {nonce}")).unwrap_or_default();
    format!("that {op}{nonce} by {holder}, asked for at {at_us} us, {came} by {until} us")
}
