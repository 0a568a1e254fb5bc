//! An instance that is cut off: from its lock service, from its database, and from both so that it believes in dead connections.

use super::far::{Far, silence};
use super::naive;
use crate::books::TTL;
use crate::drill::{Drill, Telling};
use crate::instance::Instance;
use crate::record::Table;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use lab::proxy::Proxy;
use lab::redis::Redis;
use serde_json::Value;
use std::time::Duration;

pub(super) const DRILL: Drill = Drill {
    name: "partition",
    about: "an instance cut off from its lock service stops by its own deadline; from its database it waits; half-open it comes back",
    needs: "PostgreSQL, Redis",
    quick: false,
    tell,
};

const BATCHES: u32 = 100;
const RUN: &[&str] = &["run", "--json"];
/// What a transaction that began under a good lease may take beyond it: `worker.settle_timeout_ms`, half a TTL.
const LAST_TX_MS: u128 = TTL.as_millis() / 2;

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let redis = Redis::start()?;
        let columns = [
            "cut off from",
            "settled before",
            "by it after the cut",
            "its last one, ms after",
            "settled by others",
            "by it in the end",
        ];
        let mut table =
            Table::new(&format!("An instance that is cut off (TTL {} ms, one batch a transaction)", TTL.as_millis()), columns);
        from_its_locks(stage, &redis, &mut table).await?;
        from_its_database(stage, &redis, &mut table).await?;
        from_both(stage, &redis, &mut table).await?;
        stage.table(table);
        naive::holds_because_it_once_did(stage, &redis, TTL).await
    })
}

/// Two ways that can be cut.
struct Scene<'a> {
    ledger: Far<'a>,
    to_locks: Proxy,
}

impl<'a> Scene<'a> {
    fn set(stage: &'a Stage, redis: &Redis) -> Result<Scene<'a>, DrillError> {
        let ledger = Far::new(stage, stage.database()?)?.having("lease.backend", "redis").having("worker.partitions", 1);
        let ledger = ledger.having("lease.redis.url", format!("redis://{}", redis.address())).take_in(BATCHES)?;
        Ok(Scene { ledger, to_locks: Proxy::start(redis.address())? })
    }

    /// An instance whose ways can be cut.
    fn start(&self, arguments: &[&str]) -> Result<Instance, DrillError> {
        let books = self.ledger.far().with("lease.redis.url", format!("redis://{}", self.to_locks.address()));
        books.start("A", arguments)
    }

    /// Such a one, in the middle of its run.
    async fn working(&self) -> Result<(Instance, u64), DrillError> {
        let a = self.start(RUN)?;
        Ok((a, self.ledger.more_settled(5).await?))
    }

    /// How many batches that instance settled after an instant of the database, and when the last one, in ms.
    fn after(&self, cut: &str, holder: &str) -> Result<(u64, u64), DrillError> {
        let of = format!("FROM settlement_batch WHERE holder = '{holder}' AND state = 'settled' AND settled_at > {cut}");
        let last = format!("SELECT coalesce(1000 * extract(epoch FROM max(settled_at) - {cut}), 0)::bigint {of}");
        Ok((self.ledger.number(&format!("SELECT count(*) {of}"))?, self.ledger.number(&last)?))
    }
}

async fn from_its_locks(stage: &Stage, redis: &Redis, table: &mut Table) -> Result<(), DrillError> {
    let arm = "cut off from the lock service";
    let scene = Scene::set(stage, redis)?;
    let (mut a, before) = scene.working().await?;
    silence(&scene.to_locks);
    // looked at after the cut, so that what A may still do is not counted too early
    let cut = scene.ledger.now()?;
    stage.tell("redis", Mark::Fault, "A and the lock service do not hear each other any more; the database is there");
    until("A knows that it is cut off", TTL * 30, async || Ok(knows(&a).then_some(()))).await?;
    // nobody else is there to stop it
    tokio::time::sleep(TTL + TTL / 2).await;
    bites(stage, arm, scene.ledger.books.settled_batches().await?);
    let mut b = scene.ledger.books.start("B", RUN)?;
    let others: Value = b.end_well().await?;
    let holder = holder(&a).await?;
    let (after, last) = scene.after(&cut, &holder)?;
    let most = TTL.as_millis() + LAST_TX_MS;
    let must = format!("nothing is settled by it later than a TTL and one transaction after the cut ({most} ms)");
    stage.must_hold(arm, &must, format!("{after} batches after the cut, the last at {last} ms"), u128::from(last) <= most);
    scene.to_locks.heal();
    stage.tell("redis", Mark::Heal, "A is connected to the lock service again");
    let (code, out) = a.end().await?;
    let did: Value = serde_json::from_str(&out).unwrap_or_default();
    stage.must_hold(arm, "another took over", took_part(&did, &others), settled(&others) > 0);
    stage.must_hold(arm, "it ended by itself, and well", format!("exit code {code}"), code == 0);
    table.row([
        arm_of(arm),
        before.to_string(),
        after.to_string(),
        last.to_string(),
        settled(&others).to_string(),
        settled(&did).to_string(),
    ]);
    scene.ledger.must_be_settled(stage, arm, BATCHES).await
}

async fn from_its_database(stage: &Stage, redis: &Redis, table: &mut Table) -> Result<(), DrillError> {
    let arm = "cut off from the database";
    let scene = Scene::set(stage, redis)?;
    let (mut a, before) = scene.working().await?;
    scene.ledger.silence();
    stage.tell("postgres", Mark::Fault, "A and the database do not hear each other any more; its lease is renewed all the while");
    let cut = scene.ledger.now()?;
    // what was on its way has arrived
    tokio::time::sleep(TTL).await;
    let at = scene.ledger.books.settled_batches().await?;
    tokio::time::sleep(TTL).await;
    let (more, ended) = (scene.ledger.books.settled_batches().await? - at, a.process.ended()?.is_some());
    bites(stage, arm, at);
    let seen = format!("{more} settled in {} ms, ended: {ended}", TTL.as_millis());
    stage.must_hold(arm, "it waits: it settles nothing, and does not give up", seen, more == 0 && !ended);
    let holder = holder(&a).await?;
    let (after, last) = scene.after(&cut, &holder)?;
    scene.ledger.way.heal();
    stage.tell("postgres", Mark::Heal, "A is connected to the database again");
    let did: Value = a.end_well().await?;
    let seen = format!("{} settled by it, {at} before it was connected again", settled(&did));
    stage.must_hold(arm, "it goes on by itself", seen, settled(&did) > at);
    table.row([arm_of(arm), before.to_string(), after.to_string(), last.to_string(), "0".to_owned(), settled(&did).to_string()]);
    scene.ledger.must_be_settled(stage, arm, BATCHES).await
}

/// Connections die without a word while their client is not looking: a firewall has forgotten them. (On a statement that is under way
/// then nobody ever answers: that is for `run --wait`, and for the watchdog of `serve`.)
async fn from_both(stage: &Stage, redis: &Redis, table: &mut Table) -> Result<(), DrillError> {
    let arm = "half-open to both";
    let scene = Scene::set(stage, redis)?;
    let mut a = scene.start(&["run", "--json", "--signal-at", "BatchesClaimed=stop@6"])?;
    a.wait_frozen().await?;
    let before = scene.ledger.books.settled_batches().await?;
    scene.to_locks.half_open();
    scene.ledger.way.half_open();
    scene.ledger.way.delay(Duration::ZERO);
    stage.tell("director", Mark::Fault, "the connections of A are dead at the other end, and A is not told; new ones work");
    let cut = scene.ledger.now()?;
    a.wake()?;
    let did: Value = a.end_well().await?;
    let (after, last) = scene.after(&cut, &holder(&a).await?)?;
    bites(stage, arm, before);
    let seen = format!("{} settled by it, {before} before", settled(&did));
    stage.must_hold(arm, "it comes back by itself", seen, settled(&did) > before);
    table.row([arm_of(arm), before.to_string(), after.to_string(), last.to_string(), "0".to_owned(), settled(&did).to_string()]);
    scene.ledger.must_be_settled(stage, arm, BATCHES).await
}

/// As the ledger knows it.
async fn holder(instance: &Instance) -> Result<String, DrillError> {
    let opened = instance.wait_for("run opened or joined").await?;
    Ok(opened["holder.id"].as_str().unwrap_or_default().to_owned())
}

/// So many are settled when the cut has stopped it, and before anybody else begins.
fn bites(stage: &Stage, arm: &str, settled: u64) {
    let must = "it was cut off in the middle of its work";
    stage.must_bite(arm, must, format!("{settled} of {BATCHES} settled by then"), settled < u64::from(BATCHES));
}

/// Its lease has run out, or it asked for one and was not answered.
fn knows(instance: &Instance) -> bool {
    let says =
        |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("lease lost") || text.contains("is out"));
    instance.events().iter().any(says)
}

fn settled(did: &Value) -> u64 {
    did["batches_settled"].as_u64().unwrap_or(0)
}

fn took_part(a: &Value, b: &Value) -> String {
    format!("A settled {}, B {}", settled(a), settled(b))
}

fn arm_of(arm: &str) -> String {
    arm.trim_start_matches("cut off from ").to_owned()
}
