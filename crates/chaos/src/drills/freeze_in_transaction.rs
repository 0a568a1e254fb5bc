//! A client that is frozen inside a transaction holds its row locks until the server ends the session, or for ever.

use super::far::{Far, number};
use super::naive;
use crate::actors::Part;
use crate::drill::{Drill, Telling};
use crate::instance::PATIENCE;
use crate::record::Table;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use lab::postgres::PostgresUrl;
use serde_json::Value;
use sqlx::{Connection, PgConnection};
use std::time::{Duration, Instant};

pub(super) const DRILL: Drill = Drill {
    name: "freeze-in-transaction",
    about: "frozen inside its settle transaction, an instance holds row locks until the server ends its session, and no longer",
    needs: "PostgreSQL",
    quick: true,
    tell,
};

const BATCHES: u32 = 6;
/// After so long the server ends the session of a client that says nothing inside a transaction.
const IDLE: Duration = Duration::from_millis(2_500);
/// How much later a busy machine may do it, and this drill see it.
const SLACK: Duration = Duration::from_secs(5);
/// How long the second writer of the control arm waits: longer than that.
const WAITS: Duration = Duration::from_millis(3_500);

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let columns = ["session of the frozen writer", "server ends it after, ms", "the second writer", "after, ms"];
        let mut table = Table::new("A writer that is frozen inside its transaction", columns);
        ended_by_the_server(stage, &mut table).await?;
        left_alone(stage, &mut table).await?;
        stage.table(table);
        Ok(())
    })
}

/// The lease is long and forgotten by its service, so that nothing but A's row locks is in B's way.
async fn ended_by_the_server(stage: &Stage, table: &mut Table) -> Result<(), DrillError> {
    let arm = "worker.idle_timeout_ms";
    let ledger = Far::new(stage, stage.database()?)?.having("worker.partitions", 1);
    let ledger = ledger.having("lease.ttl_ms", 30_000).having("worker.idle_timeout_ms", IDLE.as_millis()).take_in(BATCHES)?;
    let mut a = ledger.books.start("A", &["run", "--json", "--signal-at", "InsideSettleTx=stop"])?;
    a.wait_frozen().await?;
    let frozen = Instant::now();
    let session = Session::idle_in_transaction(&ledger.database)?;
    ledger.database.query("DELETE FROM lease")?;
    stage.tell("postgres", Mark::Fault, "A's lease is forgotten; what it wrote is not committed, and its row locks stay");
    let mut b = ledger.books.start("B", &["run", "--json"])?;
    let waits = until("B waits for a lock, or does not have to", PATIENCE, async || look_for_a_waiter(&ledger).await).await?;
    let ended = until("the server ends A's session", IDLE * 4, async || session.ended_after_ms(&ledger.database)).await.ok();
    let (least, most) = (ms(IDLE), ms(IDLE + SLACK));
    let must = format!("the server ends A's session after {least} ms of silence, and within {most} ms");
    let seen = ended.map_or("not ended".to_owned(), |after| format!("ended after {after} ms"));
    stage.must_hold(arm, &must, seen, ended.is_some_and(|after| (least..=most).contains(&after)));
    let goes_on = tokio::time::timeout(IDLE * 8, b.wait_for("registered")).await.is_ok_and(|registered| registered.is_ok());
    let waited = frozen.elapsed().as_millis();
    stage.must_bite(arm, "B has to wait for the row locks of A", format!("waited: {waits}"), waits);
    let still = goes_on && a.process.is_stopped();
    stage.must_hold(arm, "B goes on while A is still frozen", format!("{waited} ms after A froze"), still);
    // where it does go on, all of it is done before A wakes
    let done = if goes_on { Some(b.end_well::<Value>().await?) } else { None };
    a.wake()?;
    let late: Value = a.end_well().await?;
    let did = match done {
        Some(did) => did,
        None => b.end_well().await?,
    };
    let seen = format!("A settled {}, B {}", late["batches_settled"], did["batches_settled"]);
    let all = did["batches_settled"].as_u64() == Some(u64::from(BATCHES));
    stage.must_hold(arm, "what A wrote inside is not in the ledger", seen, all && late["batches_settled"] == 0);
    let (ended, second) = (ended.map_or("not".to_owned(), |ms| ms.to_string()), if goes_on { "goes on" } else { "waits" });
    table.row(["as the product sets it".to_owned(), ended, second.to_owned(), waited.to_string()]);
    ledger.must_be_settled(stage, arm, BATCHES).await
}

/// A session that says nothing inside a transaction, and since when, by the clock of its server.
struct Session {
    pid: u64,
    since: String,
}

impl Session {
    /// The only one of this database.
    fn idle_in_transaction(database: &str) -> Result<Session, DrillError> {
        let sql =
            "SELECT pid, state_change FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
        let row = PostgresUrl::new(database).query(sql)?;
        let session = row.split_once('|').and_then(|(pid, since)| Some((pid.parse().ok()?, since.to_owned())));
        let (pid, since) = session.ok_or_else(|| DrillError::Story(format!("no session is idle in a transaction: {row:?}")))?;
        Ok(Session { pid, since })
    }

    /// When it was seen to be gone; nothing while it is there.
    fn ended_after_ms(&self, database: &str) -> Result<Option<u64>, DrillError> {
        let Session { pid, since } = self;
        let sql = format!(
            "SELECT CASE WHEN EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid} AND datname = current_database()) THEN 0
            ELSE (1000 * extract(epoch FROM clock_timestamp() - timestamptz '{since}'))::bigint END"
        );
        Ok(Some(number(database, &sql)?).filter(|ms| *ms > 0))
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `Some(true)`: somebody waits. `Some(false)`: B has settled without.
async fn look_for_a_waiter(ledger: &Far<'_>) -> Result<Option<bool>, DrillError> {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    if ledger.number(waiting)? > 0 {
        return Ok(Some(true));
    }
    Ok((ledger.books.settled_batches().await? > 0).then_some(false))
}

async fn left_alone(stage: &Stage, table: &mut Table) -> Result<(), DrillError> {
    let account = naive::account(stage)?;
    let mut frozen = stage.actor("naive A", &Part::FrozenWriter { url: account.to_string() })?;
    frozen.wait_frozen().await?;
    let session = Session::idle_in_transaction(&account)?;
    let mut second = PgConnection::connect(&account).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("SET lock_timeout = {}", WAITS.as_millis()))).execute(&mut second).await?;
    let begun = Instant::now();
    let blocked = sqlx::query("UPDATE account SET balance = balance + 1").execute(&mut second).await.err();
    let waited = begun.elapsed().as_millis();
    let code = blocked.as_ref().and_then(|error| error.as_database_error()?.code().map(|code| code.into_owned()));
    let still = frozen.process.is_stopped();
    stage.tell("naive B", Mark::Damage, format!("gives up after {waited} ms: the row is locked for as long as A is frozen"));
    let must = "without a limit the second writer waits for as long as the first is frozen";
    let gave_up = code.as_deref() == Some("55P03");
    let ended = session.ended_after_ms(&account)?;
    let seen = format!("gave up after {waited} ms ({code:?}), the session of the first is there: {}", ended.is_none());
    stage.must_break("no limit", must, seen, gave_up && still && ended.is_none());
    frozen.wake()?;
    frozen.end().await?;
    let ended = ended.map_or(format!("> {waited}"), |ms| ms.to_string());
    let second = if gave_up { "gives up, in vain" } else { "goes on" };
    table.row(["a plain one".to_owned(), ended, second.to_owned(), waited.to_string()]);
    Ok(())
}
