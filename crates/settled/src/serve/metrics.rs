//! Metrics: what each is called and means, and the recorder that renders them for Prometheus.
//!
//! Counters and histograms are of this process, and so are three gauges. The others are the ledger's, read when somebody asks: every
//! instance that reaches it shows the same, so take their maximum, never their sum.

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::time::Duration;
use worker::metric as m;

pub(crate) const RUNS_PLANNED: &str = "settled_runs_planned_total";
pub(crate) const RUNS_MISSED: &str = "settled_runs_missed_total";
pub(crate) const LEDGER_UP: &str = "settled_ledger_up";
pub(crate) const DRAINING: &str = "settled_draining";
pub(crate) const BATCHES: &str = "settled_batches";
pub(crate) const UNITS_DUE: &str = "settled_units_due";
pub(crate) const LEDGER_FENCE_REJECTIONS: &str = "settled_ledger_fence_rejections";
pub(crate) const RUN_LATENESS: &str = "settled_run_lateness_seconds";
pub(crate) const LAST_RUN: &str = "settled_schedule_last_run_timestamp_seconds";
pub(crate) const NEXT_RUN: &str = "settled_schedule_next_run_timestamp_seconds";
pub(crate) const MISSED_RUNS: &str = "settled_schedule_missed_runs";
pub(crate) const SCHEDULE_REFUSED: &str = "settled_schedule_refused";
const BUILD_INFO: &str = "settled_build_info";

const COUNTERS: [(&str, &str); 10] = [
    (m::BATCHES_SETTLED, "Batches this process settled"),
    (m::ITEMS_SETTLED, "Items of the batches this process settled"),
    (m::BATCHES_QUARANTINED, "Batches this process gave up"),
    (
        m::FENCE_REJECTIONS,
        "Writes of this process that the ledger refused because a newer holder had registered, by step; should be 0",
    ),
    (m::LEASES_ACQUIRED, "Leases this process was granted and proved"),
    (m::LEASES_LOST, "Leases this process lost before it was done"),
    (lease::RENEWALS, "Renewals of leases by outcome; unknown ones were not answered and are tried again until the deadline"),
    (RUNS_PLANNED, "Runs this process planned, by schedule"),
    (chaos::mode::FAULTS, "Faults that chaos mode did to this process, by what and step; there only where it is on"),
    (RUNS_MISSED, "Occurrences this process recorded as missed, by schedule"),
];

const OWN_GAUGES: [(&str, &str); 3] =
    [(LEDGER_UP, "1 when the ledger answers"), (DRAINING, "1 while this process drains"), (BUILD_INFO, "The version that runs")];

const LEDGER_GAUGES: [(&str, &str); 8] = [
    (BATCHES, "Batches in the ledger that have not come to their end, by state"),
    (UNITS_DUE, "Units of the ledger that have batches due"),
    (LEDGER_FENCE_REJECTIONS, "Refused writes that the ledger keeps, of every instance ever"),
    (RUN_LATENESS, "For how long the oldest run of a schedule whose end nobody has seen is past its time; 0 when there is none"),
    (LAST_RUN, "When the newest run of a schedule was due"),
    (NEXT_RUN, "When the first run of a schedule is due that nobody has planned yet; in the past only if nobody plans"),
    (MISSED_RUNS, "Occurrences of a schedule that were missed, and have not been run since"),
    (
        SCHEDULE_REFUSED,
        "1 while this process cannot plan a schedule: it is defined otherwise than in the ledger, or the ledger does not take it",
    ),
];

const HISTOGRAMS: [(&str, &str, &[f64]); 2] = [
    (
        m::LEASE_HOLD,
        "Seconds from the grant of a lease to its release",
        &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0],
    ),
    (
        m::SETTLE_TRANSACTION,
        "Seconds of one settle transaction, the critical section",
        &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 15.0, 30.0, 60.0],
    ),
];

const TIME_LEFT: &str =
    "Seconds left until the local deadline of a lease when its renewal was answered; 0 for one that was lost by its deadline";

/// Installs the recorder of this process, whose leases last for `ttl`.
pub(crate) fn install(ttl: Duration) -> anyhow::Result<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new();
    for (name, _, buckets) in HISTOGRAMS {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)?;
    }
    // what counts is the part of a TTL that was left: buckets of a twentieth of it, and one for those that had nothing left
    let parts: Vec<f64> = (0..=20).map(|part| (ttl * part / 20).as_secs_f64()).collect();
    builder = builder.set_buckets_for_metric(Matcher::Full(lease::TIME_LEFT.to_owned()), &parts)?;
    let handle = builder.install_recorder()?;
    COUNTERS.iter().for_each(|(name, text)| describe_counter!(*name, *text));
    OWN_GAUGES.iter().for_each(|(name, text)| describe_gauge!(*name, *text));
    HISTOGRAMS.iter().for_each(|(name, text, _)| describe_histogram!(*name, *text));
    describe_histogram!(lease::TIME_LEFT, TIME_LEFT);
    zero();
    Ok(handle)
}

/// Describes the ledger's gauges to the recorder in force.
pub(super) fn describe_gauges() {
    LEDGER_GAUGES.iter().for_each(|(name, text)| describe_gauge!(*name, *text));
}

/// What was never counted is not rendered, and an alert on it would be blind until the first time, which may be the only one.
fn zero() {
    for name in [m::BATCHES_SETTLED, m::ITEMS_SETTLED, m::BATCHES_QUARANTINED, m::LEASES_ACQUIRED, m::LEASES_LOST] {
        counter!(name).increment(0);
    }
    for step in ["register", "claim", "settle", "job"] {
        counter!(m::FENCE_REJECTIONS, "step" => step).increment(0);
    }
    for outcome in ["renewed", "lost", "unknown"] {
        counter!(lease::RENEWALS, "outcome" => outcome).increment(0);
    }
    gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1);
}
