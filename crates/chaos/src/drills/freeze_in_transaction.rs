//! A client that is frozen inside a transaction holds its row locks until the server ends the session, or for ever.

use super::far::Far;
use super::naive;
use crate::actors::Part;
use crate::drill::{Drill, Telling};
use crate::record::Table;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
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
/// How long the second writer of the control arm waits: longer than that.
const WAITS: Duration = Duration::from_millis(3_500);
const PATIENCE: Duration = Duration::from_secs(60);

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
    ledger.database.query("DELETE FROM lease")?;
    stage.tell("postgres", Mark::Fault, "A's lease is forgotten; what it wrote is not committed, and its row locks stay");
    let mut b = ledger.books.start("B", &["run", "--json"])?;
    let waits = until("B waits for a lock, or does not have to", PATIENCE, async || look_for_a_waiter(&ledger)).await?;
    let goes_on = tokio::time::timeout(IDLE * 8, b.wait_for("registered")).await.is_ok_and(|registered| registered.is_ok());
    let waited = frozen.elapsed().as_millis();
    stage.must_bite(arm, "B has to wait for the row locks of A", format!("waited: {waits}"), waits);
    let still = goes_on && a.process.is_stopped();
    let must = "B goes on while A is still frozen";
    stage.must_hold(arm, must, format!("{waited} ms after A froze, the limit is {} ms", IDLE.as_millis()), still);
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
    table.row(["as the product sets it".to_owned(), IDLE.as_millis().to_string(), "goes on".to_owned(), waited.to_string()]);
    ledger.must_be_settled(stage, arm, BATCHES).await
}

/// `Some(true)`: somebody waits. `Some(false)`: B has settled without.
fn look_for_a_waiter(ledger: &Far<'_>) -> Result<Option<bool>, DrillError> {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    if ledger.number(waiting)? > 0 {
        return Ok(Some(true));
    }
    Ok((ledger.settled()? > 0).then_some(false))
}

async fn left_alone(stage: &Stage, table: &mut Table) -> Result<(), DrillError> {
    let account = naive::account(stage)?;
    let mut frozen = stage.actor("naive A", &Part::FrozenWriter { url: account.to_string() })?;
    frozen.wait_frozen().await?;
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
    stage.must_break("no limit", must, format!("gave up after {waited} ms ({code:?})"), gave_up && still);
    frozen.wake()?;
    frozen.end().await?;
    table.row(["a plain one".to_owned(), "never".to_owned(), "gives up, in vain".to_owned(), waited.to_string()]);
    Ok(())
}
