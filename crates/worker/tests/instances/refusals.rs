//! What is counted and told where the ledger cannot keep a refusal, or gives nothing out.

use crate::fixture::{At, FOR_EVER, Named, Place, holder, import, job, night, run_job, serve, settings, until};
use domain::fence::{Fence, Stamp};
use domain::step::Step;
use domain::unit::Unit;
use ledger::Ledger;
use sqlx::{Connection, PgConnection};
use std::sync::Arc;
use std::time::Duration;
use worker::grant::Take;
use worker::settle::Shift;
use worker::{JobError, Worker, WorkerError, WorkerSettings};

pub const EVERY: &[Named] = tests![
    a_refused_registration_that_cannot_be_kept_is_counted,
    a_refused_job_that_cannot_be_kept_is_counted,
    l23_a_refused_settler_stops_though_its_lease_lives,
    r9_a_drain_hides_no_error,
];

/// A holder that is newer than any that comes: its token is beyond the next ones.
async fn newer(ledger: &dyn Ledger, unit: Unit) {
    let generation = ledger.generation(worker::grant::LEDGER_SOURCE).await.expect("a generation");
    let stamp = Stamp { fence: Fence { generation, token: 1_000_000 }, holder: holder() };
    assert_eq!(ledger.register(unit, stamp).await.expect("an answer"), stamp);
}

/// Every write of a rejection fails from here on.
async fn no_room_for_rejections(place: &Place) {
    place.texts("ALTER TABLE fence_rejection RENAME TO gone").await;
}

async fn a_refused_registration_that_cannot_be_kept_is_counted(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    newer(worker.ledger.as_ref(), Unit(0)).await;
    no_room_for_rejections(&place).await;
    let taken = worker.take(worker.keeper.as_ref().expect("a keeper"), Unit(0)).await;
    assert!(matches!(taken, Err(WorkerError::Ledger(_))), "{taken:?}");
    assert_eq!(worker.counters.fenced.get(), 1);
}

async fn a_refused_job_that_cannot_be_kept_is_counted(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    let (ledger, there) = (worker.ledger.clone(), place.clone());
    let taken_over = job(move |turn| {
        let (ledger, there) = (ledger.clone(), there.clone());
        Box::pin(async move {
            newer(ledger.as_ref(), turn.unit).await;
            no_room_for_rejections(&there).await;
            Err(JobError::Fenced)
        })
    });
    let error = run_job(&worker, &taken_over).await.expect_err("it could not be kept");
    assert!(matches!(error, WorkerError::Ledger(_)), "{error:?}");
    assert_eq!(worker.counters.fenced.get(), 1);
}

/// Its own deadline would not stop it: only the refusal does.
async fn l23_a_refused_settler_stops_though_its_lease_lives(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    import(worker.ledger.as_ref(), "day", 8).await;
    let run = worker.ledger.open_run(&night(), worker.holder).await.expect("a run");
    let (ledger, runtime) = (worker.ledger.clone(), tokio::runtime::Handle::current());
    let unit = worker.ledger.due_units(&night().due()).await.expect("units")[0];
    let supersede = move || {
        let (ledger, runtime) = (ledger.clone(), runtime.clone());
        // on a thread that is none of the runtime's, which may wait
        let registered = std::thread::spawn(move || runtime.block_on(newer(ledger.as_ref(), unit)));
        registered.join().expect("registered");
    };
    let worker = Worker { probe: Arc::new(At(Step::BeforeSettleTx, supersede)), ..worker };
    let taken = worker.take(worker.keeper.as_ref().expect("a keeper"), unit).await.expect("an answer");
    let Take::Granted(grant) = taken else { panic!("{taken:?}") };
    let shift = Shift { run, due: night().due(), until: None };
    worker.work_unit(*grant, &shift).await.expect("a refusal is no error");
    let kept = worker.ledger.rejections(10).await.expect("a list");
    assert!(!kept.is_empty() && kept.iter().all(|row| row.operation == "settle"), "nothing is tried after it: {kept:?}");
    assert_eq!(worker.counters.fenced.get(), kept.len() as u64);
}

/// Only a service that is out is no matter where an instance stops anyway.
async fn r9_a_drain_hides_no_error(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    let drain = worker.drain.clone();
    let worker = Worker { probe: Arc::new(At(Step::LeaseAcquired, move || drain.ask())), ..worker };
    import(worker.ledger.as_ref(), "day", 4).await;
    worker.ledger.open_run(&night(), worker.holder).await.expect("a run");
    for unit in [Unit(0), Unit(1)] {
        newer(worker.ledger.as_ref(), unit).await;
    }
    no_room_for_rejections(&place).await;
    let error = serve(worker).ended().await.expect_err("no waiting cures it");
    assert!(matches!(error, WorkerError::Ledger(_)) && !error.is_outage(), "{error:?}");
}

/// As an import or a correction holds them: they are due, and no claim gets one.
pub async fn nothing_given_out_is_looked_for_after_a_pause(place: Place) {
    let worker = place.instance(FOR_EVER).await;
    worker.pace.set(WorkerSettings { poll: Duration::from_secs(1), ..settings() });
    import(worker.ledger.as_ref(), "day", 4).await;
    worker.ledger.open_run(&night(), worker.holder).await.expect("a run");
    let mut holding = PgConnection::connect(&place.url).await.expect("the same database");
    let lock = "BEGIN; SELECT 1 FROM settlement_batch WHERE state = 'pending' ORDER BY id FOR UPDATE";
    sqlx::raw_sql(lock).execute(&mut holding).await.expect("locked");
    let serving = serve(worker);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let minted: i64 = place.texts("SELECT CAST(token AS TEXT) FROM fence_counter").await[0].parse().expect("a token");
    sqlx::raw_sql("COMMIT").execute(&mut holding).await.expect("done");
    // two units a look, and the shortest pause is a fifth of a second
    assert!((1..=22).contains(&minted), "{minted} tokens in two seconds");
    until("settled", async || place.batches().await == ["settled 1"; 4]).await;
    serving.drained().await.expect("drained");
    place.assert_books_hold().await;
}
