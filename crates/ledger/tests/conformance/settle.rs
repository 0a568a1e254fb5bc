//! What becomes of batches in a settle transaction: every outcome, and nothing written where nothing may be.

use crate::fixture::{Books, LIMITS, Named, Place, UNIT, batch, batches, changed, day, holder, operator, stamp};
use domain::batch::BatchState;
use domain::fence::Stamp;
use domain::ids::BatchId;
use domain::outcome::SettleOutcome;
use domain::run::RunKey;
use domain::step::{Probe, Step};
use ledger::LedgerError;
use ledger::schedule::PlannedRun;
use std::collections::BTreeSet;
use std::sync::Mutex;

pub const EVERY: &[Named] = tests![
    batches_are_settled_once_and_say_so,
    the_steps_are_told,
    one_that_others_settled_is_already_settled,
    m6_a_superseded_holder_writes_nothing,
    a_superseded_holder_learns_that_it_is_settled,
    a_token_given_twice_settles_for_one,
    only_the_stale_part_is_refused,
    an_unknown_holder_has_lost_its_claim,
    a_cancelled_batch_is_not_claimable,
    what_was_not_claimed_is_not_settled,
    what_an_earlier_holder_claimed_is_not_settled_by_the_next,
    m6_a_failure_inside_leaves_nothing,
    m3_a_balance_that_leaves_64_bits_is_refused,
    r13_a_run_counts_what_is_in_the_ledger,
    nothing_to_settle_is_nothing,
];

async fn batches_are_settled_once_and_say_so(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(3)).await;
    let settled: Vec<_> = ids.iter().map(|id| (*id, SettleOutcome::Settled)).collect();
    assert_eq!(books.settle(stamp, &ids).await.expect("settled"), settled);
    let detail = books.ledger.batch(ids[0]).await.expect("the batch");
    assert_eq!((detail.row.state, detail.stamp), (BatchState::Settled, stamp));
    assert!(detail.settled_at.is_some());
    let keys = books.raw.texts("SELECT entry_key FROM journal_entry ORDER BY id").await;
    assert_eq!(keys, ids.iter().map(|id| format!("settle:{id}:1:EUR")).collect::<Vec<_>>());
    let before = books.raw.tables().await;
    assert_eq!(books.settle(stamp, &ids).await.expect("a repeat"), settled);
    assert_eq!(before, books.raw.tables().await);
    // also after a newer holder came: the commit was first, only its reply may have been lost
    books.hold(UNIT).await;
    assert_eq!(books.settle(stamp, &ids).await.expect("a repeat"), settled);
    books.assert_books_hold().await;
}

/// Remembers the steps it was told.
#[derive(Default)]
struct Told(Mutex<Vec<Step>>);

impl Probe for Told {
    fn at(&self, step: Step) {
        self.0.lock().expect("not poisoned").push(step);
    }
}

async fn the_steps_are_told(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(1)).await;
    let told = Told::default();
    books.settle_probed(stamp, &ids, LIMITS, &told).await.expect("settled");
    assert_eq!(*told.0.lock().expect("not poisoned"), [Step::InsideSettleTx]);
}

async fn one_that_others_settled_is_already_settled(place: Place) {
    let books = place.open().await;
    let ids = books.settled(&batches(2)).await;
    let next = books.hold(UNIT).await;
    let before = books.raw.tables().await;
    let outcomes = books.settle(next, &ids).await.expect("an answer");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == SettleOutcome::AlreadySettled), "{outcomes:?}");
    assert_eq!(before, books.raw.tables().await);
}

async fn m6_a_superseded_holder_writes_nothing(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(2)).await;
    let new = books.hold(UNIT).await;
    let before = books.raw.tables().await;
    let outcomes = books.settle(old, &ids).await.expect("an answer");
    assert_eq!(
        outcomes,
        [(ids[0], SettleOutcome::Fenced { settled: false }), (ids[1], SettleOutcome::Fenced { settled: false })]
    );
    assert_eq!(changed(&before, &books.raw.tables().await), only("fence_rejection"));
    let kept = "SELECT operation || ' ' || batch_id || ' ' || token || ' ' || stored_token FROM fence_rejection ORDER BY id";
    let refused = |id: BatchId| format!("settle {id} {} {}", old.fence.token, new.fence.token);
    assert_eq!(books.raw.texts(kept).await, [refused(ids[0]), refused(ids[1])]);
}

async fn a_superseded_holder_learns_that_it_is_settled(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(1)).await;
    let new = books.hold(UNIT).await;
    books.claim(new, 1).await;
    books.settle(new, &ids).await.expect("settled");
    let before = books.raw.tables().await;
    assert_eq!(books.settle(old, &ids).await.expect("an answer"), [(ids[0], SettleOutcome::Fenced { settled: true })]);
    assert_eq!(changed(&before, &books.raw.tables().await), only("fence_rejection"));
}

/// A repeat of work whose first half was committed before a newer holder came.
async fn only_the_stale_part_is_refused(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(3)).await;
    books.settle(old, &ids[1..2]).await.expect("settled");
    books.hold(UNIT).await;
    let fenced = SettleOutcome::Fenced { settled: false };
    let outcomes = books.settle(old, &ids).await.expect("an answer");
    assert_eq!(outcomes, [(ids[0], fenced), (ids[1], SettleOutcome::Settled), (ids[2], fenced)]);
    assert_eq!(books.raw.count("fence_rejection").await, 2);
    books.assert_books_hold().await;
}

async fn an_unknown_holder_has_lost_its_claim(place: Place) {
    let books = place.open().await;
    let (known, ids) = books.claimed(&batches(1)).await;
    let before = books.raw.tables().await;
    let unknown = stamp(known.fence.generation, known.fence.token + 1, known.holder);
    assert_eq!(books.settle(unknown, &ids).await.expect("an answer"), [(ids[0], SettleOutcome::ClaimLost)]);
    assert_eq!(before, books.raw.tables().await);
}

async fn a_cancelled_batch_is_not_claimable(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(3)).await;
    books.ledger.release(UNIT, stamp, &ids[..1], true).await.expect("released");
    books.ledger.cancel_batch(ids[0], &operator()).await.expect("cancelled");
    let outcomes = books.settle(stamp, &ids).await.expect("an answer");
    let cancelled = SettleOutcome::NotClaimable { state: BatchState::Cancelled };
    assert_eq!(outcomes, [(ids[0], cancelled), (ids[1], SettleOutcome::Settled), (ids[2], SettleOutcome::Settled)]);
    books.assert_books_hold().await;
}

async fn what_was_not_claimed_is_not_settled(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(1)).await;
    let stamp = books.hold(UNIT).await;
    let before = books.raw.tables().await;
    let pending = SettleOutcome::NotClaimable { state: BatchState::Pending };
    assert_eq!(books.settle(stamp, &ids).await.expect("an answer"), [(ids[0], pending)]);
    assert_eq!(before, books.raw.tables().await);
}

/// Its attempt is not charged to the newer holder yet: what it did not claim it does not settle.
async fn what_an_earlier_holder_claimed_is_not_settled_by_the_next(place: Place) {
    let books = place.open().await;
    let (_, ids) = books.claimed(&batches(1)).await;
    let next = books.hold(UNIT).await;
    let before = books.raw.tables().await;
    let settling = SettleOutcome::NotClaimable { state: BatchState::Settling };
    assert_eq!(books.settle(next, &ids).await.expect("an answer"), [(ids[0], settling)]);
    assert_eq!(before, books.raw.tables().await);
}

/// A faulty lock service gave one token to two: what the first has claimed is not the second's to settle.
async fn a_token_given_twice_settles_for_one(place: Place) {
    let books = place.open().await;
    let (first, ids) = books.claimed(&batches(1)).await;
    let second = Stamp { holder: holder(), ..first };
    let before = books.raw.tables().await;
    assert_eq!(books.settle(second, &ids).await.expect("an answer"), [(ids[0], SettleOutcome::Fenced { settled: false })]);
    assert_eq!(changed(&before, &books.raw.tables().await), only("fence_rejection"));
    assert_eq!(books.settle(first, &ids).await.expect("an answer"), [(ids[0], SettleOutcome::Settled)]);
}

/// One account is missing, so that the last statement of the transaction fails: nothing of the others stays either.
async fn m6_a_failure_inside_leaves_nothing(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&[batch("A").charge("anna", 1_00, 0), batch("B").charge("bert", 1_00, 0)]).await;
    books.raw.corrupt("DELETE FROM account WHERE code = 'merchant_payable:bert'").await;
    let before = books.raw.tables().await;
    let error = books.settle(stamp, &ids).await.expect_err("an account is missing");
    assert!(matches!(error, LedgerError::Database(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    books.raw.run("INSERT INTO account (code, currency) VALUES ('merchant_payable:bert', 'EUR')").await.expect("an account");
    let outcomes = books.settle(stamp, &ids).await.expect("settled");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == SettleOutcome::Settled), "{outcomes:?}");
    books.assert_books_hold().await;
}

async fn m3_a_balance_that_leaves_64_bits_is_refused(place: Place) {
    let books = place.open().await;
    let huge = |name: &str, merchant: &str| batch(name).charge(merchant, i64::MAX - 5, 0);
    books.settled(&[huge("A", "anna")]).await;
    let (stamp, ids) = books.claimed(&[batch("ok").charge("bert", 5, 0), huge("B", "anna")]).await;
    let before = books.raw.tables().await;
    let error = books.settle(stamp, &ids).await.expect_err("two of them are too much");
    assert!(matches!(error, LedgerError::Overflow(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    // the harmless one goes in by itself
    settle_for(&books, stamp, &ids[..1]).await;
    books.assert_books_hold().await;
}

async fn r13_a_run_counts_what_is_in_the_ledger(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(3)).await;
    assert_eq!(books.ledger.run_settled(books.run).await.expect("a count"), 0);
    books.settle(stamp, &ids[..2]).await.expect("settled");
    assert_eq!(books.ledger.run_settled(books.run).await.expect("a count"), 2);
    let other = RunKey { slot: "other".to_owned(), ..RunKey::manual(day()) };
    let run = books.ledger.open_run(&PlannedRun::by_hand(other), holder()).await.expect("a run");
    settle_for(&Books { run, ..books.clone() }, stamp, &ids[2..]).await;
    assert_eq!(books.ledger.run_settled(run).await.expect("a count"), 1);
    assert_eq!(books.ledger.run_settled(books.run).await.expect("a count"), 2);
}

async fn settle_for(books: &Books, stamp: domain::fence::Stamp, ids: &[BatchId]) {
    let outcomes = books.settle(stamp, ids).await.expect("an answer");
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == SettleOutcome::Settled), "{outcomes:?}");
}

async fn nothing_to_settle_is_nothing(place: Place) {
    let books = place.open().await;
    let stamp = books.hold(UNIT).await;
    assert_eq!(books.settle(stamp, &[]).await.expect("an answer"), []);
}

fn only(table: &str) -> BTreeSet<String> {
    BTreeSet::from([table.to_owned()])
}
