//! The axis of time of one timeline. A drawing has no size of its own: it is as wide as its page, and positions are percentages.

/// The narrowest that a timeline is drawn, in CSS pixels: a phone of 320 less its margins. What does not overlap here does nowhere.
pub(super) const NARROW_PX: u64 = 280;
/// As many ticks as have room for their labels on the narrowest.
const TICKS: u64 = 6;

/// From 0 to the end.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) end_us: u64,
}

impl Axis {
    /// Where an instant is.
    pub(super) fn percent(self, at_us: u64) -> String {
        hundredths(at_us.min(self.end_us).saturating_mul(10_000) / self.end_us)
    }

    /// Where a span begins and how wide it is. What is shorter than can be seen is drawn longer, inside the drawing.
    pub(super) fn span(self, from_us: u64, to_us: u64) -> (String, String) {
        const SEEN: u64 = 40;
        let (from, to) = (from_us.min(self.end_us), to_us.min(self.end_us));
        let width = (to.saturating_sub(from).saturating_mul(10_000) / self.end_us).max(SEEN);
        let at = (from.saturating_mul(10_000) / self.end_us).min(10_000 - width);
        (hundredths(at), hundredths(width))
    }

    /// Where an instant is on the narrowest.
    pub(super) fn narrow_px(self, at_us: u64) -> u64 {
        at_us.min(self.end_us).saturating_mul(NARROW_PX) / self.end_us
    }

    /// How much time so many pixels of the narrowest are.
    pub(super) fn us_of(self, px: u64) -> u64 {
        self.end_us.saturating_mul(px) / NARROW_PX
    }

    /// Instants with a label: multiples of 1, 2 or 5 in some power of ten.
    pub(super) fn ticks(self) -> Vec<(u64, String)> {
        let powers = (0..14).map(|power| 10_u64.pow(power));
        let mut steps = powers.flat_map(|power| [power, 2 * power, 5 * power]);
        let step = steps.find(|step| self.end_us / step < TICKS).unwrap_or(self.end_us);
        (0..=self.end_us / step).map(|at| (at * step, format!("{} s", short(at * step)))).collect()
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
        let labels = |end_us| Axis { end_us }.ticks().into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(4_300_000), ["0 s", "1 s", "2 s", "3 s", "4 s"]);
        assert_eq!(labels(61_000_000), ["0 s", "20 s", "40 s", "60 s"]);
        assert_eq!(labels(900), ["0 s", "0.0002 s", "0.0004 s", "0.0006 s", "0.0008 s"]);
        assert_eq!(labels(1).len(), 2, "an axis without length has one all the same");
    }

    #[test]
    fn positions_are_within_the_drawing() {
        let axis = Axis { end_us: 3_000_000 };
        assert_eq!((axis.percent(1_000_000).as_str(), axis.percent(9_000_000).as_str()), ("33.33%", "100.00%"));
        let span = |from, to| axis.span(from, to);
        assert_eq!(span(1_000_000, 1_000_001), ("33.33%".to_owned(), "0.40%".to_owned()), "wide enough to be seen");
        assert_eq!(span(3_000_000, 3_000_000), ("99.60%".to_owned(), "0.40%".to_owned()), "at the end too");
        assert_eq!(span(0, 3_000_000), ("0.00%".to_owned(), "100.00%".to_owned()));
        assert_eq!(axis.narrow_px(u64::MAX), NARROW_PX);
    }
}
