//! In which order a correction locks: the configuration, then the batches by id. Whoever locks them in that order waits for it and
//! never with it.

use crate::fixture::{Books, Named, Place, UNIT, batches};
use crate::in_flight::PATIENCE;
use ledger::LedgerError;
use ledger::import::ImportOutcome;
use sqlx::Connection;
use std::time::{Duration, Instant};

pub const POSTGRES: &[Named] = tests![
    the_configuration_is_locked_before_the_batches,
    batches_are_handed_back_in_their_order,
    a_deadlock_with_a_worker_is_not_the_operators_business,
];

/// As an adoption does it, which locks the batches after that. The other way round the two would wait for each other.
async fn the_configuration_is_locked_before_the_batches(place: Place) {
    let books = place.open().await;
    let ids = books.settled(&batches(2)).await;
    let mut adopting = sqlx::PgConnection::connect(&place.url).await.expect("the same database");
    let begin = "SET lock_timeout = '300ms'; BEGIN; SELECT 1 FROM ledger_meta FOR UPDATE";
    sqlx::raw_sql(begin).execute(&mut adopting).await.expect("locked");
    let replacing = replacing(&books);
    wait_until_locked_out(&books, "%ledger_meta FOR SHARE%").await;
    let lock = "SELECT 1 FROM settlement_batch WHERE id = ANY($1) FOR UPDATE";
    sqlx::query(lock).bind(ids.iter().map(|id| id.0).collect::<Vec<_>>()).execute(&mut adopting).await.expect("nobody has them");
    sqlx::raw_sql("COMMIT").execute(&mut adopting).await.expect("done");
    assert_eq!(replacing.await.expect("no panic").expect("replaced").replaced.len(), 2);
    books.assert_books_hold().await;
}

/// The same order as a replacement has, whatever order the rows lie in: else the two would wait for each other.
async fn batches_are_handed_back_in_their_order(place: Place) {
    let mut replacing = sqlx::PgConnection::connect(&place.url).await.expect("the same database");
    // so that rows are found as they lie, as they are in a large table that many are wanted of
    let no_index = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET enable_indexscan = off', current_database());
        EXECUTE format('ALTER DATABASE %I SET enable_bitmapscan = off', current_database()); END $$";
    sqlx::raw_sql(no_index).execute(&mut replacing).await.expect("for sessions from now on");
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(2)).await;
    // the first lies behind the second
    let move_first = "UPDATE settlement_batch SET state = state WHERE id = $1";
    sqlx::query(move_first).bind(ids[0].0).execute(&mut replacing).await.expect("moved");
    sqlx::raw_sql("BEGIN").execute(&mut replacing).await.expect("begun");
    let lock = "SELECT 1 FROM settlement_batch WHERE id = $1 FOR UPDATE";
    sqlx::query(lock).bind(ids[0].0).execute(&mut replacing).await.expect("locked");
    let handing_back = {
        let (books, ids) = (books.clone(), [ids[1], ids[0]]);
        tokio::spawn(async move { books.ledger.release(UNIT, stamp, &ids, true).await })
    };
    wait_until_locked_out(&books, "UPDATE settlement_batch%").await;
    let at_once = "SELECT 1 FROM settlement_batch WHERE id = $1 FOR UPDATE NOWAIT";
    sqlx::query(at_once).bind(ids[1].0).execute(&mut replacing).await.expect("it does not have the second yet");
    sqlx::raw_sql("COMMIT").execute(&mut replacing).await.expect("done");
    assert_eq!(handing_back.await.expect("no panic").expect("handed back"), 2);
}

/// A correction of both batches, under way.
fn replacing(books: &Books) -> tokio::task::JoinHandle<Result<ImportOutcome, LedgerError>> {
    let books = books.clone();
    let corrected: Vec<_> = batches(2).into_iter().map(|draft| draft.charge("carl", 5_00, 0)).collect();
    tokio::spawn(async move { books.replace(&corrected).await })
}

async fn wait_until_locked_out(books: &Books, statement: &str) {
    let waiting =
        format!("pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '{statement}'");
    let begun = Instant::now();
    while books.raw.count(&waiting).await == 0 {
        assert!(begun.elapsed() < PATIENCE, "nobody waits in {statement}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whoever locks batches in another order than by id crosses with a replacement; the server ends one of them.
async fn a_deadlock_with_a_worker_is_not_the_operators_business(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(2)).await;
    let mut worker = sqlx::PgConnection::connect(&place.url).await.expect("the same database");
    // the replacement is the one that looks first, and gives way
    sqlx::raw_sql("SET deadlock_timeout = '20s'; BEGIN").execute(&mut worker).await.expect("begun");
    let lock = "SELECT 1 FROM settlement_batch WHERE id = $1 FOR UPDATE";
    sqlx::query(lock).bind(ids[1].0).execute(&mut worker).await.expect("locked");
    let replacing = replacing(&books);
    wait_until_locked_out(&books, "%settlement_batch%FOR UPDATE%").await;
    sqlx::query(lock).bind(ids[0].0).execute(&mut worker).await.expect("the other one gave way");
    sqlx::raw_sql("COMMIT").execute(&mut worker).await.expect("done");
    assert_eq!(replacing.await.expect("no panic").expect("tried again").replaced.len(), 2);
    books.assert_books_hold().await;
}
