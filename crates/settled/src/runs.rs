//! Which run a person means: that of the schedule, where there is one, so that a run by hand and the scheduled one are the same.

use crate::config::{Config, ConfigError};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::run::RunKey;
use ledger::schedule::PlannedRun;
use scheduler::definition::Definition;
use scheduler::plan::planned;

/// What was asked for on the command line.
pub(crate) struct Asked<'a> {
    pub(crate) schedule: Option<&'a str>,
    pub(crate) business_date: Option<NaiveDate>,
    pub(crate) allow_future: bool,
}

/// The run of the only schedule, or of the one that is named, or the one by hand that everybody means.
///
/// # Errors
/// A schedule that is not configured; a business date after today.
pub(crate) fn asked_for(config: &Config, asked: &Asked<'_>, now: DateTime<Utc>) -> anyhow::Result<PlannedRun> {
    let definitions = config.schedules()?;
    let definition = match asked.schedule {
        Some(name) => Some(named(&definitions, name)?),
        None if definitions.len() == 1 => definitions.first(),
        None => None,
    };
    let zone = definition.map_or(config.run.zone, Definition::zone);
    let date = date(asked, zone, now)?;
    Ok(match definition {
        Some(definition) => of_schedule(definition, date, now),
        None => PlannedRun::by_hand(RunKey::manual(date)),
    })
}

/// The schedule of that name.
///
/// # Errors
/// Those there are.
pub(crate) fn named<'a>(definitions: &'a [Definition], name: &str) -> Result<&'a Definition, ConfigError> {
    definitions.iter().find(|definition| definition.name() == name).ok_or_else(|| {
        let names: Vec<&str> = definitions.iter().map(Definition::name).collect();
        let there = if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
        ConfigError(format!("schedule {name:?} is not configured: {there}"))
    })
}

fn date(asked: &Asked<'_>, zone: Tz, now: DateTime<Utc>) -> Result<NaiveDate, ConfigError> {
    let today = now.with_timezone(&zone).date_naive();
    let date = asked.business_date.unwrap_or(today);
    if date > today && !asked.allow_future {
        return Err(ConfigError(format!(
            "--business-date {date} is after today ({today} in {zone}): its batches may still be arriving; add --allow-future if they are not"
        )));
    }
    Ok(date)
}

/// The newest occurrence of the date that has come, else its first one. A date without any, such as a holiday, is still run by hand
/// under the schedule's name.
fn of_schedule(definition: &Definition, date: NaiveDate, now: DateTime<Utc>) -> PlannedRun {
    let days = definition.days();
    let (closes, next) = (days.covers(date).until, days.covers(days.calendar.next(date)).until);
    let instant = TimeDelta::nanoseconds(1);
    let mut occurrences = definition.occurrences(closes - instant, next - instant).peekable();
    let first = occurrences.peek().copied();
    let come = occurrences.take_while(|occurrence| occurrence.at <= now).last();
    match come.or(first).filter(|occurrence| occurrence.business_date == date) {
        Some(occurrence) => planned(definition, occurrence),
        None => {
            let key = RunKey { schedule: definition.name().to_owned(), business_date: date, slot: "-".to_owned() };
            PlannedRun { sources: definition.sources().map(<[String]>::to_vec), ..PlannedRun::by_hand(key) }
        }
    }
}
