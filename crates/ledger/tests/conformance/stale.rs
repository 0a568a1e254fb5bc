//! Instances that know the ledger as it was: opened before it was guarded or cut anew, frozen while an operator decided, connected
//! to what was the primary. They are told, and nothing of theirs goes in.

use crate::fixture::{Books, LIMITS, Named, Place, UNIT, batches, claimed_ids, holder, operator, stamp};
use domain::outcome::SettleOutcome;
use ledger::settle::{Authority, ClaimRequest, SettleWork};
use ledger::{Guard, LedgerError};
use std::time::Duration;

pub const EVERY: &[Named] = tests![
    an_instance_of_the_row_lock_guard_stops_when_leases_are_adopted,
    an_instance_of_the_lease_guard_stops_when_row_locks_are_adopted,
    an_instance_of_another_cut_stops,
    a_refused_release_is_kept,
    what_is_claimed_fits_one_transaction,
];
pub const POSTGRES: &[Named] =
    tests![a_cancel_waits_for_an_import, a_ledger_that_takes_no_writes_is_unavailable, adoptions_take_turns];

async fn an_instance_of_the_row_lock_guard_stops_when_leases_are_adopted(place: Place) {
    let stale = place.open_as(1, Guard::RowLock).await;
    let ids = stale.take_in(&batches(2)).await;
    let mine = holder();
    stale.ledger.charge(&stale.charge(mine, 1, Duration::from_secs(60))).await.expect("charged");
    stale.ledger.adopt_config(1, Guard::Lease, &operator()).await.expect("adopted");
    let refused =
        stale.ledger.charge(&stale.charge(mine, 1, Duration::from_secs(60))).await.expect_err("it is another guard now");
    assert!(matches!(refused, LedgerError::Differs { key: "worker.guard", .. }), "{refused}");
    // What it had in hand when it was frozen is not settled by it either.
    let before = stale.raw.tables().await;
    let work = SettleWork { authority: Authority::RowLock { holder: mine }, run: stale.run, batches: &ids[..1], limits: LIMITS };
    let outcomes = stale.ledger.settle(&work, &domain::step::NoProbe).await.expect("an answer");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome != SettleOutcome::Settled), "{outcomes:?}");
    assert_eq!(before, stale.raw.tables().await);
}

async fn an_instance_of_the_lease_guard_stops_when_row_locks_are_adopted(place: Place) {
    let stale = place.open().await;
    stale.hold(UNIT).await;
    stale.ledger.adopt_config(1, Guard::RowLock, &operator()).await.expect("adopted");
    let refused = stale.ledger.generation("ledger").await.expect_err("it is another guard now");
    assert!(matches!(refused, LedgerError::Differs { key: "worker.guard", .. }), "{refused}");
}

async fn an_instance_of_another_cut_stops(place: Place) {
    let stale = place.open_as(4, Guard::Lease).await;
    stale.hold(UNIT).await;
    stale.ledger.adopt_config(2, Guard::Lease, &operator()).await.expect("adopted");
    let refused = stale.ledger.generation("ledger").await.expect_err("it is cut otherwise now");
    assert!(matches!(refused, LedgerError::Differs { key: "worker.partitions", .. }), "{refused}");
}

async fn a_refused_release_is_kept(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(2)).await;
    books.hold(UNIT).await;
    assert_eq!(books.ledger.release(UNIT, old, &ids, false).await.expect("an answer"), 0);
    let kept = books.ledger.rejections(10).await.expect("a list");
    assert_eq!(kept.iter().map(|row| row.operation.as_str()).collect::<Vec<_>>(), ["release"]);
    assert_eq!(kept[0].stamp, old);
}

async fn what_is_claimed_fits_one_transaction(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(4)).await;
    let holder = books.hold(UNIT).await;
    let request = ClaimRequest { most_items: 5, ..books.request(holder, 100) };
    let ledger::settle::Claim::Work(claimed) = books.ledger.claim(&request).await.expect("an answer") else { panic!("held") };
    assert_eq!(claimed_ids(&claimed), ids[..2], "two items each, five at most");
    assert_eq!(books.state(ids[2]).await, "pending 0", "what does not fit is not charged");
}

/// An import decides by the identities it finds; a cancel that freed them meanwhile would let a line in without one.
async fn a_cancel_waits_for_an_import(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(1)).await;
    let raw = sqlx::PgPool::connect(&place.url).await.expect("the same database");
    let mut importing = raw.begin().await.expect("a transaction");
    sqlx::query("SELECT pg_advisory_xact_lock(hashtext('settled import'))").execute(&mut *importing).await.expect("its turn");
    let cancelling = tokio::spawn({
        let (books, id): (Books, _) = (books.clone(), ids[0]);
        async move { books.ledger.cancel_batch(id, &operator()).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!cancelling.is_finished() && books.state(ids[0]).await.starts_with("pending"));
    importing.commit().await.expect("done");
    cancelling.await.expect("no panic").expect("cancelled");
}

/// After a failover the old primary, or a standby: connected, and of no use. It is waited out like any outage.
async fn a_ledger_that_takes_no_writes_is_unavailable(place: Place) {
    let books = place.open().await;
    let raw = sqlx::PgPool::connect(&place.url).await.expect("the same database");
    let name: String = sqlx::query_scalar("SELECT current_database()").fetch_one(&raw).await.expect("a name");
    let read_only = format!("ALTER DATABASE \"{name}\" SET default_transaction_read_only = on");
    sqlx::raw_sql(sqlx::AssertSqlSafe(read_only)).execute(&raw).await.expect("set");
    let options = ledger::OpenOptions { migrate: false, ..place.options(1, Guard::Lease) };
    let standby = ledger::open(&options).await.expect("it can be read");
    assert!(standby.mint().await.expect_err("it cannot be written").is_unavailable());
    books.ledger.mint().await.expect("sessions from before go on");
}

async fn adoptions_take_turns(place: Place) {
    let books = place.open().await;
    books.ledger.generation("ledger").await.expect("adopted by asking");
    let adopting = (0..6).map(|_| {
        let books = books.clone();
        tokio::spawn(async move { books.ledger.adopt_source("ledger", &operator()).await.expect("its turn comes") })
    });
    let mut generations = Vec::new();
    for adopted in adopting.collect::<Vec<_>>() {
        generations.push(adopted.await.expect("no panic"));
    }
    generations.sort_unstable();
    assert_eq!(generations, [2, 3, 4, 5, 6, 7]);
    let old = stamp(1, 1, holder());
    assert_ne!(books.ledger.register(UNIT, old).await.expect("an answer"), old, "an old generation is refused for ever");
}
