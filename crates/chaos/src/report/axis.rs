//! The axis of time of one timeline. A drawing has no size of its own: it is as wide as its page, and positions are percentages.

/// The narrowest that a timeline is drawn, in CSS pixels: a phone of 320 less its margins. What does not overlap here does nowhere.
pub(super) const NARROW_PX: u64 = 280;
/// As many ticks as have room for their labels on the narrowest.
const TICKS: u64 = 6;

/// From the first event to the last: what servers take to start is nobody's story.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) from_us: u64,
    /// Later than its beginning.
    pub(super) end_us: u64,
}

impl Axis {
    fn length(self) -> u64 {
        self.end_us.saturating_sub(self.from_us).max(1)
    }

    /// Where an instant is, in so many parts of the whole.
    fn part(self, at_us: u64, whole: u64) -> u64 {
        at_us.clamp(self.from_us, self.from_us + self.length()).saturating_sub(self.from_us).saturating_mul(whole) / self.length()
    }

    /// Where an instant is.
    pub(super) fn percent(self, at_us: u64) -> String {
        hundredths(self.part(at_us, 10_000))
    }

    /// Where a span begins and how wide it is. What is shorter than can be seen is drawn longer, inside the drawing.
    pub(super) fn span(self, from_us: u64, to_us: u64) -> (String, String) {
        const SEEN: u64 = 40;
        let from = self.part(from_us, 10_000);
        let width = self.part(to_us, 10_000).saturating_sub(from).max(SEEN);
        (hundredths(from.min(10_000 - width)), hundredths(width))
    }

    /// Where an instant is on the narrowest.
    pub(super) fn narrow_px(self, at_us: u64) -> u64 {
        self.part(at_us, NARROW_PX)
    }

    /// How much time so many pixels of the narrowest are.
    pub(super) fn us_of(self, px: u64) -> u64 {
        self.length().saturating_mul(px) / NARROW_PX
    }

    /// Instants with a label: multiples of 1, 2 or 5 in some power of ten.
    pub(super) fn ticks(self) -> Vec<(u64, String)> {
        let powers = (0..14).map(|power| 10_u64.pow(power));
        let mut steps = powers.flat_map(|power| [power, 2 * power, 5 * power]);
        let step = steps.find(|step| self.length() / step < TICKS).unwrap_or(self.length());
        let ticks = (self.from_us.div_ceil(step)..=self.end_us / step).map(|at| at * step);
        ticks.map(|at| (at, format!("{} s", short(at)))).collect()
    }
}

/// Hundredths of a percent as a length.
fn hundredths(hundredths: u64) -> String {
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// Seconds with as many digits as there are.
fn short(us: u64) -> String {
    let digits = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Seconds to a thousandth.
pub(super) fn seconds(us: u64) -> String {
    format!("{}.{:03}", us / 1_000_000, us / 1_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_round() {
        let between = |from_us, end_us| Axis { from_us, end_us }.ticks().into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        let labels = |end_us| between(0, end_us);
        assert_eq!(labels(4_300_000), ["0 s", "1 s", "2 s", "3 s", "4 s"]);
        assert_eq!(labels(61_000_000), ["0 s", "20 s", "40 s", "60 s"]);
        assert_eq!(labels(900), ["0 s", "0.0002 s", "0.0004 s", "0.0006 s", "0.0008 s"]);
        assert_eq!(between(9_600_000, 12_100_000), ["10 s", "10.5 s", "11 s", "11.5 s", "12 s"], "of the whole timeline");
        assert_eq!(labels(1).len(), 2, "an axis without length has one all the same");
    }

    #[test]
    fn positions_are_within_the_drawing() {
        let axis = Axis { from_us: 1_000_000, end_us: 4_000_000 };
        assert_eq!((axis.percent(2_000_000).as_str(), axis.percent(9_000_000).as_str()), ("33.33%", "100.00%"));
        let span = |from, to| axis.span(from, to);
        assert_eq!(span(2_000_000, 2_000_001), ("33.33%".to_owned(), "0.40%".to_owned()), "wide enough to be seen");
        assert_eq!(span(4_000_000, 4_000_000), ("99.60%".to_owned(), "0.40%".to_owned()), "at the end too");
        assert_eq!(span(0, 4_000_000), ("0.00%".to_owned(), "100.00%".to_owned()));
        assert_eq!(axis.narrow_px(u64::MAX), NARROW_PX);
    }
}
