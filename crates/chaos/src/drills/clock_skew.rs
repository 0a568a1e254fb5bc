//! Instances whose wall clocks are minutes apart. Leases in PostgreSQL are timed by its clock alone, so nobody's clock matters.

use super::far::Far;
use crate::actors::Part;
use crate::drill::{Drill, Telling};
use crate::instance::Instance;
use crate::record::Table;
use crate::{DrillError, Mark, Stage};
use lab::faketime;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

pub(super) const DRILL: Drill = Drill {
    name: "clock-skew",
    about: "the clocks of the instances are three minutes ahead and behind: nobody takes over a live lease, and all agree on it",
    needs: "PostgreSQL, libfaketime",
    quick: true,
    tell,
};

const BATCHES: u32 = 100;
/// Long enough that no busy machine loses a lease by itself.
const TTL: Duration = Duration::from_millis(4_000);
const RUN: &[&str] = &["run", "--json"];
const AHEAD: &str = "+180s";
const BEHIND: &str = "-180s";

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        by_the_clock_of_the_database(stage).await?;
        by_the_clock_of_the_client(stage).await
    })
}

/// An instance with another clock.
fn start(stage: &Stage, ledger: &Far<'_>, name: &str, clock: &str) -> Result<Instance, DrillError> {
    let mut command = ledger.far().command(RUN);
    faketime::shift(&mut command, clock)?;
    stage.tell(name, Mark::Fault, format!("its wall clock is off by {clock}"));
    ledger.far().start_command(name, &mut command)
}

/// A works and B waits; A dies, and B and C compete for what it leaves.
async fn by_the_clock_of_the_database(stage: &Stage) -> Result<(), DrillError> {
    let arm = "leases by the database's clock";
    let ledger = Far::new(stage, stage.database()?)?.having("worker.partitions", 1);
    let ledger = ledger.having("lease.ttl_ms", TTL.as_millis()).take_in(BATCHES)?;
    let mut a = start(stage, &ledger, "A", AHEAD)?;
    a.wait_for("registered").await?;
    let mut b = start(stage, &ledger, "B", BEHIND)?;
    let mut c = start(stage, &ledger, "C", AHEAD)?;
    for instance in [&b, &c] {
        instance.wait_for("run opened or joined").await?;
    }
    ledger.more_settled(ledger.books.settled_batches().await? + 5).await?;
    agree(stage, &ledger)?;
    ledger.more_settled(ledger.books.settled_batches().await? + 10).await?;
    let seen = format!("{} registered while A lived", registrations(&ledger)?);
    stage.must_hold(arm, "nobody takes over a live lease", seen, registrations(&ledger)? == 1);
    a.kill()?;
    let at = ledger.books.settled_batches().await?;
    stage.must_bite(arm, "others waited for it in the middle of the run", format!("{at} of {BATCHES}"), at < u64::from(BATCHES));
    ledger.way.delay(Duration::ZERO);
    let (did_b, did_c): (Value, Value) = (b.end_well().await?, c.end_well().await?);
    let seen = format!("A settled {at}, B {}, C {}", did_b["batches_settled"], did_c["batches_settled"]);
    let settled = |did: &Value| did["batches_settled"].as_u64().unwrap_or(0);
    // the other may still take the unit when it is free again, and find nothing due
    let by_one = settled(&did_b).min(settled(&did_c)) == 0 && settled(&did_b).max(settled(&did_c)) > 0;
    stage.must_hold(arm, "after its death one of the others takes over, and does the rest", seen, by_one);
    ledger.must_be_settled(stage, arm, BATCHES).await
}

/// How often a holder of the only unit was registered: every one gets the next token.
fn registrations(ledger: &Far<'_>) -> Result<u64, DrillError> {
    ledger.number("SELECT token FROM unit_fence WHERE unit = 0")
}

/// What programs with other clocks say about the same lease.
fn agree(stage: &Stage, ledger: &Far<'_>) -> Result<(), DrillError> {
    let mut table = Table::new("One lease, seen with three clocks", ["clock of who asks", "holder", "expires in, ms"]);
    let mut agreed = true;
    for clock in [AHEAD, "+0s", BEHIND] {
        let mut command = ledger.books.command(&["lease", "list", "--json"]);
        faketime::shift(&mut command, clock)?;
        let output = command.output().map_err(DrillError::io("starting this program"))?;
        let rows: Value = serde_json::from_slice(&output.stdout)?;
        let left = rows[0]["expires_in_ms"].as_i64().unwrap_or_default();
        agreed &= left > 0 && u128::from(left.unsigned_abs()) <= TTL.as_millis();
        table.row([clock.to_owned(), rows[0]["holder"].as_str().unwrap_or("nobody").to_owned(), left.to_string()]);
    }
    let seen: Vec<&str> = table.rows.iter().map(|row| row[2].as_str()).collect();
    let must = "with every clock it is held, and ends within a TTL";
    stage.must_hold("leases by the database's clock", must, format!("expires in {} ms", seen.join(", ")), agreed);
    stage.table(table);
    Ok(())
}

async fn by_the_clock_of_the_client(stage: &Stage) -> Result<(), DrillError> {
    let arm = "leases by the client's clock";
    let database = stage.database()?;
    database.query("CREATE TABLE naive_lease (name text PRIMARY KEY, holder text NOT NULL, expires_at timestamptz NOT NULL)")?;
    let ttl_ms = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
    let part = |holder: &str, hold| Part::ClientClock { url: database.to_string(), holder: holder.to_owned(), ttl_ms, hold };
    let mut a = play(stage, "naive A", BEHIND, &part("A", true))?;
    a.wait_for("holds the lease").await?;
    let mut fair = play(stage, "naive C", BEHIND, &part("C", false))?;
    let refused: Value = fair.end_well().await?;
    let mut b = play(stage, "naive B", AHEAD, &part("B", false))?;
    let stolen: Value = b.end_well().await?;
    a.wait_for("the lease is another's").await?;
    a.end().await?;
    let seen = format!("granted to a clock as wrong as A's: {}, to one that is ahead: {}", refused["granted"], stolen["granted"]);
    let must = "a lease that is alive and renewed in time is taken over by whoever's clock is ahead";
    stage.must_break(arm, must, seen, stolen["granted"] == true && refused["granted"] == false);
    Ok(())
}

fn play(stage: &Stage, name: &str, clock: &str, part: &impl Serialize) -> Result<Instance, DrillError> {
    let mut command = stage.program();
    command.args(["drill", "act"]).arg(serde_json::to_string(part)?);
    faketime::shift(&mut command, clock)?;
    stage.tell(name, Mark::Fault, format!("its wall clock is off by {clock}"));
    stage.start(name, &mut command)
}
