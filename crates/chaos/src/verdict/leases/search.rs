//! Whether calls that overlap can have been one after the other: all orders at once, forgotten as soon as they come to the same.
//!
//! G. Lowe, "Testing for linearizability" (2017), after J. Wing and C. Gong (1993): at each end of a call, the orders that are still
//! possible are those in which the call has taken effect. Stateright's tester says the same and tries one order after the other,
//! which takes exponential time in the length of a history; this one takes time in its length and in what overlaps. A test holds
//! the two against each other.

use super::spec::{Call, Came, Lease};
use stateright::semantics::SequentialSpec;
use std::collections::{BTreeMap, BTreeSet};

/// A beginning or an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// Of the call of this number.
    Begins(usize, Call, Came),
    /// Its end.
    Ends(usize),
    /// Somebody asked for the lease, and nobody knows what came of it.
    Orphan,
}

/// One possible past: what the lease is, and which of the open calls have taken effect.
type Past = (Lease, BTreeSet<usize>);

/// More pasts than this at once are not looked at.
const MOST_PASTS: usize = 200_000;

/// Why there is no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// When this call ended no order was left.
    At(usize),
    /// Too much overlaps there.
    TooMuch(usize),
}

/// Whether there is an order; the most pasts that were possible at once.
pub(super) fn search(edges: &[Edge]) -> Result<usize, Failed> {
    let mut open: BTreeMap<usize, (Call, Came)> = BTreeMap::new();
    let mut pasts = BTreeSet::from([Past::default()]);
    let mut most = 1;
    for edge in edges {
        match *edge {
            Edge::Begins(number, call, came) => {
                open.insert(number, (call, came));
            }
            Edge::Orphan => {
                let orphaned = |(mut lease, done): Past| {
                    lease.is_valid_step(&Call::Orphan, &Came::Ok(None));
                    (lease, done)
                };
                pasts = pasts.into_iter().map(orphaned).collect();
            }
            Edge::Ends(number) => {
                pasts = with(number, pasts, &open).ok_or(Failed::TooMuch(number))?;
                open.remove(&number);
                most = most.max(pasts.len());
                if pasts.is_empty() {
                    return Err(Failed::At(number));
                }
            }
        }
    }
    Ok(most)
}

/// The pasts in which this call has taken effect, after any of the others that are open.
fn with(number: usize, pasts: BTreeSet<Past>, open: &BTreeMap<usize, (Call, Came)>) -> Option<BTreeSet<Past>> {
    let mut seen = pasts.clone();
    let mut next: Vec<Past> = pasts.into_iter().collect();
    let mut ended = BTreeSet::new();
    while let Some((lease, done)) = next.pop() {
        if done.contains(&number) {
            let mut done = done;
            done.remove(&number);
            ended.insert((lease, done));
            continue;
        }
        for (other, (call, came)) in open.iter().filter(|(other, _)| !done.contains(other)) {
            let mut lease = lease;
            if lease.is_valid_step(call, came) {
                let mut done = done.clone();
                done.insert(*other);
                if seen.insert((lease, done.clone())) {
                    next.push((lease, done));
                }
            }
        }
        if seen.len() > MOST_PASTS {
            return None;
        }
    }
    Some(ended)
}
