//! The database is killed in the middle of a run, and an answer of it is lost. The run goes on by itself and does nothing twice.

use super::{far::Far, naive};
use crate::drill::{Drill, Telling};
use crate::{DrillError, Mark, Stage};
use lab::postgres::{Durability, Postgres};
use lab::proxy::Way;
use serde_json::Value;
use std::time::Duration;

pub(super) const DRILL: Drill = Drill {
    name: "database-restart",
    about: "PostgreSQL is killed in the middle of a run and started again; the reply to a commit is lost and read back",
    needs: "PostgreSQL",
    quick: true,
    tell,
};

const BATCHES: u32 = 120;

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        killed(stage).await?;
        reply_lost(stage).await?;
        naive::sends_again_what_was_not_answered(stage).await
    })
}

async fn killed(stage: &Stage) -> Result<(), DrillError> {
    let arm = "killed and started again";
    let mut server = Postgres::start(Durability::Off)?;
    let ledger = Far::new(stage, server.create_database("night")?)?.take_in(BATCHES)?;
    let mut a = ledger.far().start("A", &["run", "--json"])?;
    let mut b = ledger.far().start("B", &["run", "--json"])?;
    ledger.more_settled(10).await?;
    server.kill()?;
    stage.tell("postgres", Mark::Kill, "every process of the server is killed at once (SIGKILL)");
    a.wait_for("is out").await?;
    server.start_again()?;
    let at = ledger.books.settled_batches().await?;
    stage.tell("postgres", Mark::Heal, format!("started again: {at} of {BATCHES} batches are settled"));
    ledger.way.delay(Duration::ZERO);
    let (a, b) = (a.end().await?.0, b.end().await?.0);
    stage.must_bite(arm, "the kill was in the middle of the run", format!("at {at} of {BATCHES}"), at < u64::from(BATCHES));
    stage.must_hold(arm, "the run ends by itself", format!("exit codes {a} and {b}"), (a, b) == (0, 0));
    ledger.must_be_settled(stage, arm, BATCHES).await
}

/// A is frozen where its next word is COMMIT; the word gets through, the answer does not.
async fn reply_lost(stage: &Stage) -> Result<(), DrillError> {
    let arm = "reply lost";
    let ledger = Far::new(stage, stage.database()?)?.having("lease.ttl_ms", 20_000).take_in(4)?;
    let mut a = ledger.far().start("A", &["run", "--json", "--signal-at", "InsideSettleTx=stop"])?;
    a.wait_frozen().await?;
    ledger.way.silence(Way::Back);
    stage.tell("postgres", Mark::Fault, "A will not hear its answers any more");
    a.wake()?;
    ledger.more_settled(0).await?;
    stage.tell("postgres", Mark::Write, "A's COMMIT has arrived, its reply is lost");
    ledger.way.reset();
    ledger.way.heal();
    stage.tell("postgres", Mark::Heal, "A's connections are reset, new ones work");
    let did: Value = a.end_well().await?;
    let counted = did["batches_settled"].as_u64();
    let must = "the commit whose reply was lost is read back, and counted as its own";
    stage.must_hold(arm, must, format!("{} settled by A, of 4", did["batches_settled"]), counted == Some(4));
    let again = ledger.number("SELECT count(*) FROM settlement_batch WHERE attempts > 1")?;
    stage.must_hold(arm, "nothing is tried again", format!("{again} batches charged twice"), again == 0);
    ledger.must_be_settled(stage, arm, 4).await
}
