//! The guards without a lease: no fence, only the state of the row. The same cases for row-lock and for advisory-xact, whose own are in
//! `advisory_xact.rs`.

use crate::fixture::{Books, MAX_ATTEMPTS, Named, Place, batches, claimed_ids, holder, operator};
use domain::batch::BatchState;
use domain::outcome::SettleOutcome;
use ledger::Guard;
use std::collections::BTreeSet;
use std::time::Duration;

/// The cases, under a guard.
macro_rules! under {
    ($module:literal, $guard:expr) => {
        under!($module, $guard,
            a_charged_batch_is_one_workers_until_its_time_is_over,
            workers_at_once_are_given_different_batches,
            r5_charged_too_often_is_quarantined_alone,
            what_is_in_its_last_try_is_not_given_up,
            two_workers_settle_one_batch_once,
            a_late_worker_learns_that_it_is_settled,
            a_cancelled_batch_is_not_claimable,
            a_charge_is_taken_back_by_who_made_it,
        )
    };
    ($module:literal, $guard:expr, $($name:ident),* $(,)?) => {
        &[$((concat!("conformance::", $module, "::", stringify!($name)), |place| Box::pin($name(place, $guard)))),*]
    };
}

pub const EVERY: &[Named] = under!("row_lock", Guard::RowLock);
pub const ADVISORY: &[Named] = under!("advisory_xact", Guard::AdvisoryXact);

/// Longer and shorter than any test.
const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(1);

/// Row locks know no units; under the other guard all batches are of one.
async fn open(place: &Place, guard: Guard) -> Books {
    place.open_as(if guard == Guard::RowLock { 2 } else { 1 }, guard).await
}

async fn a_charged_batch_is_one_workers_until_its_time_is_over(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(3)).await;
    let mine = books.ledger.charge(&books.charge(holder(), 2, HOUR)).await.expect("charged");
    assert_eq!(claimed_ids(&mine), ids[..2]);
    assert!(mine.batches.iter().all(|batch| (batch.items, batch.attempts) == (2, 1)));
    assert_eq!(books.state(ids[0]).await, "pending 1");
    let others = books.ledger.charge(&books.charge(holder(), 2, MOMENT)).await.expect("charged");
    assert_eq!(claimed_ids(&others), ids[2..]);
    tokio::time::sleep(10 * MOMENT).await;
    let again = books.ledger.charge(&books.charge(holder(), 2, HOUR)).await.expect("charged");
    assert_eq!((claimed_ids(&again), again.batches[0].attempts), (ids[2..].to_vec(), 2));
    assert_eq!(claimed_ids(&books.ledger.charge(&books.charge(holder(), 2, HOUR)).await.expect("an answer")), []);
}

async fn a_charge_is_taken_back_by_who_made_it(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(2)).await;
    let (me, other) = (holder(), holder());
    books.ledger.charge(&books.charge(me, 2, MOMENT)).await.expect("charged");
    assert_eq!(books.ledger.uncharge(other, &ids).await.expect("an answer"), 0, "not its own");
    assert_eq!(books.ledger.uncharge(me, &ids).await.expect("an answer"), 2);
    assert_eq!(books.state(ids[0]).await, "pending 0");
    let again = books.ledger.charge(&books.charge(other, 2, HOUR)).await.expect("charged");
    assert_eq!(claimed_ids(&again), ids, "as if it had never been charged");
    assert_eq!(books.ledger.uncharge(me, &ids).await.expect("an answer"), 0, "somebody else has it by now");
}

async fn workers_at_once_are_given_different_batches(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(24)).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let books = books.clone();
            tokio::spawn(async move { books.ledger.charge(&books.charge(holder(), 3, HOUR)).await.expect("charged") })
        })
        .collect();
    let mut given = BTreeSet::new();
    for task in tasks {
        for batch in task.await.expect("no panic").batches {
            assert!(given.insert(batch.id), "given twice");
            assert_eq!(batch.attempts, 1);
        }
    }
    assert!(!given.is_empty() && given.is_subset(&ids.into_iter().collect()));
}

async fn r5_charged_too_often_is_quarantined_alone(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(3)).await;
    let mut given_up = Vec::new();
    for _ in 0..20 {
        let claimed = books.ledger.charge(&books.charge(holder(), 3, MOMENT)).await.expect("charged");
        given_up.extend(claimed.quarantined.iter().copied());
        let given = claimed_ids(&claimed);
        if !given.contains(&ids[1]) {
            books.settle_unleased(holder(), &given).await;
        }
        tokio::time::sleep(10 * MOMENT).await;
    }
    assert_eq!(given_up, [ids[1]]);
    assert_eq!(books.state(ids[1]).await, format!("quarantined {MAX_ATTEMPTS}"));
    assert!(books.state(ids[0]).await.starts_with("settled") && books.state(ids[2]).await.starts_with("settled"));
    books.assert_books_hold().await;
}

async fn what_is_in_its_last_try_is_not_given_up(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(1)).await;
    for attempt in 1..=MAX_ATTEMPTS {
        let in_hand = if attempt == MAX_ATTEMPTS { HOUR } else { MOMENT };
        assert_eq!(claimed_ids(&books.ledger.charge(&books.charge(holder(), 1, in_hand)).await.expect("charged")), ids);
        tokio::time::sleep(10 * MOMENT).await;
    }
    assert_eq!(books.ledger.charge(&books.charge(holder(), 1, HOUR)).await.expect("an answer").quarantined, []);
    assert_eq!(books.settle_unleased(holder(), &ids).await, [(ids[0], SettleOutcome::Settled)]);
}

async fn two_workers_settle_one_batch_once(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(20)).await;
    let worker = || {
        let (books, ids) = (books.clone(), ids.clone());
        tokio::spawn(async move { books.settle_unleased(holder(), &ids).await })
    };
    let (one, other) = (worker(), worker());
    for (one, other) in one.await.expect("no panic").into_iter().zip(other.await.expect("no panic")) {
        let outcomes = [one.1, other.1];
        assert!(outcomes.contains(&SettleOutcome::Settled) && outcomes.contains(&SettleOutcome::AlreadySettled), "{outcomes:?}");
    }
    assert_eq!(books.raw.count("journal_entry").await, 20);
    books.assert_books_hold().await;
}

async fn a_late_worker_learns_that_it_is_settled(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(2)).await;
    let (late, other) = (holder(), holder());
    assert_eq!(books.settle_unleased(other, &ids).await[0].1, SettleOutcome::Settled);
    assert_eq!(books.settle_unleased(other, &ids).await[1].1, SettleOutcome::Settled, "its reply was lost");
    let before = books.raw.tables().await;
    assert_eq!(books.settle_unleased(late, &ids).await[0].1, SettleOutcome::AlreadySettled);
    assert_eq!(before, books.raw.tables().await);
}

async fn a_cancelled_batch_is_not_claimable(place: Place, guard: Guard) {
    let books = open(&place, guard).await;
    let ids = books.take_in(&batches(2)).await;
    let me = holder();
    books.ledger.charge(&books.charge(me, 2, HOUR)).await.expect("charged");
    books.ledger.cancel_batch(ids[0], &operator()).await.expect("cancelled");
    let outcomes = books.settle_unleased(me, &ids).await;
    let cancelled = SettleOutcome::NotClaimable { state: BatchState::Cancelled };
    assert_eq!(outcomes, [(ids[0], cancelled), (ids[1], SettleOutcome::Settled)]);
    books.assert_books_hold().await;
}
