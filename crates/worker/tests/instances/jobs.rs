//! A job of one's own on several instances: done once, by whoever can, and by nobody who lost it.

use crate::fixture::{FOR_EVER, Named, PATIENCE, Place, done_by, holder, job, night, run_job, until};
use domain::fence::{Fence, Stamp};
use lease::{BootClock, BootInstant, Clock, Keeper, KeeperSettings};
use ledger::Ledger;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use worker::{JobError, JobOutcome, Turn, WorkerError, WorkerSettings};

pub const EVERY: &[Named] = tests![
    r3_twenty_at_once_do_the_work_once,
    a_job_that_fails_is_done_by_the_next,
    r9_a_drain_stops_the_job_at_its_next_look,
    a_lease_that_is_lost_in_the_middle_is_taken_over,
    r1_a_job_that_was_taken_over_does_not_end_it,
    r1_a_job_that_found_itself_fenced_is_refused_once,
    a_job_that_is_not_fenced_is_told_so,
    a_wait_for_another_instance_ends,
];

/// Four instances, five launches on each.
async fn r3_twenty_at_once_do_the_work_once(place: Place) {
    let did = Arc::new(AtomicU32::new(0));
    let mut launches = Vec::new();
    for _ in 0..4 {
        let instance = Arc::new(place.instance(FOR_EVER).await);
        for _ in 0..5 {
            let (instance, did) = (instance.clone(), did.clone());
            launches.push(tokio::spawn(async move {
                let counted = job(move |_| {
                    did.fetch_add(1, Ordering::SeqCst);
                    Box::pin(async {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        Ok(())
                    })
                });
                run_job(&instance, &counted).await.expect("an outcome")
            }));
        }
    }
    let mut outcomes = Vec::new();
    for launch in launches {
        outcomes.push(launch.await.expect("no panic"));
    }
    let done = outcomes.iter().filter(|outcome| **outcome == JobOutcome::Done).count();
    let already = outcomes.iter().filter(|outcome| **outcome == JobOutcome::AlreadyDone).count();
    assert_eq!((done, already, did.load(Ordering::SeqCst)), (1, 19, 1), "{outcomes:?}");
    assert_eq!(place.texts("SELECT job FROM job_run").await, ["report"]);
}

async fn a_job_that_fails_is_done_by_the_next(place: Place) {
    let (first, second) = (place.instance(FOR_EVER).await, place.instance(FOR_EVER).await);
    let failing = job(|_| Box::pin(async { Ok(Err::<(), _>(io::Error::other("no room"))?) }));
    let error = run_job(&first, &failing).await.expect_err("its own error");
    assert!(matches!(&error, WorkerError::Job { name, .. } if name == "report"), "{error:?}");
    assert!(error.to_string().contains("no room"), "{error}");
    assert_eq!(done_by(&first).await, None);
    let begun = Instant::now();
    assert_eq!(run_job(&second, &job(|_| Box::pin(async { Ok(()) }))).await.expect("an outcome"), JobOutcome::Done);
    assert!(begun.elapsed() < FOR_EVER / 2, "what failed gave its lease back");
    assert_eq!(done_by(&first).await, Some(second.holder));
    assert_eq!(run_job(&first, &failing).await.expect("it is not done again"), JobOutcome::AlreadyDone);
}

async fn r9_a_drain_stops_the_job_at_its_next_look(place: Place) {
    let (first, second) = (place.instance(FOR_EVER).await, place.instance(FOR_EVER).await);
    let did = Arc::new(AtomicU32::new(0));
    let steps = job(|turn| {
        let (did, drain) = (did.clone(), first.drain.clone());
        Box::pin(async move {
            for step in 0..5 {
                turn.check()?;
                did.fetch_add(1, Ordering::SeqCst);
                if step == 1 {
                    drain.ask();
                }
            }
            Ok(())
        })
    });
    assert_eq!(run_job(&first, &steps).await.expect("an outcome"), JobOutcome::Drained);
    assert_eq!((did.load(Ordering::SeqCst), done_by(&first).await), (2, None));
    assert_eq!(run_job(&first, &steps).await.expect("an outcome"), JobOutcome::Drained);
    assert_eq!(did.load(Ordering::SeqCst), 2, "nothing is begun where a drain is asked");
    assert_eq!(run_job(&second, &steps).await.expect("an outcome"), JobOutcome::Done);
    assert_eq!((did.load(Ordering::SeqCst), done_by(&first).await), (7, Some(second.holder)));
}

/// The clock of a machine that can be suspended: leases end at once.
#[derive(Default)]
struct Watch(AtomicBool);

impl Clock for Watch {
    fn now(&self) -> BootInstant {
        BootClock.now() + if self.0.load(Ordering::SeqCst) { FOR_EVER } else { Duration::ZERO }
    }
}

async fn a_lease_that_is_lost_in_the_middle_is_taken_over(place: Place) {
    let (watch, mut first) = (Arc::new(Watch::default()), place.instance(FOR_EVER).await);
    let keeper = Keeper::start_with_clock(place.connector(), first.holder, KeeperSettings::new(FOR_EVER), watch.clone());
    first.keeper = Some(keeper.expect("a keeper"));
    // the second is to be faster
    first.pace.set(WorkerSettings { poll: Duration::from_secs(5), ..first.pace.get() });
    let (first, second, begun) = (Arc::new(first), place.instance(FOR_EVER).await, Arc::new(Notify::new()));
    let losing = {
        let (first, begun) = (first.clone(), begun.clone());
        tokio::spawn(async move {
            let endless = job(|turn| {
                let begun = begun.clone();
                Box::pin(async move {
                    loop {
                        turn.check()?;
                        begun.notify_one();
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                })
            });
            run_job(&first, &endless).await
        })
    };
    tokio::time::timeout(PATIENCE, begun.notified()).await.expect("it works");
    watch.0.store(true, Ordering::SeqCst);
    assert_eq!(run_job(&second, &job(|_| Box::pin(async { Ok(()) }))).await.expect("an outcome"), JobOutcome::Done);
    assert_eq!(losing.await.expect("no panic").expect("an outcome"), JobOutcome::AlreadyDone);
    assert_eq!((first.counters.lost.get(), first.counters.fenced.get()), (1, 0), "stopped before it could be refused");
    assert_eq!(done_by(&first).await, Some(second.holder));
}

/// A newer holder registers while we work.
async fn take_over(ledger: &dyn Ledger, turn: &Turn<'_>) {
    let token = ledger.mint().await.expect("a token");
    let newer = Stamp { fence: Fence { token, ..turn.stamp.fence }, holder: holder() };
    assert_eq!(ledger.register(turn.unit, newer).await.expect("an answer"), newer);
}

/// It looked at nothing, wrote nothing, and says that all is done: the ledger does not note it.
async fn r1_a_job_that_was_taken_over_does_not_end_it(place: Place) {
    assert_refused_once(place, false).await;
}

async fn r1_a_job_that_found_itself_fenced_is_refused_once(place: Place) {
    assert_refused_once(place, true).await;
}

/// Taken over in its first turn, which saw it or not; the second turn is a new grant, and does it.
async fn assert_refused_once(place: Place, saw_it: bool) {
    let instance = place.instance(FOR_EVER).await;
    let (turns, ledger) = (Arc::new(AtomicU32::new(0)), instance.ledger.clone());
    let taken_over = job(|turn| {
        let (turns, ledger) = (turns.clone(), ledger.clone());
        Box::pin(async move {
            if turns.fetch_add(1, Ordering::SeqCst) > 0 {
                return Ok(());
            }
            take_over(ledger.as_ref(), turn).await;
            if saw_it { Err(JobError::Fenced) } else { Ok(()) }
        })
    });
    assert_eq!(run_job(&instance, &taken_over).await.expect("an outcome"), JobOutcome::Done);
    assert_eq!((turns.load(Ordering::SeqCst), instance.counters.fenced.get()), (2, 1));
    let kept = ledger.rejections(10).await.expect("a list");
    assert_eq!(kept.iter().map(|row| (row.operation.as_str(), row.batch)).collect::<Vec<_>>(), [("job", None)]);
    assert!(kept[0].stamp.fence < kept[0].newer.fence && kept[0].stamp.holder == instance.holder);
}

/// A condition that never holds would look like being superseded for ever.
async fn a_job_that_is_not_fenced_is_told_so(place: Place) {
    let instance = place.instance(FOR_EVER).await;
    let wrong = job(|_| Box::pin(async { Err(JobError::Fenced) }));
    let error = run_job(&instance, &wrong).await.expect_err("it is its own");
    assert!(matches!(error, WorkerError::NotFenced { unit: 1_000_000 }), "{error:?}");
    assert_eq!((instance.counters.fenced.get(), instance.ledger.rejections(10).await.expect("a list").len()), (0, 0));
}

async fn a_wait_for_another_instance_ends(place: Place) {
    let (first, second) = (Arc::new(place.instance(FOR_EVER).await), place.instance(FOR_EVER).await);
    let go_on = Arc::new(Notify::new());
    let working = {
        let (first, go_on) = (first.clone(), go_on.clone());
        tokio::spawn(async move {
            let waiting = job(|_| {
                let go_on = go_on.clone();
                Box::pin(async move {
                    go_on.notified().await;
                    Ok(())
                })
            });
            run_job(&first, &waiting).await
        })
    };
    until("held", async || place.texts("SELECT name FROM job").await.len() == 1 && first.ledger.fences().await.is_ok_and(held))
        .await;
    let (keeper, fine) = (second.keeper.as_ref().expect("a keeper"), job(|_| Box::pin(async { Ok(()) })));
    let wait = Some(Duration::from_millis(200));
    let error = second.run_job(keeper, &fine, &night(), wait).await.expect_err("the other has it");
    assert!(matches!(&error, WorkerError::JobWaitEnded(name) if name == "report"), "{error:?}");
    go_on.notify_one();
    assert_eq!(working.await.expect("no panic").expect("an outcome"), JobOutcome::Done);
    // done is done, however short the wait
    let outcome = second.run_job(keeper, &fine, &night(), Some(Duration::ZERO)).await.expect("an outcome");
    assert_eq!(outcome, JobOutcome::AlreadyDone);
}

fn held(fences: Vec<ledger::operate::FenceRow>) -> bool {
    fences.last().is_some_and(|row| row.job.is_some() && row.stamp.fence.token > 0)
}
