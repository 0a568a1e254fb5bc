//! A ledger that goes away in the night and comes back: instances wait, and go on by themselves.

use crate::fixture::{FOR_EVER, Place, done_by, holder, import, job, night, run, run_job, serve, until};
use lab::postgres::{Durability, Postgres};
use lab::trials::Suite;
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::JobOutcome;

pub fn add(suite: Suite) -> Suite {
    let suite = suite.plain("R14 serving goes on when a killed PostgreSQL is back", || with_server(serving));
    suite.plain("R14 a job is done when a killed PostgreSQL is back", || with_server(waiting))
}

/// A server of the test's own, which it may kill.
fn with_server<F: Future<Output = ()>>(test: impl FnOnce(Postgres, Place) -> F) -> Result<(), lab::Error> {
    let server = Postgres::start(Durability::Off)?;
    let place = Place::at(&server.create_database("night")?);
    run(test(server, place));
    Ok(())
}

async fn serving(mut server: Postgres, place: Place) {
    let serving = serve(place.instance(FOR_EVER).await);
    let worker = serving.worker.clone();
    import(worker.ledger.as_ref(), "before", 4).await;
    worker.ledger.open_run(&night(), holder()).await.expect("a run");
    until("settled", async || place.batches().await == ["settled 1"; 4]).await;
    let killed = Instant::now();
    server.kill().expect("killed");
    until("it waits, and says that it lives", async || worker.pulse.silent_for() + Duration::from_secs(2) < killed.elapsed())
        .await;
    server.start_again().expect("started");
    // another process's import, which finds the ledger as it was
    import(place.ledger(ledger::Guard::Lease).await.as_ref(), "after", 4).await;
    until("settled", async || place.batches().await == ["settled 1"; 8]).await;
    serving.drained().await.expect("it served all the time");
    place.assert_books_hold().await;
}

/// Started while the server is down.
async fn waiting(mut server: Postgres, place: Place) {
    let instance = Arc::new(place.instance(FOR_EVER).await);
    server.kill().expect("killed");
    let launched = {
        let instance = instance.clone();
        tokio::spawn(async move { run_job(&instance, &job(|_| Box::pin(async { Ok(()) }))).await })
    };
    // longer than a pool of connections has patience of its own
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(!launched.is_finished(), "it waits");
    server.start_again().expect("started");
    assert_eq!(launched.await.expect("no panic").expect("an outcome"), JobOutcome::Done);
    assert_eq!(done_by(&instance).await, Some(instance.holder));
}
