//! Who did what when: lanes of spans and points, derived from what was told and what was written down. Nothing here draws.

use super::leases;
use crate::event::{Event, Mark};
use crate::history::Line;
use crate::record::Record;

/// All lanes of a drill, on one axis that begins at 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    /// Where the axis ends, in microseconds; never 0.
    pub end_us: u64,
    /// In order of first appearance, the director last.
    pub lanes: Vec<Lane>,
}

/// One instance, one server, or the director.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub who: String,
    /// What lasted.
    pub spans: Vec<Span>,
    /// What happened at an instant, in order.
    pub points: Vec<Point>,
}

/// What lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// The process runs.
    Up,
    /// A lease is held, as far as its holder knows.
    Held,
    /// Stopped by a signal.
    Frozen,
    /// Killed, or ended before it was started again.
    Down,
    /// A network, a clock or a server was made worse.
    Fault,
}

/// Something that lasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What.
    pub state: State,
    /// From when, in microseconds.
    pub from_us: u64,
    /// Until when.
    pub to_us: u64,
    /// In words: how it began and how it ended.
    pub text: String,
}

/// Something that happened at an instant, or the same thing several times in short order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// What.
    pub mark: Mark,
    /// When first, in microseconds.
    pub at_us: u64,
    /// When last.
    pub until_us: u64,
    /// How often.
    pub count: usize,
    /// In words, one a line.
    pub text: String,
}

/// Texts of one merged point; more are counted only.
const TEXTS: usize = 5;

impl Lanes {
    /// Those of a drill.
    #[must_use]
    pub fn of(record: &Record) -> Lanes {
        let end_us = end(record);
        let lanes = names(record).into_iter().map(|who| lane(record, who, end_us)).collect();
        Lanes { end_us, lanes }
    }

    /// Whether something of this kind is in one of them.
    #[must_use]
    pub fn have(&self, state: State) -> bool {
        self.lanes.iter().any(|lane| lane.spans.iter().any(|span| span.state == state))
    }

    /// Whether something with this mark is in one of them.
    #[must_use]
    pub fn marked(&self, mark: Mark) -> bool {
        self.lanes.iter().any(|lane| lane.points.iter().any(|point| point.mark == mark))
    }
}

fn end(record: &Record) -> u64 {
    let told = record.timeline.iter().map(|event| event.at_us);
    let written = record.histories.iter().flat_map(|(_, lines)| lines).map(|line| line.at_us);
    told.chain(written).max().unwrap_or(0).max(1)
}

fn names(record: &Record) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in record.timeline.iter().map(|event| event.who.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // a stable sort: the others stay as they were
    names.sort_by_key(|name| *name == "director");
    names
}

fn lane(record: &Record, who: &str, end_us: u64) -> Lane {
    let events: Vec<&Event> = record.timeline.iter().filter(|event| event.who == who).collect();
    let mut lines: Vec<&Line> = record.histories.iter().filter(|(name, _)| name == who).flat_map(|(_, lines)| lines).collect();
    lines.sort_by_key(|line| line.at_us);
    let mut spans = lasting(&events, end_us);
    // what the process wrote down knows each grant; a drill that tells of locks of its own has only its marks
    let written = leases::written(&lines, &events, end_us);
    spans.extend(if written.is_empty() { leases::told(&events, end_us) } else { written });
    let mut points: Vec<Point> = events.iter().filter(|event| is_point(event.mark)).map(|event| point(event)).collect();
    points
        .extend(leases::writes(&lines).filter(|write| !points.iter().any(|point| point.mark == write.mark)).collect::<Vec<_>>());
    points.sort_by_key(|point| point.at_us);
    Lane { who: who.to_owned(), spans, points }
}

fn point(event: &Event) -> Point {
    Point { mark: event.mark, at_us: event.at_us, until_us: event.at_us, count: 1, text: event.text.clone() }
}

/// The others begin or end a span, which has their words.
fn is_point(mark: Mark) -> bool {
    use Mark::{Damage, End, Fault, Freeze, Heal, Holds, Kill, Lost, Note, Refused, Releases, Start, Wake, Write};
    match mark {
        Note | Start | End | Lost | Kill | Write | Refused | Damage => true,
        Holds | Releases | Freeze | Wake | Fault | Heal => false,
    }
}

/// How a state goes on at a mark.
enum Turn {
    Begins,
    Ends,
    Stays,
}

fn lasting(events: &[&Event], end_us: u64) -> Vec<Span> {
    [State::Up, State::Down, State::Frozen, State::Fault].into_iter().flat_map(|state| spans(state, events, end_us)).collect()
}

fn turn(state: State, mark: Mark) -> Turn {
    match (state, mark) {
        (State::Up, Mark::Start) | (State::Frozen, Mark::Freeze) | (State::Fault, Mark::Fault) => Turn::Begins,
        (State::Down, Mark::Kill | Mark::End) => Turn::Begins,
        (State::Up | State::Frozen, Mark::End | Mark::Kill) => Turn::Ends,
        (State::Down, Mark::Start) | (State::Frozen, Mark::Wake) | (State::Fault, Mark::Heal) => Turn::Ends,
        _ => Turn::Stays,
    }
}

fn spans(state: State, events: &[&Event], end_us: u64) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut begun: Option<&Event> = None;
    for event in events {
        match (turn(state, event.mark), begun) {
            (Turn::Begins, None) => begun = Some(event),
            (Turn::Ends, Some(from)) => {
                let text = format!("{} → {}", from.text, event.text);
                spans.push(Span { state, from_us: from.at_us, to_us: event.at_us, text });
                begun = None;
            }
            // killed, and then seen to have ended: once is enough
            (Turn::Begins, Some(_)) | (Turn::Ends, None) | (Turn::Stays, _) => {}
        }
    }
    // who ended by itself and was not started again is not down
    if let Some(from) = begun.filter(|from| !(state == State::Down && from.mark == Mark::End)) {
        spans.push(Span { state, from_us: from.at_us, to_us: end_us, text: format!("{} (to the end)", from.text) });
    }
    spans
}

/// Points of the same kind that lie within `grain_us` of the first are one.
#[must_use]
pub fn merged(points: &[Point], grain_us: u64) -> Vec<Point> {
    let mut merged: Vec<Point> = Vec::new();
    for point in points {
        let near = |last: &&mut Point| last.mark == point.mark && point.at_us.saturating_sub(last.at_us) < grain_us;
        match merged.iter_mut().rev().find(|last| last.mark == point.mark).filter(near) {
            Some(last) => {
                last.count += point.count;
                last.until_us = point.until_us;
                match last.text.lines().count() {
                    lines if lines < TEXTS => last.text = format!("{}\n{}", last.text, point.text),
                    TEXTS => last.text.push_str("\n…"),
                    _ => {}
                }
            }
            None => merged.push(point.clone()),
        }
    }
    merged
}
