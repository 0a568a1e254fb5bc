//! Spans of leases and points of writes: from what a process wrote down about its calls, or from what was told.

use super::lanes::{Point, Span, State};
use crate::event::{Event, Mark};
use crate::history::{Line, Of, Op, Phase};
use std::collections::HashMap;
use uuid::Uuid;

/// A grant that has not ended yet.
struct Open {
    key: Key,
    from_us: u64,
    text: String,
}

/// What tells grants of one lane apart.
#[derive(PartialEq, Eq, Clone)]
enum Key {
    Grant(Uuid),
    Lease(String),
    Unit(i32),
    Process(Uuid),
}

/// From grant to release, loss, or the end of the process; as far as the holder knew.
#[must_use]
pub(super) fn written(lines: &[&Line], events: &[&Event], end_us: u64) -> Vec<Span> {
    let (mut open, mut spans, mut asked): (Vec<Open>, _, HashMap<(Uuid, u64), &Of>) = (Vec::new(), Vec::new(), HashMap::new());
    for line in lines {
        let call = (line.holder.0, line.call);
        if line.phase == Phase::Invoke {
            asked.insert(call, &line.of);
            continue;
        }
        let (key, words) = (key(line, asked.get(&call).copied()), words(line, asked.get(&call).copied()));
        match (line.op, line.phase) {
            (Op::Acquire, Phase::Ok) => open.push(Open { key, from_us: line.at_us, text: format!("lease held{words}") }),
            (Op::Register, Phase::Ok) => register(&mut open, &key, &words),
            (Op::Release, Phase::Ok) => close(&mut open, &mut spans, &key, line.at_us, "released"),
            (Op::Release, Phase::Fail | Phase::Unknown) => {
                close(&mut open, &mut spans, &key, line.at_us, "release not confirmed")
            }
            (Op::Renew, Phase::Fail) => close(&mut open, &mut spans, &key, line.at_us, "found lost"),
            _ => {}
        }
    }
    for grant in open {
        let over = |event: &&&Event| event.at_us >= grant.from_us && matches!(event.mark, Mark::End | Mark::Kill);
        let ended = events.iter().find(over);
        let (to_us, how) = ended.map_or((end_us, "to the end"), |event| (event.at_us, "its process ended"));
        spans.push(Span { state: State::Held, from_us: grant.from_us, to_us, text: format!("{} → {how}", grant.text) });
    }
    spans.sort_by_key(|span| (span.from_us, span.to_us));
    spans
}

/// The most exact name that the end of a call, or its beginning, has for the grant.
fn key(line: &Line, asked: Option<&Of>) -> Key {
    let both = [Some(&line.of), asked];
    let first = |of: fn(&Of) -> Option<Key>| both.iter().flatten().find_map(|known| of(known));
    first(|of| of.nonce.map(Key::Grant))
        .or_else(|| first(|of| of.lease.clone().map(Key::Lease)))
        .or_else(|| first(|of| of.unit.map(Key::Unit)))
        .unwrap_or(Key::Process(line.holder.0))
}

fn words(line: &Line, asked: Option<&Of>) -> String {
    let both = [Some(&line.of), asked];
    let lease = both.iter().flatten().find_map(|of| of.lease.as_ref()).map(|lease| format!(", {lease}"));
    let unit = both.iter().flatten().find_map(|of| of.unit).map(|unit| format!(", unit {unit}"));
    let fence = both.iter().flatten().find_map(|of| of.fence).map(|fence| format!(", fence {fence}"));
    [lease, unit, fence].into_iter().flatten().collect()
}

/// The ledger knows the newest grant of this unit now. A registration without the grant's name is of the last one.
fn register(open: &mut [Open], key: &Key, words: &str) {
    let at = open.iter().rposition(|grant| grant.key == *key).or(open.len().checked_sub(1));
    if let Some(grant) = at.and_then(|at| open.get_mut(at)) {
        grant.text.push_str(&format!("; registered{words}"));
    }
}

fn close(open: &mut Vec<Open>, spans: &mut Vec<Span>, key: &Key, at_us: u64, how: &str) {
    if let Some(at) = open.iter().rposition(|grant| grant.key == *key) {
        let grant = open.remove(at);
        let text = format!("{} → {how}", grant.text);
        spans.push(Span { state: State::Held, from_us: grant.from_us, to_us: at_us, text });
    }
}

/// From one mark to the next. Who holds anew has let go of what was held before: an instance holds one unit at a time.
#[must_use]
pub(super) fn told(events: &[&Event], end_us: u64) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut begun: Option<&Event> = None;
    for event in events {
        let ends = matches!(event.mark, Mark::Holds | Mark::Releases | Mark::Lost | Mark::End | Mark::Kill);
        if let Some(from) = begun.filter(|_| ends) {
            let text = format!("{} → {}", from.text, event.text);
            spans.push(Span { state: State::Held, from_us: from.at_us, to_us: event.at_us, text });
        }
        match event.mark {
            Mark::Holds => begun = Some(event),
            _ if ends => begun = None,
            _ => {}
        }
    }
    if let Some(from) = begun {
        spans.push(Span { state: State::Held, from_us: from.at_us, to_us: end_us, text: format!("{} (to the end)", from.text) });
    }
    spans
}

/// Settle calls that were answered: those that went in, and those that were refused.
pub(super) fn writes<'a>(lines: &'a [&Line]) -> impl Iterator<Item = Point> + 'a {
    lines.iter().filter(|line| line.op == Op::Settle).filter_map(|line| {
        let (mark, what) = match line.phase {
            Phase::Ok if !line.of.batches.is_empty() => (Mark::Write, "settled"),
            Phase::Fail => (Mark::Refused, "refused"),
            Phase::Ok | Phase::Invoke | Phase::Unknown => return None,
        };
        let batches: String = line.of.batches.iter().map(|batch| format!(", batch {batch}")).collect();
        let text = format!("{what}{batches}{}", words(line, None));
        Some(Point { mark, at_us: line.at_us, until_us: line.at_us, count: 1, text })
    })
}
