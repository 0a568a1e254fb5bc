//! Figures of many measurements: integers in microseconds, so that nothing is rounded before it is printed.

use crate::record::Series;
use std::time::Duration;

/// Measurements of one kind, in microseconds, in order of size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample(Vec<u64>);

impl Sample {
    /// Of these, in any order.
    #[must_use]
    pub fn of(mut us: Vec<u64>) -> Sample {
        us.sort_unstable();
        Sample(us)
    }

    /// All of several.
    #[must_use]
    pub fn all<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Sample {
        Sample::of(samples.into_iter().flat_map(|sample| sample.0.iter().copied()).collect())
    }

    /// The one that so many of a thousand are not above: 500 is the median. 0 where there are none.
    #[must_use]
    pub fn at(&self, per_mille: usize) -> u64 {
        let rank = (self.0.len() * per_mille).div_ceil(1_000).max(1);
        self.0.get(rank - 1).or(self.0.last()).copied().unwrap_or(0)
    }

    /// How many are above this.
    #[must_use]
    pub fn above(&self, us: u64) -> usize {
        self.0.len() - self.0.partition_point(|one| *one <= us)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As microseconds.
#[must_use]
pub fn us(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// So many in that time, as a rate per second.
#[must_use]
pub fn per_second(count: u64, span: Duration) -> u64 {
    count.saturating_mul(1_000_000) / us(span).max(1)
}

/// Microseconds as milliseconds, for a table: `1.25`.
#[must_use]
pub fn as_ms(us: u64) -> String {
    format!("{}.{:02}", us / 1_000, us % 1_000 / 10)
}

/// How many times `of` is in `what`, with one digit after the point: `12.5`.
#[must_use]
pub fn times(what: u64, of: u64) -> String {
    let tenths = what.saturating_mul(10) / of.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// To draw.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "only a plot reads them, and it has fewer pixels than a float has digits")]
pub fn series(name: &str, points: impl IntoIterator<Item = (u64, u64)>) -> Series {
    Series { name: name.to_owned(), points: points.into_iter().map(|(x, y)| (x as f64, y as f64)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measurements() {
        let sample = Sample::of((1..=100).rev().collect());
        assert_eq!([sample.at(0), sample.at(500), sample.at(990), sample.at(1_000)], [1, 50, 99, 100]);
        assert_eq!([sample.above(0), sample.above(99), sample.above(100)], [100, 1, 0]);
        assert_eq!(Sample::of(vec![1, 2, 3]).at(500), 2, "the median is one of them");
        assert_eq!((Sample::default().at(500), Sample::of(vec![7]).at(990)), (0, 7));
    }

    #[test]
    fn figures_are_printed_without_floats() {
        assert_eq!((as_ms(1_259), as_ms(9), times(25, 2)), ("1.25".to_owned(), "0.00".to_owned(), "12.5".to_owned()));
        assert_eq!(per_second(800, Duration::from_millis(400)), 2_000);
    }
}
