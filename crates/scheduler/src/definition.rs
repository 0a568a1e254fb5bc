//! A schedule, checked: when its runs occur, and what becomes of those that were missed. Needs `days.rs`, `calendar.rs`.
//!
//! What decides *which* runs occur is hashed. The ledger keeps the hash beside the mark up to which the schedule is planned: were two
//! instances configured differently, the one would plan over the other's head, so a planner that is not of the ledger's opinion
//! plans nothing until somebody decides.

use crate::calendar::Roll;
use crate::days::BusinessDays;
use crate::words::word_of;
use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use croner::Cron;
use sha2::{Digest, Sha256};

/// What becomes of a wall time that does not exist, because clocks go forward over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapRule {
    /// It occurs at the first instant after the gap. Every slot of a dense schedule does: those take `Skip`.
    After,
    /// It does not occur on that day.
    Skip,
}

impl GapRule {
    pub(crate) const WORDS: [(&'static str, GapRule); 2] = [("after", GapRule::After), ("skip", GapRule::Skip)];
}

/// At which of its two instants a wall time occurs that comes twice, because clocks go back over it. It never occurs at both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlapRule {
    /// At the first.
    First,
    /// At the second.
    Second,
}

impl OverlapRule {
    pub(crate) const WORDS: [(&'static str, OverlapRule); 2] = [("first", OverlapRule::First), ("second", OverlapRule::Second)];
}

/// What becomes of occurrences that nobody noticed in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchUp {
    /// Which of them still run.
    pub policy: CatchUpPolicy,
    /// Most that still run under [`CatchUpPolicy::All`], and most that are recorded as missed one by one.
    pub max: u32,
    /// How old one may be that still runs under [`CatchUpPolicy::All`].
    pub window: TimeDelta,
}

/// Which missed occurrences still run. The others are recorded as missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatchUpPolicy {
    /// None of them.
    None,
    /// The newest, unless one that is on time follows it.
    Latest,
    /// The newest ones.
    All,
}

impl CatchUpPolicy {
    pub(crate) const WORDS: [(&'static str, CatchUpPolicy); 3] =
        [("none", CatchUpPolicy::None), ("latest", CatchUpPolicy::Latest), ("all", CatchUpPolicy::All)];
}

/// A schedule. Made by [`crate::RawSchedule::define`], which checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub(crate) name: String,
    pub(crate) cron: Cron,
    pub(crate) gap: GapRule,
    pub(crate) overlap: OverlapRule,
    pub(crate) days: BusinessDays,
    pub(crate) sources: Option<Vec<String>>,
    pub(crate) catch_up: CatchUp,
    pub(crate) on_time: TimeDelta,
}

impl Definition {
    /// 1 to 64 of `a-z`, `0-9`, `_` and `-`; never `manual`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds, minutes, hours, day of month, month, day of week, year: seven fields, however many were written.
    #[must_use]
    pub fn cron(&self) -> String {
        let mut fields: Vec<&str> = self.cron.as_str().split_whitespace().collect();
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        if fields.len() == 6 {
            fields.push("*");
        }
        fields.join(" ")
    }

    /// In whose wall time the expression is.
    #[must_use]
    pub fn zone(&self) -> Tz {
        self.days.zone
    }

    /// Its business dates.
    #[must_use]
    pub fn days(&self) -> &BusinessDays {
        &self.days
    }

    /// The sources whose batches its runs settle, in order; `None` for all.
    #[must_use]
    pub fn sources(&self) -> Option<&[String]> {
        self.sources.as_deref()
    }

    /// What becomes of occurrences that were missed.
    #[must_use]
    pub fn catch_up(&self) -> CatchUp {
        self.catch_up
    }

    /// An occurrence that is noticed within this long is on time.
    #[must_use]
    pub fn on_time(&self) -> TimeDelta {
        self.on_time
    }

    /// SHA-256, in hex, of everything that decides which runs occur and what they cover; not of how late ones are treated. Holidays
    /// count by their dates, wherever their list is kept and whatever it calls them.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.canonical()))
    }

    fn canonical(&self) -> String {
        let BusinessDays { zone, cut_off, calendar } = &self.days;
        let holidays: Vec<String> = calendar.holidays().dates().map(|date: NaiveDate| date.to_string()).collect();
        // a source may contain anything but a line's end, which the check refuses
        let sources = self.sources.as_ref().map_or("all".to_owned(), |sources| format!("only\n{}", sources.join("\n")));
        [
            "settled schedule 1".to_owned(),
            format!("cron {}", self.cron()),
            format!("zone {zone}"),
            format!("gap {}", word_of(self.gap, &GapRule::WORDS)),
            format!("overlap {}", word_of(self.overlap, &OverlapRule::WORDS)),
            format!("cut_off {cut_off}"),
            format!("weekend {}", calendar.weekend_words().join(" ")),
            format!("roll {}", word_of(calendar.roll_rule(), &Roll::WORDS)),
            format!("holidays {}", holidays.join(" ")),
            format!("sources {sources}"),
        ]
        .join("\n")
    }
}
