//! Settle transactions that do not come to their end undisturbed: a panic, a takeover, a server that ends the session, a reply
//! that is lost. The ledger decides, and what it decided is read back.

use crate::fixture::{Books, LIMITS, Named, Place, UNIT, batches, holder, stamp};
use domain::fence::Stamp;
use domain::ids::BatchId;
use domain::outcome::SettleOutcome;
use domain::step::{Probe, Step};
use lab::postgres::PostgresUrl;
use ledger::LedgerError;
use ledger::settle::TxLimits;
use sqlx::Connection;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

pub const EVERY: &[Named] = tests![m6_a_panic_inside_leaves_nothing, a_takeover_waits_for_the_commit_in_flight];
pub const POSTGRES: &[Named] = tests![
    a_lost_reply_is_read_back_as_settled,
    a_session_that_was_ended_left_nothing,
    r8_a_frozen_client_is_ended_by_the_server,
    r8_a_client_with_an_unread_result_is_ended_too,
    a_wait_for_a_lock_is_ended_and_told_from_work,
];

pub const PATIENCE: Duration = Duration::from_secs(60);

/// Calls a function inside the settle transaction: everything is written, nothing committed.
pub struct Inside<F>(pub F);

impl<F: Fn() + Send + Sync> Probe for Inside<F> {
    fn at(&self, step: Step) {
        if step == Step::InsideSettleTx {
            self.0();
        }
    }
}

async fn m6_a_panic_inside_leaves_nothing(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(2)).await;
    let before = books.raw.tables().await;
    let task = {
        let (books, ids) = (books.clone(), ids.clone());
        tokio::spawn(async move {
            let probe = Inside(|| std::panic::resume_unwind(Box::new("on purpose")));
            books.settle_probed(stamp, &ids, LIMITS, &probe).await
        })
    };
    assert!(task.await.expect_err("it panicked").is_panic());
    assert_eq!(before, books.raw.tables().await);
    assert_settles(&books, stamp, &ids).await;
}

async fn assert_settles(books: &Books, stamp: Stamp, ids: &[BatchId]) {
    let outcomes = books.settle(stamp, ids).await.expect("an answer");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == SettleOutcome::Settled), "{outcomes:?}");
    books.assert_books_hold().await;
}

/// Says that it is inside, and stays there until it is told to go on.
pub fn blocking() -> (impl Probe + 'static, Receiver<()>, Sender<()>) {
    let (inside, is_inside) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let probe = Inside(move || {
        inside.send(()).expect("the test waits");
        may_go_on.lock().expect("not poisoned").recv_timeout(PATIENCE).expect("told to go on");
    });
    (probe, is_inside, go_on)
}

/// Fails without the lock that a settle transaction has on the fence: the newer holder would register, and see the older
/// one's batch settled only later.
async fn a_takeover_waits_for_the_commit_in_flight(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(1)).await;
    let (probe, is_inside, go_on) = blocking();
    let settling = {
        let (books, ids) = (books.clone(), ids.clone());
        tokio::spawn(async move { books.settle_probed(old, &ids, LIMITS, &probe).await })
    };
    tokio::task::block_in_place(|| is_inside.recv_timeout(PATIENCE)).expect("inside");
    let new = stamp(old.fence.generation, old.fence.token + 1, holder());
    let taking_over = {
        let (books, id) = (books.clone(), ids[0]);
        tokio::spawn(async move { (books.ledger.register(UNIT, new).await.expect("an answer"), books.state(id).await) })
    };
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!taking_over.is_finished(), "registered while an older holder was committing");
    go_on.send(()).expect("it waits");
    let (registered, state) = taking_over.await.expect("no panic");
    assert_eq!((registered, state.as_str()), (new, "settled 1"));
    assert_eq!(settling.await.expect("no panic").expect("an answer"), [(ids[0], SettleOutcome::Settled)]);
    books.assert_books_hold().await;
}

/// The server commits and its answer never arrives.
async fn a_lost_reply_is_read_back_as_settled(place: Place) {
    let wire = Wire::to(&place.url);
    let books = Place::at(&wire.url).open().await;
    let (stamp, ids) = books.claimed(&batches(3)).await;
    let probe = Inside(|| wire.lose_next_reply.store(true, Ordering::SeqCst));
    let outcomes = books.settle_probed(stamp, &ids, LIMITS, &probe).await.expect("an answer");
    assert!(!wire.lose_next_reply.load(Ordering::SeqCst), "no reply was lost");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == SettleOutcome::Settled), "{outcomes:?}");
    assert_eq!(books.raw.count("journal_entry").await, 3);
    books.assert_books_hold().await;
}

/// The network between a ledger and its server.
struct Wire {
    url: String,
    lose_next_reply: Arc<AtomicBool>,
}

impl Wire {
    fn to(url: &str) -> Wire {
        let (before, rest) = url.split_once('@').expect("user@host");
        let (server, database) = rest.split_once('/').expect("host:port/database");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("{before}@{}/{database}", listener.local_addr().expect("an address"));
        let lose_next_reply = Arc::new(AtomicBool::new(false));
        let (server, lose) = (server.to_owned(), Arc::clone(&lose_next_reply));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&server).expect("the server");
                let (client_end, server_end) = (client.try_clone().expect("a handle"), server.try_clone().expect("a handle"));
                thread::spawn(move || pump(&client, &server, &AtomicBool::new(false)));
                let lose = Arc::clone(&lose);
                thread::spawn(move || pump(&server_end, &client_end, &lose));
            }
        });
        Wire { url, lose_next_reply }
    }
}

/// Passes bytes on, until an end; or until the next ones are to be lost, and both ends with them.
fn pump(mut from: &TcpStream, mut to: &TcpStream, lose: &AtomicBool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if lose.swap(false, Ordering::SeqCst) || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

async fn a_session_that_was_ended_left_nothing(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(2)).await;
    let before = books.raw.tables().await;
    let server = PostgresUrl::new(&place.url);
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where datname = current_database() and application_name = 'settled' and state = 'idle in transaction'";
    let probe = Inside(|| assert_eq!(server.query(end).expect("an answer"), "1"));
    let error = books.settle_probed(stamp, &ids, LIMITS, &probe).await.expect_err("the session is gone");
    assert!(matches!(error, LedgerError::Unavailable(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    assert_settles(&books, stamp, &ids).await;
}

/// Longer inside than its idle limit, and meanwhile its row locks are gone: a newer holder does not wait for it.
async fn r8_a_frozen_client_is_ended_by_the_server(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(2)).await;
    let before = books.raw.tables().await;
    let limits = TxLimits { idle: Duration::from_millis(200), ..LIMITS };
    let server = PostgresUrl::new(&place.url);
    let probe = Inside(|| {
        thread::sleep(Duration::from_millis(200));
        let locked = server.query("set lock_timeout = '20s'; select 1 from unit_fence for update");
        assert_eq!(locked.expect("nobody holds it for long"), "1");
    });
    let error = books.settle_probed(stamp, &ids, limits, &probe).await.expect_err("the session is gone");
    assert!(matches!(error, LedgerError::Unavailable(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    assert_settles(&books, stamp, &ids).await;
}

/// Frozen between its statement and the answer. The server gets rid of an answer of a few rows (it fits into the socket), is
/// idle, and ends the session; it would wait for ever to send a large one, which is why no statement of a settle transaction
/// returns more than the ids of its batches.
async fn r8_a_client_with_an_unread_result_is_ended_too(place: Place) {
    let books = place.open().await;
    books.take_in(&batches(300)).await;
    let server = PostgresUrl::new(&place.url);
    let mut frozen = sqlx::PgConnection::connect(&place.url).await.expect("the same database");
    let begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '2s'";
    sqlx::raw_sql(begin).execute(&mut frozen).await.expect("begun");
    let mut unread = Box::pin(sqlx::raw_sql("UPDATE settlement_batch SET attempts = 0 RETURNING id").fetch_all(&mut frozen));
    let sent = std::future::poll_fn(|context| Poll::Ready(unread.as_mut().poll(context).is_pending())).await;
    assert!(sent, "the statement is on its way, its answer is not read");
    let holding =
        "select count(*) from pg_stat_activity where state = 'idle in transaction' and query like 'UPDATE settlement_batch%'";
    let begun = std::time::Instant::now();
    while server.query(holding).expect("an answer") != "1" {
        assert!(begun.elapsed() < PATIENCE, "the statement never ran");
        thread::sleep(Duration::from_millis(20));
    }
    let locked = server.query("set lock_timeout = '20s'; select count(*) from (select 1 from settlement_batch for update) b");
    assert_eq!(locked.expect("the session is ended, its row locks are gone"), "300");
    assert_eq!(unread.await.expect("the answer was sent before").len(), 300);
    sqlx::raw_sql("COMMIT").execute(&mut frozen).await.expect_err("what it read is not in the ledger");
}

async fn a_wait_for_a_lock_is_ended_and_told_from_work(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(2)).await;
    let raw = sqlx::PgPool::connect(&place.url).await.expect("the same database");
    let mut locked = raw.begin().await.expect("a transaction");
    sqlx::query("SELECT 1 FROM settlement_batch FOR NO KEY UPDATE").execute(&mut *locked).await.expect("locked");
    let limits = TxLimits { total: Duration::from_secs(2), ..LIMITS };
    let settling = books.settle_probed(stamp, &ids, limits, &domain::step::NoProbe);
    // all tries together, and the reading back: somebody may wait for our end
    let ended = tokio::time::timeout(limits.total, settling).await;
    let error = ended.expect("it has a limit").expect_err("it waited");
    assert!(matches!(error, LedgerError::Contended(_)), "{error:?}");
    let handing_back = books.ledger.release(UNIT, stamp, &ids, true);
    let ended = tokio::time::timeout(Duration::from_secs(10), handing_back).await;
    locked.rollback().await.expect("released");
    let error = ended.expect("it has a limit too").expect_err("it waited");
    assert!(matches!(error, LedgerError::Contended(_)), "{error:?}");
    assert_settles(&books, stamp, &ids).await;
}
