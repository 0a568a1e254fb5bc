//! Business dates as intervals of time: a cut-off in a zone. Needs `calendar.rs`, `wall.rs`.
//!
//! A calendar day ends at its cut-off, a wall time of its zone. The business date B covers `[end of the business date before, end of
//! B)`, where B ends with the last calendar day that belongs to it. So the intervals abut by construction, whatever a zone does: no
//! instant is without a business date, and none has two. They are written into the rows of runs, so that a later change of zone data
//! or of holidays changes no run of the past.

use crate::calendar::Calendar;
use crate::wall::{shown, wall};
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::Serialize;

/// The wall time at which a calendar day ends, in minutes after its midnight: 1 to 1440, which is the midnight at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff(u16);

impl CutOff {
    /// The midnight at the end of the day.
    pub const MIDNIGHT: CutOff = CutOff(24 * 60);

    /// Reads `HH:MM`, from `00:01` to `24:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<CutOff> {
        let (hours, minutes) = text.split_once(':')?;
        let number = |digits: &str| -> Option<u16> {
            let two = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            if two { digits.parse().ok() } else { None }
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let after_midnight = hours * 60 + minutes;
        (minutes < 60 && (1..=24 * 60).contains(&after_midnight)).then_some(CutOff(after_midnight))
    }
}

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// Half open: an instant that ends one interval begins the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Belongs to it.
    pub from: DateTime<Utc>,
    /// Does not.
    pub until: DateTime<Utc>,
}

/// The newest business date that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// The date.
    pub date: NaiveDate,
    /// While it is the newest: from its own end to the end of the next one.
    pub newest: Interval,
    /// The first calendar day with wall times in that interval.
    pub(crate) first_day: NaiveDate,
    /// The last one.
    pub(crate) last_day: NaiveDate,
}

/// Business dates of one zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusinessDays {
    /// Whose wall clock ends a day.
    pub zone: Tz,
    /// When.
    pub cut_off: CutOff,
    /// Which days are business days.
    pub calendar: Calendar,
}

impl BusinessDays {
    /// What the business date of `day` covers: that of the day itself if it is a business day. Empty where the clocks left out the
    /// whole day.
    #[must_use]
    pub fn covers(&self, day: NaiveDate) -> Interval {
        let business_date = self.calendar.roll(day);
        Interval { from: self.end(self.calendar.previous(business_date)), until: self.end(business_date) }
    }

    /// The business date that covers an instant.
    #[must_use]
    pub fn date_at(&self, at: DateTime<Utc>) -> NaiveDate {
        // what is shown for the first time ends the day before, so the day that is shown is not too late
        let mut day = wall(self.zone, at).date();
        while self.end_of_day(day) <= at {
            day = day + Days::new(1);
        }
        self.calendar.roll(day)
    }

    /// The newest business date that is over at an instant: what a run that starts then is for.
    #[must_use]
    pub fn last_closed(&self, at: DateTime<Utc>) -> Closed {
        let open = self.date_at(at);
        let newest = self.covers(open);
        // a wall time before midnight may be moved behind it by a gap
        let first_day = wall(self.zone, newest.from).date() - Days::new(1);
        // a day ends at the first pass of a repeated hour, so whatever is before its end shows an earlier wall time
        let last_day = (wall(self.zone, newest.until) - TimeDelta::seconds(1)).date();
        Closed { date: self.calendar.previous(open), newest, first_day, last_day }
    }

    /// When a business date ends.
    fn end(&self, business_date: NaiveDate) -> DateTime<Utc> {
        self.end_of_day(self.calendar.last_day_of(business_date))
    }

    /// When a calendar day ends: in a gap right after it, in a repeated hour at the first pass. Never before the day before does.
    fn end_of_day(&self, day: NaiveDate) -> DateTime<Utc> {
        shown(self.zone, day.and_time(NaiveTime::MIN) + TimeDelta::minutes(self.cut_off.0.into())).first()
    }
}
