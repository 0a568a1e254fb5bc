//! Draws lanes as SVG. Colours are the stylesheet's; every mark is told by a sign and, where there is room, by a word as well.

use super::axis::{Axis, seconds};
use super::lanes::{Lane, Lanes, Point, Span, State, merged};
use super::place::{Label, Placed, label, place, word};
use crate::event::Mark;
use maud::{Markup, html};

/// Heights in pixels.
const AXIS: u64 = 22;
const NAME: u64 = 18;
const BAR: u64 = 14;
const STATE: u64 = 14;
const SIGN: u64 = 18;
const GAP: u64 = 10;
/// How near, in pixels of the narrowest screen, ticks and signs of one kind are drawn as one.
const TICK_PX: u64 = 2;
const SIGN_PX: u64 = 14;

/// Leases that overlap are in rows; more than this share the last.
const LEASE_ROWS: usize = 4;

/// The whole drawing. `about` is its text alternative.
pub(super) fn timeline(lanes: &Lanes, about: &str) -> Markup {
    let axis = Axis { end_us: lanes.end_us };
    let mut y = AXIS;
    let mut drawn = Vec::new();
    for lane in &lanes.lanes {
        let layout = Layout::of(lane, axis);
        let height = layout.height();
        drawn.push(layout.draw(lane, axis, y));
        y += height;
    }
    html! {
        svg.lanes width="100%" height=(y) role="img" aria-label=(about) {
            (grid(axis, y))
            @for lane in drawn { (lane) }
        }
    }
}

fn grid(axis: Axis, height: u64) -> Markup {
    html! {
        @for (at, label) in axis.ticks() {
            @let x = axis.percent(at);
            line.grid x1=(x) x2=(x) y1=(AXIS - 6) y2=(height) {}
            text.tick x=(x) y=(AXIS - 9) text-anchor=(anchor(at, axis)) { (label) }
        }
    }
}

/// A label at an edge stays inside.
fn anchor(at_us: u64, axis: Axis) -> &'static str {
    match axis.narrow_px(at_us) {
        0..=12 => "start",
        px if px + 18 > super::axis::NARROW_PX => "end",
        _ => "middle",
    }
}

/// What is where in one lane.
struct Layout {
    leases: Vec<(usize, Span)>,
    rows: u64,
    states: bool,
    ticks: Vec<Point>,
    signs: Vec<Placed>,
}

impl Layout {
    fn of(lane: &Lane, axis: Axis) -> Layout {
        let leases = rows(lane.spans.iter().filter(|span| span.state == State::Held));
        let rows = leases.iter().map(|(row, _)| row + 1).max().unwrap_or(1);
        let states = lane.spans.iter().any(|span| !matches!(span.state, State::Held | State::Up));
        let (signs, ticks): (Vec<Point>, Vec<Point>) = lane.points.iter().cloned().partition(|point| word(point.mark).is_some());
        let signs = place(merged(&signs, axis.us_of(SIGN_PX)), axis);
        let rows = u64::try_from(rows).unwrap_or(1);
        Layout { leases, rows, states, ticks: merged(&ticks, axis.us_of(TICK_PX)), signs }
    }

    fn states_at(&self) -> u64 {
        NAME + self.rows * BAR
    }

    fn signs_at(&self) -> u64 {
        self.states_at() + if self.states { STATE } else { 0 }
    }

    fn height(&self) -> u64 {
        let rows = self.signs.iter().filter_map(|sign| sign.row).max().map_or(0, |row| row + 1);
        self.signs_at() + u64::try_from(rows).unwrap_or(0) * SIGN + GAP
    }

    fn draw(&self, lane: &Lane, axis: Axis, y: u64) -> Markup {
        let who = &lane.who;
        let foot = y + self.height() - GAP / 2;
        let middle = y + NAME + BAR / 2;
        html! {
            g.lane {
                text.who x="0" y=(y + 13) { (who) }
                @for span in lane.spans.iter().filter(|span| span.state == State::Up) {
                    @let (x, width) = axis.span(span.from_us, span.to_us);
                    g { (title(who, span)) rect.up x=(x) width=(width) y=(middle - 1) height="2" {} }
                }
                @for (row, span) in &self.leases { (lease(who, span, axis, y + NAME + u64::try_from(*row).unwrap_or(0) * BAR)) }
                @for span in lane.spans.iter().filter(|span| !matches!(span.state, State::Held | State::Up)) {
                    (state(who, span, axis, (y + NAME, y + self.states_at())))
                }
                @for point in &self.ticks { (tick(who, point, axis, y + NAME)) }
                @for placed in &self.signs { (sign(who, placed, axis, y + self.signs_at(), y + NAME)) }
                line.rule x1="0" x2="100%" y1=(foot) y2=(foot) {}
            }
        }
    }
}

/// The first row in which each has room.
fn rows<'a>(spans: impl Iterator<Item = &'a Span>) -> Vec<(usize, Span)> {
    let mut ends: Vec<u64> = Vec::new();
    let mut placed = Vec::new();
    for span in spans {
        let row = ends.iter().position(|end| *end <= span.from_us).unwrap_or(ends.len()).min(LEASE_ROWS - 1);
        match ends.get_mut(row) {
            Some(end) => *end = span.to_us.max(*end),
            None => ends.push(span.to_us),
        }
        placed.push((row, span.clone()));
    }
    placed
}

fn lease(who: &str, span: &Span, axis: Axis, y: u64) -> Markup {
    let (x, width) = axis.span(span.from_us, span.to_us);
    html! {
        g { (title(who, span)) rect.held x=(x) width=(width) y=(y + 1) height=(BAR - 2) rx="2" {} }
    }
}

/// A band over the lane, and a bar with its name where that has room.
fn state(who: &str, span: &Span, axis: Axis, (top, bar): (u64, u64)) -> Markup {
    let (class, name) = match span.state {
        State::Frozen => ("frozen", "frozen"),
        State::Down => ("down", "down"),
        State::Fault => ("fault", "fault"),
        State::Up | State::Held => return html! {},
    };
    let (x, width) = axis.span(span.from_us, span.to_us);
    let room = axis.narrow_px(span.to_us).saturating_sub(axis.narrow_px(span.from_us)) >= 44;
    html! {
        g class=(class) data-state=(name) {
            (title(who, span))
            rect.band x=(x) width=(width) y=(top) height=(bar - top) {}
            rect.bar x=(x) width=(width) y=(bar + 1) height=(STATE - 2) rx="2" {}
            @if room { text.state x=(x) dx="4" y=(bar + 11) { (name) } }
        }
    }
}

fn tick(who: &str, point: &Point, axis: Axis, y: u64) -> Markup {
    let x = axis.percent(point.at_us);
    html! {
        g data-mark=(name(point.mark)) {
            (happened(who, point))
            @match point.mark {
                Mark::Write => rect.write x=(x) width="2" y=(y + 2) height=(BAR - 4) {},
                _ => circle.note cx=(x) cy=(y + BAR / 2) r="3" {},
            }
        }
    }
}

/// In its row below the bars; one that has no row is a mark on the bar.
fn sign(who: &str, placed: &Placed, axis: Axis, signs_at: u64, bar_at: u64) -> Markup {
    let point = &placed.point;
    let (x, name) = (axis.percent(point.at_us), name(point.mark));
    html! {
        g class=(name) data-mark=(name) {
            (happened(who, point))
            @match placed.row {
                Some(row) => {
                    @let y = signs_at + u64::try_from(row).unwrap_or(0) * SIGN + SIGN / 2;
                    use href={ "#sign-" (name) } x=(x) y=(y) {}
                    @match placed.label {
                        Label::Right => text.label x=(x) dx="9" y=(y + 4) { (label(point)) },
                        Label::Left => text.label x=(x) dx="-9" y=(y + 4) text-anchor="end" { (label(point)) },
                        Label::None => {},
                    }
                }
                None => rect.mark x=(x) width="2" y=(bar_at) height=(BAR) {},
            }
        }
    }
}

fn title(who: &str, span: &Span) -> Markup {
    html! { title { (seconds(span.from_us)) "–" (seconds(span.to_us)) " s, " (who) ": " (span.text) } }
}

fn happened(who: &str, point: &Point) -> Markup {
    html! {
        title {
            (seconds(point.at_us))
            @if point.count > 1 { "–" (seconds(point.until_us)) }
            " s, " (who)
            @if point.count > 1 { ", " (point.count) " times" }
            ": " (point.text)
        }
    }
}

/// A mark's name in the stylesheet.
pub(super) fn name(mark: Mark) -> &'static str {
    match mark {
        Mark::Note => "note",
        Mark::Start => "start",
        Mark::End => "end",
        Mark::Holds => "holds",
        Mark::Releases => "releases",
        Mark::Lost => "lost",
        Mark::Freeze => "freeze",
        Mark::Wake => "wake",
        Mark::Kill => "kill",
        Mark::Fault => "fault-begins",
        Mark::Heal => "heal",
        Mark::Write => "write",
        Mark::Refused => "refused",
        Mark::Damage => "damage",
    }
}
