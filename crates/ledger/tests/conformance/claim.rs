//! Claims: what is worked next, and what it costs.

use crate::fixture::{
    Books, MAX_ATTEMPTS, Named, Place, UNIT, batch, batches, changed, claimed_ids, day, holder, operator, stamp,
};
use domain::ids::BatchId;
use domain::run::RunKey;
use domain::unit::Unit;
use ledger::schedule::{Due, PlannedRun};
use ledger::settle::Claim;
use std::collections::BTreeSet;

pub const EVERY: &[Named] = tests![
    fresh_batches_come_many_at_a_time_in_order,
    a_repeat_is_given_its_own_and_charges_nothing,
    charged_batches_come_alone_least_charged_first,
    r5_a_batch_that_kills_its_worker_is_quarantined_alone,
    r4_a_dead_holders_batches_are_claimed_at_once,
    only_what_is_due_is_given,
    a_superseded_holder_is_fenced,
    an_unknown_holder_has_lost_its_claim,
    released_batches_are_charged_or_not,
    only_ones_own_is_released,
    r2_what_is_finished_meanwhile_is_left_alone,
    r3_a_run_is_opened_once,
];

async fn fresh_batches_come_many_at_a_time_in_order(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(5)).await;
    let stamp = books.hold(UNIT).await;
    let first = books.claim(stamp, 3).await;
    assert_eq!(claimed_ids(&first), ids[..3]);
    assert!(first.batches.iter().all(|batch| (batch.items, batch.attempts) == (2, 1)));
    assert_eq!(first.quarantined, []);
    assert_eq!((books.state(ids[0]).await, books.state(ids[3]).await), ("settling 1".into(), "pending 0".into()));
    books.settle(stamp, &ids[..3]).await.expect("settled");
    assert_eq!(claimed_ids(&books.claim(stamp, 3).await), ids[3..]);
    books.settle(stamp, &ids[3..]).await.expect("settled");
    assert_eq!(claimed_ids(&books.claim(stamp, 3).await), []);
    assert_eq!(books.ledger.due_units(&Due::all(day())).await.expect("units"), []);
}

async fn a_repeat_is_given_its_own_and_charges_nothing(place: Place) {
    let books = place.open().await;
    books.take_in(&batches(5)).await;
    let stamp = books.hold(UNIT).await;
    let first = books.claim(stamp, 3).await;
    let before = books.raw.tables().await;
    assert_eq!(books.claim(stamp, 3).await, first);
    assert_eq!(before, books.raw.tables().await);
}

async fn charged_batches_come_alone_least_charged_first(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(4)).await;
    let stamp = books.hold(UNIT).await;
    charge(&books, stamp, &ids[..1], 2).await;
    charge(&books, stamp, &ids[1..3], 1).await;
    let mut given = Vec::new();
    for _ in 0..4 {
        let claimed = books.claim(stamp, 10).await;
        given.push((claimed_ids(&claimed), claimed.batches[0].attempts));
        books.settle(stamp, &claimed_ids(&claimed)).await.expect("settled");
    }
    assert_eq!(given, [(vec![ids[3]], 1), (vec![ids[1]], 2), (vec![ids[2]], 2), (vec![ids[0]], 3)]);
}

/// Charges batches, as that many workers do that die with them.
async fn charge(books: &Books, stamp: domain::fence::Stamp, ids: &[BatchId], attempts: i32) {
    for id in ids {
        books.raw.run(&format!("UPDATE settlement_batch SET attempts = {attempts} WHERE id = {id}")).await.expect("charged");
    }
    assert_eq!(books.ledger.fences().await.expect("fences")[0].stamp, stamp);
}

/// Every holder dies with what it claimed; the poisoned batch comes last among them, and takes none along.
async fn r5_a_batch_that_kills_its_worker_is_quarantined_alone(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(3)).await;
    let poisoned = ids[1];
    let mut given_up = Vec::new();
    for _ in 0..20 {
        let stamp = books.hold(UNIT).await;
        let claimed = books.claim(stamp, 3).await;
        given_up.extend(claimed.quarantined.iter().copied());
        if claimed.batches.is_empty() {
            break;
        }
        let ids = claimed_ids(&claimed);
        if !ids.contains(&poisoned) {
            books.settle(stamp, &ids).await.expect("settled");
        }
    }
    assert_eq!(given_up, [poisoned]);
    assert_eq!(books.state(poisoned).await, format!("quarantined {MAX_ATTEMPTS}"));
    assert!(books.state(ids[0]).await.starts_with("settled") && books.state(ids[2]).await.starts_with("settled"));
    books.assert_books_hold().await;
}

async fn r4_a_dead_holders_batches_are_claimed_at_once(place: Place) {
    let books = place.open().await;
    let (_, ids) = books.claimed(&batches(2)).await;
    let next = books.hold(UNIT).await;
    for id in ids {
        let claimed = books.claim(next, 10).await;
        assert_eq!((claimed_ids(&claimed), claimed.batches[0].attempts), (vec![id], 2));
        books.settle(next, &[id]).await.expect("settled");
    }
    books.assert_books_hold().await;
}

async fn only_what_is_due_is_given(place: Place) {
    let books = place.open().await;
    let tomorrow = day().succ_opt().expect("a day");
    let drafts = [batch("A").charge("anna", 1, 0).on(tomorrow), batch("B").charge("anna", 1, 0), batch("C").on(day())];
    let ids = books.take_in(&drafts).await;
    books.ledger.cancel_batch(ids[2], &operator()).await.expect("cancelled");
    let stamp = books.hold(UNIT).await;
    assert_eq!(claimed_ids(&books.claim(stamp, 10).await), ids[1..2]);
    books.settle(stamp, &ids[1..2]).await.expect("settled");
    assert_eq!(claimed_ids(&books.claim(stamp, 10).await), []);
    assert_eq!(books.ledger.due_units(&Due::all(day())).await.expect("units"), []);
    assert_eq!(books.ledger.due_units(&Due::all(tomorrow)).await.expect("units"), [Unit(0)]);
}

async fn a_superseded_holder_is_fenced(place: Place) {
    let books = place.open().await;
    books.take_in(&batches(2)).await;
    let old = books.hold(UNIT).await;
    let new = books.hold(UNIT).await;
    // it gives nothing up either
    books.raw.run(&format!("UPDATE settlement_batch SET attempts = {MAX_ATTEMPTS}")).await.expect("charged");
    let before = books.raw.tables().await;
    assert_eq!(books.ledger.claim(&books.request(old, 2)).await.expect("an answer"), Claim::Fenced { stored: new });
    assert_eq!(changed(&before, &books.raw.tables().await), BTreeSet::from(["fence_rejection".to_owned()]));
    let kept = books.raw.texts("SELECT operation || ' ' || token || ' ' || stored_token FROM fence_rejection").await;
    assert_eq!(kept, [format!("claim {} {}", old.fence.token, new.fence.token)]);
}

async fn an_unknown_holder_has_lost_its_claim(place: Place) {
    let books = place.open().await;
    books.take_in(&batches(2)).await;
    let before = books.raw.tables().await;
    let unknown = stamp(1, 5, holder());
    assert_eq!(books.ledger.claim(&books.request(unknown, 2)).await.expect("an answer"), Claim::ClaimLost);
    assert_eq!(before, books.raw.tables().await);
}

async fn released_batches_are_charged_or_not(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(2)).await;
    assert_eq!(books.ledger.release(UNIT, stamp, &ids[..1], true).await.expect("released"), 1);
    assert_eq!(books.ledger.release(UNIT, stamp, &ids[1..], false).await.expect("released"), 1);
    assert_eq!((books.state(ids[0]).await, books.state(ids[1]).await), ("pending 0".into(), "pending 1".into()));
    assert_eq!(books.ledger.release(UNIT, stamp, &ids, true).await.expect("a repeat"), 0);
    assert_eq!(claimed_ids(&books.claim(stamp, 10).await), ids[..1]);
}

async fn only_ones_own_is_released(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(1)).await;
    let new = books.hold(UNIT).await;
    let before = books.raw.tables().await;
    for stamp in [old, new, stamp(old.fence.generation, old.fence.token, holder())] {
        assert_eq!(books.ledger.release(UNIT, stamp, &ids, true).await.expect("an answer"), 0);
    }
    assert_eq!(changed(&before, &books.raw.tables().await), ["fence_rejection".to_owned()].into());
}

/// A batch that the next holder finished is not touched by what the last one still does with it.
async fn r2_what_is_finished_meanwhile_is_left_alone(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(1)).await;
    let new = books.hold(UNIT).await;
    books.claim(new, 1).await;
    books.settle(new, &ids).await.expect("settled");
    books.raw.run(&format!("UPDATE settlement_batch SET attempts = {MAX_ATTEMPTS}")).await.expect("charged");
    let before = books.raw.tables().await;
    assert_eq!(books.ledger.release(UNIT, old, &ids, true).await.expect("an answer"), 0);
    assert_eq!(books.ledger.release(UNIT, new, &ids, false).await.expect("an answer"), 0);
    let claimed = books.claim(new, 10).await;
    assert_eq!((claimed.batches, claimed.quarantined), (vec![], vec![]));
    assert_eq!(changed(&before, &books.raw.tables().await), ["fence_rejection".to_owned()].into());
}

async fn r3_a_run_is_opened_once(place: Place) {
    let books = place.open().await;
    let key = RunKey { schedule: "nightly".to_owned(), business_date: day(), slot: "02:00".to_owned() };
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (ledger, key) = (books.ledger.clone(), key.clone());
            tokio::spawn(async move { ledger.open_run(&PlannedRun::by_hand(key), holder()).await.expect("a run") })
        })
        .collect();
    let mut runs = BTreeSet::new();
    for task in tasks {
        runs.insert(task.await.expect("no panic"));
    }
    assert_eq!(runs.len(), 1);
    let other =
        books.ledger.open_run(&PlannedRun::by_hand(RunKey { slot: "14:00".to_owned(), ..key }), holder()).await.expect("a run");
    assert!(!runs.contains(&other) && !runs.contains(&books.run));
}
