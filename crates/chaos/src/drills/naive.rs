//! Clients as they are often written, for control arms. Each does by the book of its author, and what it does not know hurts it.

use super::far::{number, silence, way_to};
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use lab::proxy::{Proxy, Way};
use lab::redis::Redis;
use sqlx::{Connection, PgConnection};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const ADD: &str = "UPDATE account SET balance = balance + 100";

/// A lock that was acquired once is believed in for as long as the work takes: a cut that outlasts its TTL lets two clients do the
/// same read-modify-write.
pub(super) async fn holds_because_it_once_did(stage: &Stage, redis: &Redis, ttl: Duration) -> Result<(), DrillError> {
    let account = account(stage)?;
    let way = Proxy::start(redis.address())?;
    let connect = async |address| redis::Client::open(format!("redis://{address}"))?.get_multiplexed_async_connection().await;
    let (mut a, b) = (connect(way.address()).await?, connect(redis.address()).await?);
    let mut lock = redis::cmd("SET");
    lock.arg("transfer").arg("mine").arg("NX").arg("PX").arg(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    lock.query_async::<()>(&mut a).await?;
    stage.tell("naive A", Mark::Holds, "acquires a Redis lock and reads the balance");
    let seen_by_a = number(&account, "SELECT balance FROM account")?;
    silence(&way);
    stage.tell("redis", Mark::Fault, "cut off from naive A");
    let take = async || Ok(lock.query_async::<Option<String>>(&mut b.clone()).await?);
    until("the lock expires", PATIENCE, take).await?;
    stage.tell("naive B", Mark::Holds, "acquires the lock, which has expired, and adds 100");
    let seen_by_b = number(&account, "SELECT balance FROM account")?;
    account.query(&format!("UPDATE account SET balance = {}", seen_by_b + 100))?;
    account.query(&format!("UPDATE account SET balance = {}", seen_by_a + 100))?;
    let balance = number(&account, "SELECT balance FROM account")?;
    stage.tell("naive A", Mark::Damage, format!("adds 100 too, to what it read: the balance is {balance}"));
    let must = "a client that believes in its lock because it once got it loses the other's write";
    stage.must_break("a lock acquired once", must, format!("1000 + 100 + 100 = {balance}"), balance == 1100);
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
