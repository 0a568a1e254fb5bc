//! An instance that serves and is asked to stop: R9, nothing is lost and nothing is charged.

use crate::fixture::{At, FOR_EVER, Named, Place, import, night, serve, settings, until};
use domain::step::Step;
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::{Worker, WorkerSettings};

pub const EVERY: &[Named] = tests![
    r9_what_is_claimed_is_handed_back_without_charge,
    r9_what_has_begun_is_finished_and_nothing_else_is_begun,
    r9_an_idle_instance_stops_at_once,
];

/// An instance that is asked to stop when it reaches a step.
async fn stopping_at(place: &Place, step: Step) -> Worker {
    let worker = place.instance(FOR_EVER).await;
    let drain = worker.drain.clone();
    Worker { probe: Arc::new(At(step, move || drain.ask())), ..worker }
}

/// Six batches, which are settled two in a transaction.
async fn something_to_do(worker: &Worker) {
    import(worker.ledger.as_ref(), "day", 6).await;
    worker.ledger.open_run(&night(), worker.holder).await.expect("a run");
}

async fn r9_what_is_claimed_is_handed_back_without_charge(place: Place) {
    let worker = stopping_at(&place, Step::BatchesClaimed).await;
    something_to_do(&worker).await;
    let counters = worker.counters.clone();
    serve(worker).ended().await.expect("drained");
    assert_eq!(place.batches().await, ["pending 0"; 6]);
    assert_eq!(counters.settled.get(), 0);
    assert_next_does_the_rest(&place).await;
}

async fn r9_what_has_begun_is_finished_and_nothing_else_is_begun(place: Place) {
    let [first, second] = [stopping_at(&place, Step::BeforeSettleTx).await, stopping_at(&place, Step::InsideSettleTx).await];
    something_to_do(&first).await;
    for (worker, settled) in [(first, 2), (second, 4)] {
        serve(worker).ended().await.expect("drained");
        let mut batches = place.batches().await;
        batches.sort();
        let expected: Vec<_> = (0..6).map(|n| if n < 6 - settled { "pending 0" } else { "settled 1" }).collect();
        assert_eq!(batches, expected);
    }
    assert_next_does_the_rest(&place).await;
}

/// Its lease was given back too: the next need not wait for it.
async fn assert_next_does_the_rest(place: &Place) {
    let begun = Instant::now();
    let serving = serve(place.instance(FOR_EVER).await);
    until("settled", async || place.batches().await == ["settled 1"; 6]).await;
    assert!(begun.elapsed() < FOR_EVER / 2);
    serving.drained().await.expect("drained");
    place.assert_books_hold().await;
}

async fn r9_an_idle_instance_stops_at_once(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    worker.pace.set(WorkerSettings { idle_poll: FOR_EVER, ..settings() });
    let serving = serve(worker);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begun = Instant::now();
    serving.drained().await.expect("drained");
    assert!(begun.elapsed() < FOR_EVER / 10, "{:?}", begun.elapsed());
}
