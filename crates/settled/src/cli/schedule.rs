//! `settled schedule list | preview | history | adopt`.

use super::Because;
use crate::config::{Config, ConfigError};
use crate::output::say;
use crate::{output, runs, wire};
use chrono::{DateTime, Days, NaiveDate, SecondsFormat, TimeDelta, Utc};
use clap::Subcommand;
use ledger::Ledger;
use ledger::schedule::{Adopt, RunFilter, RunHistory};
use scheduler::RawSchedule;
use scheduler::definition::Definition;
use scheduler::preview::{PreviewLine, PreviewMark, preview};
use serde::Serialize;
use std::process::ExitCode;

/// When runs occur, what they will be, what became of them
#[derive(Debug, Subcommand)]
pub(super) enum Schedule {
    /// List schedules: what is configured, how far each is planned, its next occurrence
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show coming occurrences, with days on which clocks change, weekends and holidays; needs no ledger
    Preview(Preview),
    /// List runs, the newest first, with those that were missed
    History(History),
    /// Make the configured definition of a schedule the ledger's
    Adopt {
        /// The schedule
        name: String,
        /// Plan from now on: nothing before is caught up, and a mark ahead of the clock comes back
        #[arg(long)]
        from_now: bool,
        #[command(flatten)]
        because: Because,
    },
}

/// Which occurrences to show.
#[derive(Debug, clap::Args)]
pub(super) struct Preview {
    /// Only this schedule
    #[arg(long)]
    schedule: Option<String>,
    /// First day, in the schedule's zone; from now on if not given
    #[arg(long, value_name = "YYYY-MM-DD")]
    from: Option<NaiveDate>,
    /// Last day; two weeks after the first if not given
    #[arg(long, value_name = "YYYY-MM-DD")]
    to: Option<NaiveDate>,
    /// At most so many of each schedule
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Which runs to list.
#[derive(Debug, clap::Args)]
pub(super) struct History {
    /// Only runs of this schedule; `manual` for those by hand
    #[arg(long)]
    schedule: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 30)]
    limit: u32,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Schedule {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        match self {
            Schedule::List { json } => list(config, *json).await?,
            Schedule::Preview(command) => command.run(config)?,
            Schedule::History(command) => command.run(config).await?,
            Schedule::Adopt { name, from_now, because } => {
                let definitions = config.schedules()?;
                let definition = runs::named(&definitions, name)?;
                wire::existing(config)
                    .await?
                    .adopt_schedule(name, Adopt { definition: &definition.hash(), from_now: *from_now }, &because.operator()?)
                    .await?;
                say!(
                    "schedule {name} is planned by the configured definition from now on; what occurs by it since it was last looked at (some minutes ago, if instances run) is caught up by its rule"
                );
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// As the planner has it: more than a clock is corrected by.
const AHEAD: TimeDelta = TimeDelta::minutes(5);

/// A schedule in the list.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    #[serde(flatten)]
    configured: RawSchedule,
    /// `planned`, `not started`, or `refused`: the ledger has another definition.
    state: &'static str,
    planned_until: Option<DateTime<Utc>>,
    last_run: Option<DateTime<Utc>>,
    missed: i64,
    next: Option<DateTime<Utc>>,
    next_local: Option<String>,
    next_business_date: Option<NaiveDate>,
}

async fn list(config: &Config, json: bool) -> anyhow::Result<()> {
    let ledger = wire::existing(config).await?;
    let mut listed = Vec::new();
    for definition in config.schedules()? {
        listed.push(listed_one(ledger.as_ref(), config, &definition).await?);
    }
    if json {
        return output::json(&listed);
    }
    let mut table = output::table(["schedule", "cron", "zone", "next", "business date", "last run (UTC)", "missed", "state"]);
    for row in listed {
        table.add_row([
            row.name,
            row.configured.cron,
            row.configured.zone,
            row.next_local.unwrap_or_else(|| "never".to_owned()),
            row.next_business_date.map_or_else(String::new, |date| date.to_string()),
            row.last_run.map_or_else(|| "never".to_owned(), utc),
            row.missed.to_string(),
            row.state.to_owned(),
        ]);
    }
    if table.is_empty() {
        say!("no schedule is configured: [schedule.NAME] in the configuration makes one (config/settled.toml shows it)");
        return Ok(());
    }
    say!("{table}");
    Ok(())
}

async fn listed_one(ledger: &dyn Ledger, config: &Config, definition: &Definition) -> anyhow::Result<Listed> {
    let marks = ledger.marks().await?;
    let mark = marks.marks.into_iter().find(|mark| mark.schedule == definition.name());
    let ran = ledger.schedule_states().await?.into_iter().find(|state| state.schedule == definition.name());
    let next = definition.next_after(marks.now);
    Ok(Listed {
        name: definition.name().to_owned(),
        configured: config.schedule.get(definition.name()).cloned().unwrap_or_default(),
        state: match &mark {
            None => "not started",
            Some(mark) if mark.definition != definition.hash() => "refused: see `settled schedule adopt`",
            Some(mark) if mark.at > marks.now + AHEAD => "planned up to a time to come: see `settled schedule adopt --from-now`",
            Some(_) => "planned",
        },
        planned_until: mark.map(|mark| mark.at),
        last_run: ran.as_ref().and_then(|state| state.last_run),
        missed: ran.map_or(0, |state| state.missed),
        next: next.map(|occurrence| occurrence.at),
        next_local: next.map(|occurrence| local(definition, occurrence.at)),
        next_business_date: next.map(|occurrence| occurrence.business_date),
    })
}

impl Preview {
    fn run(&self, config: &Config) -> anyhow::Result<()> {
        let definitions = config.schedules()?;
        let chosen = match &self.schedule {
            Some(name) => vec![runs::named(&definitions, name)?],
            None => definitions.iter().collect(),
        };
        let mut shown = Vec::new();
        for definition in chosen {
            let from = self.from.unwrap_or_else(|| Utc::now().with_timezone(&definition.zone()).date_naive());
            let to = self.to.or_else(|| from.checked_add_days(Days::new(14))).unwrap_or(from);
            let mut seen = preview(definition, from, to, self.limit).map_err(|error| ConfigError(error.to_string()))?;
            // without --from: what is to come, not what was this morning
            if self.from.is_none() {
                seen.lines.retain(|line| line.at >= Utc::now());
            }
            if self.json {
                shown.push(seen);
                continue;
            }
            let mut table = output::table(["occurs", "UTC", "business date", "slot", "note"]);
            for line in &seen.lines {
                table.add_row([
                    local(definition, line.at),
                    utc(line.at),
                    line.key.business_date.to_string(),
                    line.key.slot.clone(),
                    notes(definition, line),
                ]);
            }
            say!("{} ({})\n{table}", definition.name(), definition.zone());
            if seen.more {
                say!("… and more: --limit shows them");
            }
        }
        if self.json { output::json(&shown) } else { Ok(()) }
    }
}

fn notes(definition: &Definition, line: &PreviewLine) -> String {
    let note = |mark: &PreviewMark| match mark {
        PreviewMark::ClocksChange { minutes } => format!("clocks change: a day of {minutes} minutes"),
        PreviewMark::Moved => format!("{} does not exist that day: first instant after the gap", line.local.format("%H:%M:%S")),
        PreviewMark::Skipped => format!("{} does not exist that day: skipped", line.local.format("%H:%M:%S")),
        PreviewMark::FirstPass => "comes twice that day: at the first".to_owned(),
        PreviewMark::SecondPass => "comes twice that day: at the second".to_owned(),
        PreviewMark::Weekend => "weekend".to_owned(),
        PreviewMark::Holiday(name) if name.is_empty() => "holiday".to_owned(),
        PreviewMark::Holiday(name) => format!("holiday: {name}"),
        PreviewMark::Joins(at) => format!("joins the run of {}", local(definition, *at)),
        PreviewMark::BeyondHolidays => "after the last holiday of the list".to_owned(),
    };
    line.marks.iter().map(note).collect::<Vec<_>>().join("; ")
}

impl History {
    async fn run(&self, config: &Config) -> anyhow::Result<()> {
        let filter = RunFilter { schedule: self.schedule.clone(), limit: self.limit };
        let runs = wire::existing(config).await?.history(&filter).await?;
        if self.json {
            return output::json(&runs);
        }
        let mut table = output::table([
            "run",
            "schedule",
            "business date",
            "slot",
            "due (UTC)",
            "opened (UTC)",
            "finished (UTC)",
            "settled",
            "note",
        ]);
        runs.into_iter().for_each(|run| {
            table.add_row(row(run));
        });
        say!("{table}");
        Ok(())
    }
}

fn row(run: RunHistory) -> [String; 9] {
    let missed = match run.missed_slots {
        0 => run.missed_since.map(|_| "missed, run after all".to_owned()),
        1 => Some("missed".to_owned()),
        slots => Some(format!("{slots} occurrences missed")),
    };
    let opened = if run.missed_slots > 0 { String::new() } else { utc(run.opened_at) };
    [
        run.id.to_string(),
        run.key.schedule,
        run.key.business_date.to_string(),
        run.key.slot,
        run.scheduled_for.map_or_else(String::new, utc),
        opened,
        run.finished_at.map_or_else(String::new, utc),
        run.batches_settled.to_string(),
        missed.into_iter().chain(run.note).collect::<Vec<_>>().join("; "),
    ]
}

fn utc(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

fn local(definition: &Definition, at: DateTime<Utc>) -> String {
    at.with_timezone(&definition.zone()).to_rfc3339_opts(SecondsFormat::Secs, false)
}
