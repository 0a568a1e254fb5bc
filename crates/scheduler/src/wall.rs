//! Wall time and instants: which instants show a wall time in a zone. Needs nothing else.
//!
//! A zone is a rule, not an offset: it is asked anew for every wall time, so a process that was started in winter is right in
//! summer. Most wall times are shown once a day; one in a gap is shown never (clocks go forward), one in a repeated hour twice
//! (clocks go back).

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// The instants at which the clocks of a zone show a wall time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// At this instant alone.
    Once(DateTime<Utc>),
    /// In a gap. This is the first instant after it.
    Never { after: DateTime<Utc> },
    /// In a repeated hour.
    Twice { first: DateTime<Utc>, second: DateTime<Utc> },
}

impl Shown {
    /// The first instant at or after which the wall time is past. Never goes back when the wall time goes forward.
    pub(crate) fn first(self) -> DateTime<Utc> {
        match self {
            Shown::Once(at) | Shown::Never { after: at } | Shown::Twice { first: at, .. } => at,
        }
    }
}

/// When the clocks of `zone` show `local`, which is in whole seconds.
pub(crate) fn shown(zone: Tz, local: NaiveDateTime) -> Shown {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) => Shown::Once(at.with_timezone(&Utc)),
        LocalResult::Ambiguous(first, second) => {
            Shown::Twice { first: first.with_timezone(&Utc), second: second.with_timezone(&Utc) }
        }
        LocalResult::None => Shown::Never { after: after_gap(zone, local) },
    }
}

/// What the clocks of `zone` show at an instant.
pub(crate) fn wall(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    at.with_timezone(&zone).naive_local()
}

/// The first instant that shows a later wall time than `local`, which none shows.
///
/// Searched on the instants, because each of them shows exactly one wall time: nothing here can be missing or double. Wall clocks are
/// at most a day from UTC, and so is the longest gap (Samoa had no 30 December 2011).
fn after_gap(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let (mut before_s, mut after_s) = (-2 * 86_400, 2 * 86_400);
    let shifted = |seconds| local.and_utc() + TimeDelta::seconds(seconds);
    while after_s - before_s > 1 {
        let middle_s = before_s + (after_s - before_s) / 2;
        if wall(zone, shifted(middle_s)) > local { after_s = middle_s } else { before_s = middle_s }
    }
    shifted(after_s)
}
