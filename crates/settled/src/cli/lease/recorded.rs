//! What instances recorded about their leases, from their metrics: an address, or a file of metrics that were saved.

use crate::config::ConfigError;
use crate::exit::Unavailable;
use anyhow::Context;
use prometheus_parse::{Scrape, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long an instance may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Durations in buckets: an upper bound, and how many are at or below it. The last bound is without limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Histogram(BTreeMap<Duration, u64>);

impl Histogram {
    /// How many were recorded.
    pub(super) fn count(&self) -> u64 {
        self.0.values().last().copied().unwrap_or(0)
    }

    /// At most so long were so many of a thousand; `None` where nothing was recorded.
    pub(super) fn at_most(&self, per_mille: u64) -> Option<Duration> {
        let rank = self.count().saturating_mul(per_mille).div_ceil(1000).max(1);
        self.0.iter().find(|(_, below)| **below >= rank).map(|(bound, _)| *bound)
    }

    /// At least so long were all but so many of a thousand; `None` where nothing was recorded.
    pub(super) fn at_least(&self, all_but_per_mille: u64) -> Option<Duration> {
        let rank = self.count().saturating_mul(all_but_per_mille).div_ceil(1000).max(1);
        let mut lower = Duration::ZERO;
        for (bound, below) in &self.0 {
            if *below >= rank {
                return Some(lower);
            }
            lower = *bound;
        }
        None
    }

    #[cfg(test)]
    pub(super) fn of(buckets: &[(Duration, u64)]) -> Histogram {
        Histogram(buckets.iter().copied().collect())
    }

    /// Whether it has these bounds, or none yet.
    fn has_bounds(&self, buckets: &[(Duration, u64)]) -> bool {
        self.0.is_empty() || self.0.keys().eq(buckets.iter().map(|(bound, _)| bound))
    }

    fn add(&mut self, buckets: &[(Duration, u64)]) {
        for (bound, below) in buckets {
            *self.0.entry(*bound).or_default() += below;
        }
    }
}

/// What all of them recorded together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) hold: Histogram,
    pub(super) settle: Histogram,
    pub(super) left: Histogram,
    /// By outcome.
    pub(super) renewals: BTreeMap<String, u64>,
}

impl Recorded {
    /// Adds what one instance recorded.
    pub(super) fn read(&mut self, place: &str) -> anyhow::Result<()> {
        let text = if place.starts_with("http://") { fetched(place)? } else { saved(place)? };
        let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).with_context(|| format!("reading {place}"))?;
        let mut found = false;
        for sample in &scrape.samples {
            match &sample.value {
                Value::Histogram(buckets) => {
                    let buckets: Vec<_> = buckets.iter().map(|at| (bound(at.less_than), whole(at.count))).collect();
                    let Some(histogram) = self.histogram(&sample.metric) else { continue };
                    if !histogram.has_bounds(&buckets) {
                        let why =
                            "has other buckets than the one before: were they recorded with another lease.ttl_ms, or version?";
                        return Err(ConfigError(format!("{place}: {} {why}", sample.metric)).into());
                    }
                    histogram.add(&buckets);
                    found = true;
                }
                Value::Counter(count) if sample.metric == lease::RENEWALS => {
                    let outcome = sample.labels.get("outcome").unwrap_or("unknown").to_owned();
                    *self.renewals.entry(outcome).or_default() += whole(*count);
                    found = true;
                }
                _ => {}
            }
        }
        if found {
            return Ok(());
        }
        Err(ConfigError(format!("{place} has no metrics of leases: is it /metrics of `settled serve`?")).into())
    }

    fn histogram(&mut self, metric: &str) -> Option<&mut Histogram> {
        match metric {
            worker::metric::LEASE_HOLD => Some(&mut self.hold),
            worker::metric::SETTLE_TRANSACTION => Some(&mut self.settle),
            lease::TIME_LEFT => Some(&mut self.left),
            _ => None,
        }
    }
}

fn fetched(url: &str) -> anyhow::Result<String> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
    let answer = agent.get(url).call().and_then(|mut answer| answer.body_mut().read_to_string());
    answer.map_err(|error| {
        let why = format!("{url}: {error}; is an instance serving there? Its /metrics, or a file of them, is what is asked for");
        Unavailable(why).into()
    })
}

fn saved(file: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(file).map_err(|error| {
        let why = format!("{file}: {error}; name an address (http://host:port/metrics) or a file of saved metrics");
        ConfigError(why).into()
    })
}

/// Without limit where it is infinite.
fn bound(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// A count, which the format writes as a float.
fn whole(count: f64) -> u64 {
    format!("{count:.0}").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.add(&buckets.iter().map(|(ms, below)| (Duration::from_millis(*ms), *below)).collect::<Vec<_>>());
        histogram
    }

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let of = histogram(&[(10, 990), (20, 998), (30, 999), (40, 1000)]);
        assert_eq!(of.at_most(500), Some(Duration::from_millis(10)));
        assert_eq!(of.at_most(999), Some(Duration::from_millis(30)));
        assert_eq!(of.at_most(1000), Some(Duration::from_millis(40)));
        assert_eq!(of.at_least(0), Some(Duration::ZERO));
        assert_eq!(of.at_least(991), Some(Duration::from_millis(10)));
        assert_eq!(Histogram::default().at_most(999), None);
        assert_eq!(histogram(&[(10, 0)]).at_least(1), None);
    }

    #[test]
    fn a_few_are_told_by_their_worst() {
        let of = histogram(&[(10, 2), (20, 3)]);
        assert_eq!((of.count(), of.at_most(999), of.at_least(1)), (3, Some(Duration::from_millis(20)), Some(Duration::ZERO)));
    }

    #[test]
    fn instances_are_added_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("metrics");
        let text = "\
# TYPE settled_settle_transaction_seconds histogram
settled_settle_transaction_seconds_bucket{le=\"0.5\"} 3
settled_settle_transaction_seconds_bucket{le=\"+Inf\"} 4
settled_settle_transaction_seconds_sum 2.5
settled_settle_transaction_seconds_count 4
# TYPE settled_lease_renewals_total counter
settled_lease_renewals_total{outcome=\"renewed\"} 7
settled_lease_renewals_total{outcome=\"lost\"} 1
";
        std::fs::write(&file, text).expect("a file");
        let mut recorded = Recorded::default();
        for _ in 0..2 {
            recorded.read(file.to_str().expect("UTF-8")).expect("metrics");
        }
        assert_eq!(recorded.settle.count(), 8);
        assert_eq!(recorded.settle.at_most(700), Some(Duration::from_millis(500)));
        assert_eq!(recorded.settle.at_most(999), Some(Duration::MAX));
        assert_eq!(recorded.renewals, [("lost".to_owned(), 2), ("renewed".to_owned(), 14)].into());
        std::fs::write(&file, text.replace("0.5", "0.7")).expect("a file");
        let told = recorded.read(file.to_str().expect("UTF-8")).expect_err("two TTLs do not add up").to_string();
        assert!(told.contains("other buckets"), "{told}");
        std::fs::write(&file, "up 1\n").expect("a file");
        assert!(recorded.read(file.to_str().expect("UTF-8")).is_err(), "nothing of leases is there");
    }
}
