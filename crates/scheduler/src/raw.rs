//! A schedule as it is written in the configuration, and its check. Needs `definition.rs`, `holidays.rs`.
//!
//! Words are read as text and checked here, so that what is wrong is told by its key, and everything that is wrong at once.

use crate::calendar::{Calendar, Roll, WEEKDAYS};
use crate::days::{BusinessDays, CutOff};
use crate::definition::{CatchUp, CatchUpPolicy, Definition, GapRule, OverlapRule};
use crate::holidays::Holidays;
use crate::words::value_of;
use chrono::{NaiveDate, NaiveTime, TimeDelta};
use chrono_tz::Tz;
use croner::Cron;
use domain::run::RunKey;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// The section `[schedule.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawSchedule {
    /// Minute, hour, day of month, month, day of week; a field more in front is the second, one more behind the year. As in Vixie
    /// cron a day matches when either of the two day fields does, if both are restricted; `+` before the day of week asks for both.
    pub cron: String,
    /// IANA name of the zone whose wall clock the expression, the cut-off and the dates are about.
    pub zone: String,
    /// `after` or `skip`.
    pub gap: String,
    /// `first` or `second`.
    pub overlap: String,
    /// `HH:MM`, when a calendar day ends.
    pub cut_off: String,
    /// `mon` to `sun`: days of the week that are no business days.
    pub weekend: Vec<String>,
    /// File with one holiday a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holidays: Option<PathBuf>,
    /// `following`, `preceding` or `modified-following`.
    pub roll: String,
    /// Sources whose batches its runs settle; all if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<String>>,
    /// `none`, `latest` or `all`.
    pub catch_up: String,
    /// Most occurrences that are caught up, and most that are recorded as missed one by one.
    pub catch_up_max: u32,
    /// How old an occurrence may be that is caught up by `all`.
    pub catch_up_window_h: u32,
    /// How late an occurrence may be noticed and be on time.
    pub on_time_s: u32,
}

impl Default for RawSchedule {
    fn default() -> Self {
        RawSchedule {
            cron: String::new(),
            zone: String::new(),
            gap: "after".to_owned(),
            overlap: "first".to_owned(),
            cut_off: "24:00".to_owned(),
            weekend: Vec::new(),
            holidays: None,
            roll: "following".to_owned(),
            sources: None,
            catch_up: "latest".to_owned(),
            catch_up_max: 10,
            catch_up_window_h: 72,
            on_time_s: 300,
        }
    }
}

/// Everything that is wrong with a schedule: a sentence for each key.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{}", .0.join("; "))]
pub struct DefinitionError(pub Vec<String>);

impl RawSchedule {
    /// Checks the schedule `name` and reads its list of holidays; a relative path begins at `folder`.
    ///
    /// # Errors
    /// A sentence for every key that is wrong.
    pub fn define(&self, name: &str, folder: &Path) -> Result<Definition, DefinitionError> {
        let holidays = self.holidays.as_ref().map_or(Ok(Holidays::default()), |file| Holidays::read(&folder.join(file)));
        self.with_holidays(name, holidays.map_err(|error| format!("holidays: {error}")))
    }

    /// The same without reading anything.
    fn with_holidays(&self, name: &str, holidays: Result<Holidays, String>) -> Result<Definition, DefinitionError> {
        let mut wrong = Wrong { name, sentences: Vec::new() };
        wrong.sentences.extend(checked_name(name).err());
        let cron = wrong.keep(cron(&self.cron));
        let gap = wrong.keep(value_of("gap", &self.gap, &GapRule::WORDS));
        let overlap = wrong.keep(value_of("overlap", &self.overlap, &OverlapRule::WORDS));
        let zone = wrong.keep(zone(&self.zone));
        let cut_off = wrong.keep(cut_off(&self.cut_off));
        let calendar = wrong.keep(self.calendar(holidays));
        let sources = wrong.keep(self.sources.as_deref().map(sources).transpose());
        let catch_up = wrong.keep(self.catch_up());
        let on_time = wrong.keep(limited("on_time_s", self.on_time_s, 1, 3_600));
        let parts = (cron, gap, overlap, zone, cut_off, calendar, sources, catch_up, on_time);
        let (
            Some(cron),
            Some(gap),
            Some(overlap),
            Some(zone),
            Some(cut_off),
            Some(calendar),
            Some(sources),
            Some(catch_up),
            Some(on_time),
        ) = parts
        else {
            return Err(DefinitionError(wrong.sentences));
        };
        if !wrong.sentences.is_empty() {
            return Err(DefinitionError(wrong.sentences));
        }
        let (days, on_time) = (BusinessDays { zone, cut_off, calendar }, TimeDelta::seconds(on_time.into()));
        Ok(Definition { name: name.to_owned(), cron, gap, overlap, days, sources, catch_up, on_time })
    }

    fn calendar(&self, holidays: Result<Holidays, String>) -> Result<Calendar, String> {
        let weekend = self.weekend.iter().map(|day| value_of("weekend", day, &WEEKDAYS)).collect::<Result<Vec<_>, _>>()?;
        let roll = value_of("roll", &self.roll, &Roll::WORDS)?;
        let none_left = || "weekend has all seven days; leave one for business".to_owned();
        Calendar::new(&weekend, holidays?, roll).ok_or_else(none_left)
    }

    fn catch_up(&self) -> Result<CatchUp, String> {
        let policy = value_of("catch_up", &self.catch_up, &CatchUpPolicy::WORDS)?;
        let max = limited("catch_up_max", self.catch_up_max, 1, 1_000)?;
        let hours = limited("catch_up_window_h", self.catch_up_window_h, 1, 24 * 366)?;
        Ok(CatchUp { policy, max, window: TimeDelta::hours(hours.into()) })
    }
}

/// Sentences so far, about the schedule `name`.
struct Wrong<'a> {
    name: &'a str,
    sentences: Vec<String>,
}

impl Wrong<'_> {
    fn keep<T>(&mut self, checked: Result<T, String>) -> Option<T> {
        checked.map_err(|sentence| self.sentences.push(format!("schedule.{}.{sentence}", self.name))).ok()
    }
}

fn checked_name(name: &str) -> Result<(), String> {
    let letters = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
    match name {
        RunKey::MANUAL => Err(format!("schedule.{name}: runs that people start are called so; take another name")),
        _ if letters && (1..=64).contains(&name.len()) => Ok(()),
        _ => Err(format!("schedule.{name}: a name is 1 to 64 of a-z, 0-9, _ and -")),
    }
}

fn cron(text: &str) -> Result<Cron, String> {
    if text.trim().is_empty() {
        return Err("cron is missing; \"30 2 * * *\" is half past two every night".to_owned());
    }
    let cron = Cron::from_str(text).map_err(|error| {
        let error = error.to_string();
        let error = error.trim_end_matches('.');
        format!("cron is {text:?}: {error}; it is minute, hour, day of month, month, day of week, such as \"30 2 * * *\"")
    })?;
    // a whole cycle of the calendar from here; a year of the past is allowed
    let start = NaiveDate::from_ymd_opt(1970, 1, 1).map(|date| date.and_time(NaiveTime::MIN));
    let occurs = start.is_some_and(|start| cron.find_next_occurrence(&start, true).is_ok());
    if occurs { Ok(cron) } else { Err(format!("cron is {text:?}, which never occurs: no calendar has such a day")) }
}

fn zone(text: &str) -> Result<Tz, String> {
    match text.trim() {
        "" => Err("zone is missing; name it as the tz database does, such as \"Europe/Dublin\" or \"UTC\"".to_owned()),
        name => {
            name.parse().map_err(|_| format!("zone is {text:?}, which the tz database does not have; one is \"Europe/Dublin\""))
        }
    }
}

fn cut_off(text: &str) -> Result<CutOff, String> {
    CutOff::parse(text).ok_or_else(|| match text {
        "00:00" => "cut_off is \"00:00\"; the midnight at the end of the day is \"24:00\"".to_owned(),
        _ => format!("cut_off is {text:?}; it is HH:MM, from \"00:01\" to \"24:00\""),
    })
}

/// In order, each once.
fn sources(names: &[String]) -> Result<Vec<String>, String> {
    if names.is_empty() {
        return Err("sources is empty; leave it out to settle all of them".to_owned());
    }
    let mut sorted = names.to_vec();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("sources has {:?} twice", twice[0]));
    }
    match sorted.iter().find(|name| name.trim().is_empty() || name.contains(char::is_control)) {
        Some(name) => Err(format!("sources has {name:?}, which is no name of a source")),
        None => Ok(sorted),
    }
}

fn limited(key: &str, value: u32, least: u32, most: u32) -> Result<u32, String> {
    let wrong = || format!("{key} is {value} and must be from {least} to {most}");
    (least..=most).contains(&value).then_some(value).ok_or_else(wrong)
}
