//! Clients as they are often written, for control arms. Each does by the book of its author, and what it does not know hurts it.

use super::far::{number, silence, way_to};
use crate::actors::Part;
use crate::actors::holder::{Did, Guard, Holder};
use crate::articles::Counter;
use crate::instance::PATIENCE;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use lab::proxy::{Proxy, Way};
use lab::redis::Redis;
use sqlx::{Connection, PgConnection};
use std::time::Duration;

const ADD: &str = "UPDATE account SET balance = balance + 100";

/// A lock that was acquired once is believed in for as long as the work takes: a cut that outlasts its TTL lets two clients do the
/// same read-modify-write. Its renewals fail, and nobody looks before the write.
pub(super) async fn holds_because_it_once_did(stage: &Stage, redis: &Redis, ttl: Duration) -> Result<(), DrillError> {
    let (database, way, over) = (stage.database()?, Proxy::start(redis.address())?, stage.path("work-is-done"));
    Counter::create_table(&database).await?;
    let mut counter = Counter::at(&database, "naive").await?;
    counter.reset().await?;
    let holder = |at, works_until| Holder {
        redis: format!("redis://{at}"),
        database: database.to_string(),
        name: "naive".to_owned(),
        ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
        guard: Guard::Nothing,
        renews: true,
        freezes: false,
        works_until,
    };
    let mut a = stage.actor("naive A", &Part::Holder(holder(way.address(), Some(over.clone()))))?;
    a.wait_for("reads 0").await?;
    let mut b = stage.actor("naive B", &Part::Holder(holder(redis.address(), None)))?;
    // longer than it would have the lock without its timer
    tokio::time::sleep(ttl + ttl / 2).await;
    let early = b.events().iter().any(|event| event["message"].as_str().is_some_and(|text| text.contains("takes the lock")));
    let must = "its timer keeps the lock for longer than a TTL";
    stage.must_bite("a lock acquired once", must, format!("B got it before the cut: {early}"), !early);
    silence(&way);
    stage.tell("redis", Mark::Fault, "cut off from naive A, which works on");
    let other: Did = b.end_well().await?;
    let between = counter.read().await?;
    std::fs::write(&over, "").map_err(DrillError::io("telling A that its work is done"))?;
    a.wait_for("writes 1").await?;
    // to release a lock that is not its own any more; what comes of that is no part of this
    way.heal();
    a.end().await?;
    let value = counter.read().await?;
    stage.tell("naive A", Mark::Damage, format!("adds one too, to what it read before: the counter says {value}"));
    let must = "a client that believes in its lock because it once got it loses the other's write";
    let seen = format!("0 + 1 by B = {between}, + 1 by A = {value}");
    stage.must_break("a lock acquired once", must, seen, other.first_rows == 1 && between == 1 && value == 1);
    Ok(())
}

/// A statement that was not answered is sent again. The answer was lost, not the statement.
pub(super) async fn sends_again_what_was_not_answered(stage: &Stage) -> Result<(), DrillError> {
    let account = account(stage)?;
    let (way, by_way) = way_to(&account)?;
    let mut first = PgConnection::connect(&by_way).await?;
    way.silence(Way::Back);
    let sent = tokio::spawn(async move { sqlx::raw_sql(ADD).execute(&mut first).await });
    let arrived = async || Ok((number(&account, "SELECT balance FROM account")? == 1100).then_some(()));
    until("the statement has arrived", PATIENCE, arrived).await?;
    stage.tell("naive", Mark::Write, "adds 100; the reply is lost");
    way.reset();
    way.heal();
    let lost = sent.await.map_err(|error| DrillError::Story(error.to_string()))?.is_err();
    sqlx::raw_sql(ADD).execute(&mut PgConnection::connect(&by_way).await?).await?;
    let balance = number(&account, "SELECT balance FROM account")?;
    stage.tell("naive", Mark::Damage, format!("sends it again, since it got an error: the balance is {balance}"));
    let must = "a client that sends again what was not answered does it twice";
    stage.must_break("sent again", must, format!("1000 + 100 = {balance}"), lost && balance == 1200);
    Ok(())
}

/// A table of its own, with 1000 in it.
pub(super) fn account(stage: &Stage) -> Result<lab::postgres::PostgresUrl, DrillError> {
    let database = stage.database()?;
    database.query("CREATE TABLE account (balance bigint NOT NULL); INSERT INTO account VALUES (1000)")?;
    Ok(database)
}
