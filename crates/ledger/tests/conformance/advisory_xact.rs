//! The advisory-xact guard: the unit's lock belongs to the transaction, and goes with it whatever becomes of it. What it shares with the
//! row-lock guard is in `row_lock.rs`.

use crate::fixture::{Books, LIMITS, Named, Place, UNIT, batch, batches, claimed_ids, holder, operator};
use crate::in_flight::{Inside, PATIENCE, blocking};
use domain::ids::{BatchId, HolderId};
use domain::item::ItemKind;
use domain::outcome::SettleOutcome;
use domain::step::NoProbe;
use domain::unit::Unit;
use lab::postgres::PostgresUrl;
use ledger::settle::{Authority, SettleWork, TxLimits};
use ledger::{Guard, LedgerError};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

pub const POSTGRES: &[Named] = tests![
    two_workers_are_never_in_one_unit_at_once,
    whoever_finds_a_unit_busy_is_told_and_charges_nothing,
    the_lock_is_shown_by_ledger_and_unit,
    r8_a_frozen_client_is_ended_and_its_lock_is_free,
    l20_a_killed_backend_leaves_no_lock,
    l20_an_error_or_a_dropped_future_leaves_no_lock,
    a_batch_of_another_unit_is_not_settled,
    a_row_lock_worker_settles_nothing_here,
];
pub const SQLITE: &[Named] = tests![an_engine_without_advisory_locks_says_so];

const HOUR: Duration = Duration::from_secs(3600);

async fn open(place: &Place) -> Books {
    place.open_as(1, Guard::AdvisoryXact).await
}

/// The advisory locks of two integers that anybody has in this database.
const LOCKED: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Waits until nobody has one.
fn until_free(server: &PostgresUrl) {
    let begun = std::time::Instant::now();
    while server.query(LOCKED).expect("an answer") != "0" {
        assert!(begun.elapsed() < PATIENCE, "the lock was left");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Each in a currency of its own: workers do not meet in any account.
const CURRENCIES: [&str; 6] = ["CHF", "EUR", "GBP", "NOK", "SEK", "USD"];

/// Charged before anybody settles, so that every worker has work of its own in the unit.
async fn charged_by_many(books: &Books, workers: usize) -> Vec<(HolderId, Vec<BatchId>)> {
    let of = |code: &&str| batch(code).line(code, ItemKind::Charge, "anna", 10_00, 30);
    books.take_in(&CURRENCIES.iter().take(workers).map(of).collect::<Vec<_>>()).await;
    let mut work = Vec::new();
    for _ in 0..workers {
        let me = holder();
        work.push((me, claimed_ids(&books.ledger.charge(&books.charge(me, 1, HOUR)).await.expect("charged"))));
    }
    work
}

async fn two_workers_are_never_in_one_unit_at_once(place: Place) {
    static INSIDE: AtomicI32 = AtomicI32::new(0);
    let books = open(&place).await;
    let work = charged_by_many(&books, 6).await;
    let given: BTreeSet<BatchId> = work.iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
    assert_eq!(given.len(), 6, "each one of its own");
    let settling = work.into_iter().map(|(me, ids)| {
        let books = books.clone();
        tokio::spawn(async move {
            let probe = Inside(|| {
                assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                thread::sleep(Duration::from_millis(30));
                INSIDE.fetch_sub(1, Ordering::SeqCst);
            });
            loop {
                match books.settle_unleased_probed(me, &ids, LIMITS, &probe).await {
                    Err(LedgerError::Busy(unit)) => assert_eq!(unit, UNIT),
                    outcomes => break assert_eq!(outcomes.expect("an answer"), [(ids[0], SettleOutcome::Settled)]),
                }
            }
        })
    });
    for settled in settling.collect::<Vec<_>>() {
        settled.await.expect("no panic");
    }
    books.assert_books_hold().await;
}

async fn whoever_finds_a_unit_busy_is_told_and_charges_nothing(place: Place) {
    let books = open(&place).await;
    let mut work = charged_by_many(&books, 2).await;
    books.take_in(&[batch("later").charge("anna", 10_00, 30)]).await;
    let ((me, mine), (other, theirs)) = (work.remove(0), work.remove(0));
    let (probe, is_inside, go_on) = blocking();
    let settling = {
        let (books, mine) = (books.clone(), mine.clone());
        tokio::spawn(async move { books.settle_unleased_probed(me, &mine, LIMITS, &probe).await })
    };
    tokio::task::block_in_place(|| is_inside.recv_timeout(PATIENCE)).expect("inside");
    // spawned: the thread that is blocked inside may be the one that looked after the sockets
    tokio::spawn(turned_away(books.clone(), other, theirs)).await.expect("no panic");
    go_on.send(()).expect("it waits");
    assert_eq!(settling.await.expect("no panic").expect("an answer"), [(mine[0], SettleOutcome::Settled)]);
    let charged = books.ledger.charge(&books.charge(other, 9, HOUR)).await.expect("an answer");
    assert_eq!(charged.batches.len(), 2, "the unit is free, and so is what was handed back");
}

async fn turned_away(books: Books, me: HolderId, mine: Vec<BatchId>) {
    let charged = books.ledger.charge(&books.charge(me, 9, HOUR)).await.expect("an answer");
    assert_eq!(claimed_ids(&charged), [], "charged in a unit that somebody is in");
    let error = books.settle_unleased_probed(me, &mine, LIMITS, &NoProbe).await.expect_err("somebody is in it");
    assert!(matches!(error, LedgerError::Busy(UNIT)) && error.is_contention(), "{error}");
    assert_eq!(books.state(mine[0]).await, "pending 1", "nothing of it is there");
    assert_eq!(books.ledger.uncharge(me, &mine).await.expect("an answer"), 1, "and it is no batch's fault");
}

async fn the_lock_is_shown_by_ledger_and_unit(place: Place) {
    let books = open(&place).await;
    let (me, ids) = charged_by_many(&books, 1).await.remove(0);
    let server = PostgresUrl::new(&place.url);
    // as an operator would look for it, from the id that the ledger shows
    let shown = "SELECT objid || ' ' || mode FROM pg_locks, ledger_meta WHERE locktype = 'advisory' AND objsubid = 2
        AND classid = ('x' || left(encode(sha256(ledger_id::text::bytea), 'hex'), 8))::bit(32)::bigint::oid";
    let probe = Inside(|| assert_eq!(server.query(shown).expect("an answer"), format!("{UNIT} ExclusiveLock")));
    books.settle_unleased_probed(me, &ids, LIMITS, &probe).await.expect("settled");
    until_free(&server);
}

/// Longer inside than its idle limit, and meanwhile its lock is gone: another worker is not kept out by it.
async fn r8_a_frozen_client_is_ended_and_its_lock_is_free(place: Place) {
    let books = open(&place).await;
    let (me, ids) = charged_by_many(&books, 1).await.remove(0);
    let before = books.raw.tables().await;
    let limits = TxLimits { idle: Duration::from_millis(200), ..LIMITS };
    let server = PostgresUrl::new(&place.url);
    let probe = Inside(|| until_free(&server));
    let error = books.settle_unleased_probed(me, &ids, limits, &probe).await.expect_err("the session is gone");
    assert!(matches!(error, LedgerError::Unavailable(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    assert_eq!(books.settle_unleased(holder(), &ids).await, [(ids[0], SettleOutcome::Settled)]);
    books.assert_books_hold().await;
}

async fn l20_a_killed_backend_leaves_no_lock(place: Place) {
    let books = open(&place).await;
    let (me, ids) = charged_by_many(&books, 1).await.remove(0);
    let server = PostgresUrl::new(&place.url);
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where datname = current_database() and application_name = 'settled' and state = 'idle in transaction'";
    let probe = Inside(|| {
        assert_eq!(server.query(LOCKED).expect("an answer"), "1");
        assert_eq!(server.query(end).expect("an answer"), "1");
        until_free(&server);
    });
    let error = books.settle_unleased_probed(me, &ids, LIMITS, &probe).await.expect_err("the session is gone");
    assert!(matches!(error, LedgerError::Unavailable(_)), "{error:?}");
    assert_eq!(books.settle_unleased(holder(), &ids).await, [(ids[0], SettleOutcome::Settled)]);
    books.assert_books_hold().await;
}

/// The session goes back to its pool, and on: nothing of the lock stays in it.
async fn l20_an_error_or_a_dropped_future_leaves_no_lock(place: Place) {
    let books = open(&place).await;
    let server = PostgresUrl::new(&place.url);
    let mut work = charged_by_many(&books, 2).await;
    let (me, ids) = work.remove(0);
    // an account that is missing is refused by the database, in the last statement of the transaction
    let hide = |from: &str, to: &str| format!("UPDATE account SET code = '{to}' WHERE code = '{from}'");
    server.query(&hide("clearing", "hidden")).expect("hidden");
    books.settle_unleased_probed(me, &ids, LIMITS, &NoProbe).await.expect_err("refused");
    until_free(&server);
    server.query(&hide("hidden", "clearing")).expect("shown");
    // dropped at ever later instants, until one is let to its end
    let (me, ids) = work.remove(0);
    for micros in (0..).map(|n| n * 300) {
        let settling = books.settle_unleased_probed(me, &ids, LIMITS, &NoProbe);
        if tokio::time::timeout(Duration::from_micros(micros), settling).await.is_ok() {
            break;
        }
        until_free(&server);
    }
    assert_eq!(books.settle_unleased(me, &ids).await, [(ids[0], SettleOutcome::Settled)]);
    books.assert_books_hold().await;
}

async fn a_batch_of_another_unit_is_not_settled(place: Place) {
    let books = open(&place).await;
    let (me, ids) = charged_by_many(&books, 1).await.remove(0);
    let authority = Authority::AdvisoryXact { holder: me, unit: Unit(UNIT.0 + 1) };
    let work = SettleWork { authority, run: books.run, batches: &ids, limits: LIMITS };
    let outcomes = books.ledger.settle(&work, &NoProbe).await.expect("an answer");
    assert!(matches!(outcomes[..], [(_, SettleOutcome::NotClaimable { .. })]), "{outcomes:?}");
    assert_eq!(books.state(ids[0]).await, "pending 1");
}

/// And the other way round: which guard it is is in the statement.
async fn a_row_lock_worker_settles_nothing_here(place: Place) {
    let books = open(&place).await;
    let (me, ids) = charged_by_many(&books, 1).await.remove(0);
    let work = SettleWork { authority: Authority::RowLock { holder: me }, run: books.run, batches: &ids, limits: LIMITS };
    let outcomes = books.ledger.settle(&work, &NoProbe).await.expect("an answer");
    assert!(matches!(outcomes[..], [(_, SettleOutcome::NotClaimable { .. })]), "{outcomes:?}");
    books.ledger.adopt_config(1, Guard::RowLock, &operator()).await.expect("adopted");
    let outcomes = books.settle_unleased_probed(me, &ids, LIMITS, &NoProbe).await.expect("an answer");
    assert!(matches!(outcomes[..], [(_, SettleOutcome::NotClaimable { .. })]), "{outcomes:?}");
    let refused = books.ledger.charge(&books.charge(me, 1, HOUR)).await.expect_err("it is another guard now");
    assert!(matches!(refused, LedgerError::Differs { key: "worker.guard", .. }), "{refused}");
}

async fn an_engine_without_advisory_locks_says_so(place: Place) {
    let refused = ledger::open(&place.options(1, Guard::AdvisoryXact)).await.err().expect("refused");
    assert!(refused.to_string().contains("advisory-xact needs PostgreSQL"), "{refused}");
    let books = place.open_as(1, Guard::RowLock).await;
    let refused = books.ledger.adopt_config(1, Guard::AdvisoryXact, &operator()).await.expect_err("refused");
    assert!(refused.to_string().contains("take lease or row-lock"), "{refused}");
    let charge = ledger::settle::Charge { unit: Some(UNIT), ..books.charge(holder(), 1, HOUR) };
    books.ledger.charge(&charge).await.expect_err("there is no lock to charge under");
    let ids = books.take_in(&batches(1)).await;
    let authority = Authority::AdvisoryXact { holder: holder(), unit: UNIT };
    let work = SettleWork { authority, run: books.run, batches: &ids, limits: LIMITS };
    books.ledger.settle(&work, &NoProbe).await.expect_err("nor one to settle under");
}
