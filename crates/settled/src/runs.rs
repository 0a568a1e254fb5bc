//! Which run a person means: that of the schedule, where there is one, so that a run by hand and the scheduled one are the same.

use crate::config::{Config, ConfigError};
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::run::RunKey;
use ledger::Ledger;
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
    let newest = definition.map(|definition| definition.days().last_closed(now).date);
    let date = date(asked, newest, zone, now)?;
    Ok(match definition {
        Some(definition) => of_schedule(definition, date, now),
        None => PlannedRun::by_hand(RunKey::manual(date)),
    })
}

/// A run by hand takes the place of the scheduled one, so it must be what the ledger's definition would make of it: with other
/// sources, say, the night would be lost.
///
/// # Errors
/// What to do.
pub(crate) async fn refuse_other_definition(config: &Config, ledger: &dyn Ledger, planned: &PlannedRun) -> anyhow::Result<()> {
    let name = &planned.key.schedule;
    let definitions = config.schedules()?;
    let Some(definition) = definitions.iter().find(|definition| definition.name() == name) else { return Ok(()) };
    let marks = ledger.marks().await?;
    match marks.marks.iter().find(|mark| mark.schedule == *name) {
        Some(mark) if mark.definition != definition.hash() => Err(ConfigError(format!(
            "schedule {name} is defined otherwise here than in the ledger; set schedule.{name} as the other instances have it, or run `settled schedule adopt {name} --reason …`"
        ))
        .into()),
        Some(_) | None => Ok(()),
    }
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

/// A schedule's run is for the newest date that is over, as the scheduled one is; a run by hand takes what there is by now.
fn date(asked: &Asked<'_>, newest: Option<NaiveDate>, zone: Tz, now: DateTime<Utc>) -> Result<NaiveDate, ConfigError> {
    let today = now.with_timezone(&zone).date_naive();
    let date = asked.business_date.or(newest).unwrap_or(today);
    if !(1970..2200).contains(&date.year()) {
        return Err(ConfigError(format!("--business-date {date} is too far away: runs are for days from 1970 to 2199")));
    }
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
            PlannedRun { sources: definition.sources().map(<[String]>::to_vec).into(), ..PlannedRun::by_hand(key) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::schedule::Sources;
    use scheduler::RawSchedule;

    fn config(crons: &[(&str, &str)]) -> Config {
        let schedule = |cron: &str| RawSchedule {
            cron: cron.to_owned(),
            zone: "Europe/Amsterdam".to_owned(),
            weekend: vec!["sat".to_owned(), "sun".to_owned()],
            sources: Some(vec!["shop".to_owned()]),
            ..RawSchedule::default()
        };
        let schedule = crons.iter().map(|(name, cron)| ((*name).to_owned(), schedule(cron))).collect();
        Config { schedule, ..Config::default() }
    }

    fn asked(config: &Config, schedule: Option<&str>, date: Option<&str>, now: &str) -> anyhow::Result<PlannedRun> {
        let business_date = date.map(|date| date.parse().expect("a date"));
        let asked = Asked { schedule, business_date, allow_future: false };
        asked_for(config, &asked, now.parse().expect("an instant"))
    }

    #[test]
    fn a_run_by_hand_is_that_of_the_only_schedule() {
        let config = config(&[("nightly", "30 2 * * *")]);
        // Monday's business date is over at midnight; its run is due on Tuesday at 02:30 in Amsterdam
        let run = asked(&config, None, Some("2026-11-30"), "2026-11-30T22:00:00Z").expect("a run");
        assert_eq!((run.key.schedule.as_str(), run.key.slot.as_str()), ("nightly", "02:30"));
        assert_eq!(run.scheduled_for, Some("2026-12-01T01:30:00Z".parse().expect("an instant")));
        assert_eq!(run.sources, Sources::only(["shop"]));
    }

    #[test]
    fn of_several_slots_the_newest_that_has_come() {
        let config = config(&[("twice", "0 2,14 * * *")]);
        let slot = |now| asked(&config, None, Some("2026-11-30"), now).expect("a run").key.slot;
        assert_eq!(slot("2026-11-30T22:00:00Z"), "02:00", "none has come: the first");
        assert_eq!(slot("2026-12-01T12:00:00Z"), "02:00");
        assert_eq!(slot("2026-12-01T13:00:00Z"), "14:00", "at its very instant it has come");
        assert_eq!(slot("2026-12-09T13:00:00Z"), "14:00", "the last one of that date, whatever came later");
    }

    #[test]
    fn a_date_that_is_no_business_day_still_runs_under_the_schedules_name() {
        let run = asked(&config(&[("nightly", "30 2 * * *")]), None, Some("2026-11-29"), "2026-11-30T22:00:00Z").expect("a run");
        assert_eq!((run.key.schedule.as_str(), run.key.slot.as_str()), ("nightly", "-"));
        assert_eq!(run.sources, Sources::only(["shop"]));
    }

    #[test]
    fn of_several_schedules_one_must_be_named() {
        let config = config(&[("early", "30 2 * * *"), ("late", "0 5 * * *")]);
        let run = |schedule| asked(&config, schedule, Some("2026-11-30"), "2026-11-30T22:00:00Z");
        assert_eq!(run(None).expect("a run").key, RunKey::manual("2026-11-30".parse().expect("a date")));
        assert_eq!(run(Some("late")).expect("a run").key.slot, "05:00");
        let error = run(Some("later")).expect_err("there is none").to_string();
        assert_eq!(error, "schedule \"later\" is not configured: there are early, late");
    }

    /// Tonight's run is not opened by somebody who looks after last night's.
    #[test]
    fn without_a_date_it_is_the_newest_one_that_is_over() {
        let one = config(&[("nightly", "30 2 * * *")]);
        // Tuesday afternoon: Monday is over, and its run was due last night
        let run = asked(&one, None, None, "2026-12-01T14:00:00Z").expect("a run");
        assert_eq!(run.key.business_date, "2026-11-30".parse().expect("a date"));
        assert_eq!(run.scheduled_for, Some("2026-12-01T01:30:00Z".parse().expect("an instant")));
        // over the weekend Friday is
        let run = asked(&one, None, None, "2026-11-29T14:00:00Z").expect("a run");
        assert_eq!(run.key.business_date, "2026-11-27".parse().expect("a date"));
        // without a schedule nobody says when a day is over
        let run = asked(&config(&[]), None, None, "2026-12-01T14:00:00Z").expect("a run");
        assert_eq!(run.key, RunKey::manual("2026-12-01".parse().expect("a date")));
    }

    /// What is tomorrow in one zone is today in another.
    #[test]
    fn today_is_that_of_the_schedules_zone() {
        let config = config(&[("nightly", "30 2 * * *")]);
        assert!(asked(&config, None, Some("2026-12-01"), "2026-11-30T22:59:59Z").is_err());
        assert!(asked(&config, None, Some("2026-12-01"), "2026-11-30T23:00:00Z").is_ok());
    }
}
