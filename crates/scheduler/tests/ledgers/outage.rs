//! R14: a database that is gone for a while.

use crate::fixture::{Place, keys, named, occurring, planner, raw, set};
use lab::postgres::{Durability, Postgres};
use scheduler::planner::Planner;
use scheduler::report::{Outcome, Rung};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Counts what is logged as an error by the planner.
struct Errors(Arc<AtomicU32>);

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR && metadata.target().starts_with("scheduler")
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The server is killed, and back after a while: it is told once, and every occurrence of the time between is planned, by an instance
/// that lived through it or by one that did not.
pub fn r14_lost_and_back() -> Result<(), lab::Error> {
    let mut server = Postgres::start(Durability::Off)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let errors = Arc::new(AtomicU32::new(0));
    let _logged = tracing::subscriber::set_default(Errors(Arc::clone(&errors)));
    runtime.block_on(lost_and_back(&mut server, &errors))
}

async fn lost_and_back(server: &mut Postgres, errors: &AtomicU32) -> Result<(), lab::Error> {
    let place = Place::at(server.url().as_str());
    let ledger = place.open().await;
    let seconds = named("seconds", &raw("* * * * * *"));
    let mut survivor = planner(&ledger, std::slice::from_ref(&seconds));
    let started = survivor.look().await.expect("a first look");
    assert_eq!(started.schedules[0].outcome, Outcome::Started);
    let mark = ledger.marks().await.expect("marks").marks.remove(0).at;
    server.kill()?;
    unavailable(&mut survivor, 2).await;
    assert_eq!(errors.load(Ordering::Relaxed), 1, "an outage is told once");
    server.start_again()?;
    let replaced = planner(&place.open().await, std::slice::from_ref(&seconds)).look().await.expect("a look");
    assert!(replaced.opened() > 5, "{replaced:?}");
    let back = Instant::now();
    let last = loop {
        assert!(back.elapsed() < Duration::from_secs(120), "the survivor comes back");
        tokio::time::sleep(Duration::from_millis(200)).await;
        if let Rung::Looked(report) = survivor.ring().await {
            break report;
        }
    };
    assert_eq!(errors.load(Ordering::Relaxed), 1);
    let planned = set(keys(&ledger, "open").await);
    assert_eq!(planned, set(occurring(&seconds, mark, last.now)), "none lost, none twice");
    // the next outage is another one
    server.kill()?;
    unavailable(&mut survivor, 1).await;
    assert_eq!(errors.load(Ordering::Relaxed), 2);
    Ok(())
}

/// Rings until the planner has found so often that nobody answers.
async fn unavailable(planner: &mut Planner, times: u32) {
    let (mut refusals, lost) = (0, Instant::now());
    while refusals < times {
        assert!(lost.elapsed() < Duration::from_secs(120), "the outage is noticed");
        tokio::time::sleep(Duration::from_millis(200)).await;
        match planner.ring().await {
            Rung::Unavailable { .. } => refusals += 1,
            Rung::Quiet => {}
            Rung::Looked(report) => panic!("the database is gone: {report:?}"),
        }
    }
}
