//! Business days, on dates alone. Needs `holidays.rs`.
//!
//! Every calendar day belongs to one business date: its own, or the one that the [`Roll`] rule gives to a day that is none. The rule
//! never gives an earlier date to a later day, so the days of one business date are neighbours.

use crate::holidays::Holidays;
use chrono::{Datelike, NaiveDate, Weekday};

/// What becomes of a day that is no business day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roll {
    /// It belongs to the next business day.
    Following,
    /// It belongs to the business day before it.
    Preceding,
    /// To the next one, unless that is in another month: then to the one before.
    ModifiedFollowing,
}

impl Roll {
    pub(crate) const WORDS: [(&'static str, Roll); 3] =
        [("following", Roll::Following), ("preceding", Roll::Preceding), ("modified-following", Roll::ModifiedFollowing)];
}

/// Which days are business days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// By days from Monday.
    weekend: [bool; 7],
    holidays: Holidays,
    roll: Roll,
}

impl Calendar {
    /// A calendar; `None` where no day of the week is left for business.
    #[must_use]
    pub fn new(weekend: &[Weekday], holidays: Holidays, roll: Roll) -> Option<Calendar> {
        let days = [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];
        let weekend = days.map(|day| weekend.contains(&day));
        weekend.contains(&false).then_some(Calendar { weekend, holidays, roll })
    }

    /// Every day is a business day.
    #[must_use]
    pub fn every_day() -> Calendar {
        Calendar { weekend: [false; 7], holidays: Holidays::default(), roll: Roll::Following }
    }

    /// Whether business is done on `date`.
    #[must_use]
    pub fn is_business_day(&self, date: NaiveDate) -> bool {
        !self.is_weekend(date) && self.holidays.name(date).is_none()
    }

    /// Whether `date` is on the weekend.
    #[must_use]
    pub fn is_weekend(&self, date: NaiveDate) -> bool {
        usize::try_from(date.weekday().num_days_from_monday()).is_ok_and(|day| self.weekend[day])
    }

    /// The days that are holidays.
    #[must_use]
    pub fn holidays(&self) -> &Holidays {
        &self.holidays
    }

    /// What becomes of the other days.
    #[must_use]
    pub fn roll_rule(&self) -> Roll {
        self.roll
    }

    /// The business date that a calendar day belongs to.
    #[must_use]
    pub fn roll(&self, day: NaiveDate) -> NaiveDate {
        if self.is_business_day(day) {
            return day;
        }
        let (before, after) = (self.previous(day), self.next(day));
        match self.roll {
            Roll::Following => after,
            Roll::Preceding => before,
            Roll::ModifiedFollowing if (after.year(), after.month()) == (day.year(), day.month()) => after,
            Roll::ModifiedFollowing => before,
        }
    }

    /// The first business day after `date`. There is one: a week has a business day, and the list of holidays ends.
    #[must_use]
    pub fn next(&self, date: NaiveDate) -> NaiveDate {
        let days = date.iter_days().skip(1);
        days.take_while(|day| *day < NaiveDate::MAX).find(|day| self.is_business_day(*day)).unwrap_or(NaiveDate::MAX)
    }

    /// The last business day before `date`.
    #[must_use]
    pub fn previous(&self, date: NaiveDate) -> NaiveDate {
        let days = std::iter::successors(date.pred_opt(), NaiveDate::pred_opt);
        days.into_iter().find(|day| self.is_business_day(*day)).unwrap_or(NaiveDate::MIN)
    }

    /// The last calendar day that belongs to a business date.
    pub(crate) fn last_day_of(&self, date: NaiveDate) -> NaiveDate {
        let own = date.iter_days().take_while(|day| self.roll(*day) == date);
        own.last().unwrap_or(date)
    }

    /// Its weekend, from Monday on, as the configuration writes it.
    pub(crate) fn weekend_words(&self) -> Vec<&'static str> {
        WEEKDAYS.iter().zip(self.weekend).filter(|(_, weekend)| *weekend).map(|((word, _), _)| *word).collect()
    }
}

/// The words of the configuration, from Monday on.
pub(crate) const WEEKDAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Mon),
    ("tue", Weekday::Tue),
    ("wed", Weekday::Wed),
    ("thu", Weekday::Thu),
    ("fri", Weekday::Fri),
    ("sat", Weekday::Sat),
    ("sun", Weekday::Sun),
];
