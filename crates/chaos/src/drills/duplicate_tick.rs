//! Every instance rings at every tick, so that no one of them is missed. Which of them opens the run is for the ledger to say: a run has a
//! key, and the mark of its schedule is moved in the same transaction.

use super::far::number;
use crate::actors::Part;
use crate::actors::cron::{Cron, TABLE};
use crate::drill::{Drill, Telling};
use crate::instance::{Instance, PATIENCE};
use crate::record::Table;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use chrono::{Duration, Utc};
use lab::postgres::PostgresUrl;
use sqlx::{Connection, PgConnection};

pub(super) const DRILL: Drill = Drill {
    name: "duplicate-tick",
    about: "four schedulers ring at once: every slot has one run; as naive crons, every slot has four",
    needs: "PostgreSQL",
    quick: true,
    tell,
};

const SCHEDULERS: usize = 4;
const NAMES: [&str; SCHEDULERS] = ["A", "B", "C", "D"];
const TICKS: u32 = 3;
const BATCHES: u32 = 40;

/// Those that are about to open a run, each in a transaction of its own.
const ABOUT_TO_PLAN: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%schedule_mark%'";

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut table = Table::new("Runs of one schedule", ["arm", "schedulers", "slots", "runs", "most runs a slot"]);
        naive(stage, &mut table).await?;
        protected(stage, &mut table).await?;
        stage.table(table);
        Ok(())
    })
}

/// The control: a cron in every instance.
async fn naive(stage: &Stage, table: &mut Table) -> Result<(), DrillError> {
    let (arm, database) = ("naive cron", stage.database()?);
    database.query(TABLE)?;
    let first = Utc::now() + Duration::seconds(2);
    let cron = Part::Cron(Cron { database: database.to_string(), first, every_s: 1, ticks: TICKS });
    let start = |name| stage.actor(&format!("cron {name}"), &cron);
    let mut crons = NAMES.map(start).into_iter().collect::<Result<Vec<Instance>, _>>()?;
    for cron in &mut crons {
        cron.end().await?;
    }
    let most = counted(table, arm, &database, "SELECT slot FROM naive_run")?;
    stage.tell("ledger", Mark::Damage, format!("a slot has {most} runs, and each would do the night's work"));
    stage.must_break(arm, "a slot has several runs", format!("up to {most} runs a slot"), most > 1);
    Ok(())
}

async fn protected(stage: &Stage, table: &mut Table) -> Result<(), DrillError> {
    let (arm, database) = ("keyed run", stage.database()?);
    let books = stage.books(&database).with("schedule.nightly.cron", "*/2 * * * * *").with("schedule.nightly.zone", "UTC");
    let books = books.with("schedule.nightly.catch_up", "all").with("admin.listen", "127.0.0.1:0");
    books.take_in(BATCHES, 3)?;
    let mut schedulers = NAMES.map(|name| books.start(name, &["serve"])).into_iter().collect::<Result<Vec<_>, _>>()?;
    for scheduler in &schedulers {
        scheduler.wait_for("serving").await?;
    }
    more_runs(&database, 1).await?;
    all_at_once(stage, arm, &database).await?;
    more_runs(&database, TICKS).await?;
    let done =
        async || Ok((number(&database, "SELECT count(*) FROM settlement_batch WHERE state <> 'settled'")? == 0).then_some(()));
    // what is left then is seen by the check below
    let _ = until("every batch is settled", PATIENCE, done).await;
    let (mut by_them, mut codes) = (Vec::new(), Vec::new());
    for scheduler in &mut schedulers {
        scheduler.process.terminate()?;
        codes.push(scheduler.end().await?.0);
        by_them.push(opened(scheduler));
        stage.tell(scheduler.name(), Mark::Write, format!("opened {} runs", opened(scheduler)));
    }
    counted(table, arm, &database, "SELECT slot FROM run WHERE schedule = 'nightly'")?;
    // a slot cannot have two rows; that two believe to have opened it is what could be
    let runs = number(&database, "SELECT count(*) FROM run WHERE schedule = 'nightly'")?;
    let seen = format!("{runs} runs, opened by A to D: {by_them:?}");
    stage.must_hold(arm, "every run was opened by one scheduler", seen, by_them.iter().sum::<u64>() == runs);
    stage.must_hold(arm, "every scheduler ends well", format!("exit codes {codes:?}"), codes.iter().all(|code| *code == 0));
    let settled = books.settled_batches().await?;
    stage.must_hold(arm, "every batch is settled", format!("{settled} of {BATCHES}"), settled == u64::from(BATCHES));
    stage.judge(arm, &books).await.map(drop)
}

/// How many runs it was the first to open.
fn opened(scheduler: &Instance) -> u64 {
    let planned = scheduler.events().into_iter().filter(|event| event["message"] == "planned");
    planned.filter_map(|event| event["opened"].as_u64()).sum()
}

/// The director holds the mark until every scheduler is about to move it, and lets go.
async fn all_at_once(stage: &Stage, arm: &str, database: &PostgresUrl) -> Result<(), DrillError> {
    let mut director = PgConnection::connect(&database.to_string()).await?;
    let mut held = director.begin().await?;
    sqlx::query("SELECT FROM schedule_mark FOR UPDATE").execute(&mut *held).await?;
    stage.tell("director", Mark::Note, "holds the schedule's row, so that the next tick finds all of them there");
    let everybody = async || {
        let waiting = number(database, ABOUT_TO_PLAN)?;
        Ok((waiting >= SCHEDULERS as u64).then_some(waiting))
    };
    let waiting = until("every scheduler is about to open the same run", PATIENCE, everybody).await?;
    held.commit().await?;
    stage.tell("director", Mark::Heal, format!("{waiting} schedulers are about to open the same run; lets go"));
    let seen = format!("{waiting} of {SCHEDULERS} at once");
    stage.must_bite(arm, "all of them want to open the same run", seen, waiting == SCHEDULERS as u64);
    Ok(())
}

async fn more_runs(database: &PostgresUrl, more: u32) -> Result<(), DrillError> {
    let runs = || number(database, "SELECT count(*) FROM run WHERE schedule = 'nightly'");
    let before = runs()?;
    until("runs are opened", PATIENCE, async || Ok((runs()? >= before + u64::from(more)).then_some(()))).await
}

/// A row about these slots, one for each run; the most runs that a slot has.
fn counted(table: &mut Table, arm: &str, database: &PostgresUrl, slots: &str) -> Result<u64, DrillError> {
    let of = |what: &str| {
        number(database, &format!("SELECT {what} FROM (SELECT slot, count(*) AS n FROM ({slots}) s GROUP BY slot) t"))
    };
    let (distinct, runs, most) = (of("count(*)")?, of("coalesce(sum(n), 0)")?, of("coalesce(max(n), 0)")?);
    table.row([arm, &SCHEDULERS.to_string(), &distinct.to_string(), &runs.to_string(), &most.to_string()].map(str::to_owned));
    Ok(most)
}
