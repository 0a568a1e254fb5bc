//! Puts the signs of a lane where none covers another, on the narrowest screen; the weightiest first.

use super::axis::{Axis, NARROW_PX};
use super::lanes::Point;
use crate::event::Mark;

/// From the middle of a sign to its edge, in pixels, with air.
const HALF_PX: u64 = 8;
/// A letter of a label, at most.
const LETTER_PX: u64 = 7;
/// A lane is no higher than this many signs.
const ROWS: usize = 3;

/// On which side of its sign a label is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Right,
    Left,
    /// No room.
    None,
}

/// A sign that has its place. One that has none is drawn as a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) point: Point,
    pub(super) row: Option<usize>,
    pub(super) label: Label,
}

/// The word beside a sign; nothing for what is drawn as a tick.
pub(super) fn word(mark: Mark) -> Option<&'static str> {
    match mark {
        Mark::Refused => Some("refused"),
        Mark::Damage => Some("damage"),
        Mark::Kill => Some("killed"),
        Mark::Lost => Some("lost"),
        _ => None,
    }
}

/// What is written beside a sign.
pub(super) fn label(point: &Point) -> String {
    let word = word(point.mark).unwrap_or_default();
    if point.count > 1 { format!("{} {word}", point.count) } else { word.to_owned() }
}

/// How much a sign matters: damage first.
fn weight(mark: Mark) -> u8 {
    match mark {
        Mark::Damage => 0,
        Mark::Refused => 1,
        Mark::Kill => 2,
        _ => 3,
    }
}

/// Gives every sign a row, in the order of their weight; then labels, where they still fit.
pub(super) fn place(mut signs: Vec<Point>, axis: Axis) -> Vec<Placed> {
    signs.sort_by_key(|sign| (weight(sign.mark), sign.at_us));
    let mut placed: Vec<Placed> = Vec::new();
    for point in signs {
        let row = (0..ROWS).find(|row| free(&placed, placed.len(), *row, extent(&point, Label::None, axis), axis));
        placed.push(Placed { point, row, label: Label::None });
    }
    for at in 0..placed.len() {
        let Some(row) = placed[at].row else { continue };
        let fits = |side: &Label| free(&placed, at, row, extent(&placed[at].point, *side, axis), axis);
        placed[at].label = [Label::Right, Label::Left].into_iter().find(fits).unwrap_or(Label::None);
    }
    placed
}

/// Whether nothing but the sign `own` is there in this row.
fn free(placed: &[Placed], own: usize, row: usize, extent_of: Option<(u64, u64)>, axis: Axis) -> bool {
    let Some((from, to)) = extent_of else { return false };
    let others = placed.iter().enumerate().filter(|(at, other)| *at != own && other.row == Some(row));
    others.filter_map(|(_, other)| extent(&other.point, other.label, axis)).all(|other| to <= other.0 || other.1 <= from)
}

/// From where to where it reaches, moved to the right by [`HALF_PX`]; nothing where it would leave the drawing.
fn extent(point: &Point, side: Label, axis: Axis) -> Option<(u64, u64)> {
    let middle = axis.narrow_px(point.at_us) + HALF_PX;
    let text = u64::try_from(label(point).len()).unwrap_or(u64::MAX).saturating_mul(LETTER_PX);
    match side {
        Label::Right => Some((middle - HALF_PX, middle + HALF_PX + text)).filter(|(_, to)| *to <= NARROW_PX + 2 * HALF_PX),
        Label::Left => Some((middle.checked_sub(HALF_PX + text)?, middle + HALF_PX)),
        Label::None => Some((middle - HALF_PX, middle + HALF_PX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXIS: Axis = Axis { end_us: 60_000_000 };

    fn sign(mark: Mark, at_us: u64) -> Point {
        Point { mark, at_us, until_us: at_us, count: 1, text: String::new() }
    }

    #[test]
    fn nothing_covers_anything_however_much_there_is() {
        let marks = [Mark::Kill, Mark::Refused, Mark::Lost, Mark::Damage];
        let signs: Vec<Point> = (0..240).zip(marks.into_iter().cycle()).map(|(at, mark)| sign(mark, at * 250_000)).collect();
        let placed = place(signs, AXIS);
        assert_eq!(placed.len(), 240);
        let mut boxes = Vec::new();
        for one in placed.iter().filter(|one| one.row.is_some()) {
            let (from, to) = extent(&one.point, one.label, AXIS).expect("it was placed");
            let covers = |other: &&(Option<usize>, u64, u64)| other.0 == one.row && from < other.2 && other.1 < to;
            assert_eq!(boxes.iter().find(covers), None, "{one:?}");
            boxes.push((one.row, from, to));
        }
        assert!(boxes.len() > 30, "few enough to read, and not none: {}", boxes.len());
        let damage = |one: &&Placed| one.point.mark == Mark::Damage && one.row.is_some();
        assert!(placed.iter().filter(damage).count() > 10, "the weightiest have their places first");
    }

    #[test]
    fn a_label_at_the_end_is_on_the_left() {
        let placed = place(vec![sign(Mark::Refused, 59_000_000), sign(Mark::Refused, 0)], AXIS);
        assert_eq!((placed[0].label, placed[1].label), (Label::Right, Label::Left));
        assert_eq!((placed[0].row, placed[1].row), (Some(0), Some(0)));
    }
}
