//! Instances that serve: they work what open runs make due, whoever opened them, and go on when it comes late.

use crate::fixture::{FOR_EVER, Named, Place, day, holder, import, night, operator, serve, settings, until};
use domain::ids::BatchId;
use domain::step::{Probe, Step};
use ledger::schedule::RunFilter;
use ledger::{Guard, LedgerError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use worker::{Pace, Worker, WorkerError, WorkerSettings};

pub const EVERY: &[Named] = tests![
    three_instances_share_the_night,
    r16_what_comes_after_the_end_is_settled_without_a_new_run,
    r16_what_comes_after_the_end_is_settled_under_row_locks_too,
    what_no_run_covers_waits,
    told_of_a_run_it_does_not_wait,
    an_instance_that_is_configured_otherwise_stops,
    another_pace_is_taken_up_between_two_transactions,
];

/// When each run ended, the newest first.
async fn ends(worker: &Worker) -> Vec<bool> {
    let runs = worker.ledger.history(&RunFilter { schedule: None, limit: 9 }).await.expect("a history");
    runs.iter().map(|run| run.finished_at.is_some()).collect()
}

async fn three_instances_share_the_night(place: Place) {
    let mut serving = Vec::new();
    for _ in 0..3 {
        serving.push(serve(place.instance(FOR_EVER).await));
    }
    let ledger = serving[0].worker.ledger.clone();
    import(ledger.as_ref(), "day", 40).await;
    // whoever opened the run need not be there
    ledger.open_run(&night(), holder()).await.expect("a run");
    until("settled", async || place.batches().await == ["settled 1"; 40]).await;
    until("its end is noted", async || ends(&serving[0].worker).await == [true]).await;
    let mut settled = 0;
    for instance in serving {
        settled += instance.worker.counters.settled.get();
        instance.drained().await.expect("drained");
    }
    assert_eq!(settled, 40, "each by one of them");
    place.assert_books_hold().await;
}

async fn r16_what_comes_after_the_end_is_settled_without_a_new_run(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    assert_late_is_settled(&place, worker).await;
    place.assert_books_hold().await;
}

async fn r16_what_comes_after_the_end_is_settled_under_row_locks_too(place: Place) {
    let worker = Worker::new(place.ledger(Guard::RowLock).await, None, holder(), settings());
    assert_late_is_settled(&place, worker).await;
}

async fn assert_late_is_settled(place: &Place, worker: Worker) {
    let run = worker.ledger.open_run(&night(), worker.holder).await.expect("a run");
    let serving = serve(worker);
    let worker = serving.worker.clone();
    until("it ended, with nothing to do", async || ends(&worker).await == [true]).await;
    for (file, batches) in [("late", 3), ("later", 5)] {
        import(worker.ledger.as_ref(), file, batches - place.batches().await.len()).await;
        until("settled", async || place.batches().await == vec!["settled 1"; batches]).await;
        assert_eq!(worker.ledger.run_settled(run).await.expect("a count"), batches as u64, "under the run that was over");
    }
    assert_eq!(ends(&worker).await, [true], "no run was opened for it");
    serving.drained().await.expect("drained");
}

async fn what_no_run_covers_waits(place: Place) {
    let serving = serve(place.instance(FOR_EVER).await);
    let ledger = serving.worker.ledger.clone();
    import(ledger.as_ref(), "day", 3).await;
    let mut before = night();
    before.key.business_date = day().pred_opt().expect("a day");
    ledger.open_run(&before, holder()).await.expect("a run of the day before");
    until("that one ended", async || ends(&serving.worker).await == [true]).await;
    let seen = Instant::now();
    until("it turns, with nothing to do", async || serving.worker.pulse.silent_for() + settings().idle_poll * 5 < seen.elapsed())
        .await;
    assert_eq!(place.batches().await, ["pending 0"; 3]);
    serving.drained().await.expect("drained");
}

async fn told_of_a_run_it_does_not_wait(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    worker.pace.set(WorkerSettings { idle_poll: FOR_EVER, ..settings() });
    let serving = serve(worker);
    let ledger = serving.worker.ledger.clone();
    import(ledger.as_ref(), "day", 3).await;
    // it has looked, found nothing, and sleeps
    until("it turned", async || serving.worker.pulse.silent_for() > Duration::from_millis(300)).await;
    ledger.open_run(&night(), holder()).await.expect("a run");
    let begun = Instant::now();
    serving.wake.notify_one();
    until("settled", async || place.batches().await == ["settled 1"; 3]).await;
    assert!(begun.elapsed() < FOR_EVER / 10, "{:?}", begun.elapsed());
    serving.drained().await.expect("drained");
}

/// Opened before `config adopt`, it would look for batches in units that are none any more.
async fn an_instance_that_is_configured_otherwise_stops(place: Place) {
    let serving = serve(place.instance(FOR_EVER).await);
    let ledger = serving.worker.ledger.clone();
    ledger.adopt_config(3, Guard::Lease, &operator()).await.expect("adopted elsewhere");
    import(ledger.as_ref(), "day", 3).await;
    ledger.open_run(&night(), holder()).await.expect("a run");
    let error = serving.ended().await.expect_err("it is cut otherwise now");
    let WorkerError::Ledger(LedgerError::Differs { key, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(*key, "worker.partitions");
    assert!(error.to_string().contains("config adopt"), "{error}");
    assert_eq!(place.batches().await, ["pending 0"; 3]);
}

/// Reads how many batches come to a transaction, and sets another pace at the first.
struct Reloading {
    pace: Mutex<Option<Arc<Worker>>>,
    seen: Mutex<Vec<usize>>,
}

impl Probe for Reloading {
    fn at(&self, _step: Step) {}

    fn at_with(&self, step: Step, batches: &[BatchId]) {
        if step != Step::BeforeSettleTx {
            return;
        }
        self.seen.lock().expect("not poisoned").push(batches.len());
        if let Some(worker) = self.pace.lock().expect("not poisoned").take() {
            worker.pace.set(WorkerSettings { batches_per_transaction: 5, ..settings() });
        }
    }
}

async fn another_pace_is_taken_up_between_two_transactions(place: Place) {
    let probe = Arc::new(Reloading { pace: Mutex::default(), seen: Mutex::default() });
    let worker = Worker { probe: probe.clone(), pace: Pace::new(settings()), ..place.instance(FOR_EVER).await };
    import(worker.ledger.as_ref(), "day", 30).await;
    let ledger = worker.ledger.clone();
    let serving = serve(worker);
    *probe.pace.lock().expect("not poisoned") = Some(serving.worker.clone());
    ledger.open_run(&night(), holder()).await.expect("a run");
    until("settled", async || place.batches().await == ["settled 1"; 30]).await;
    let seen = probe.seen.lock().expect("not poisoned").clone();
    assert!(seen[0] == 2 && seen[1..].contains(&5), "{seen:?}");
    serving.drained().await.expect("drained");
}
