//! When an instance asks the ledger, and what it does when others are faster.

use crate::fixture::{Named, Place, holder, keys, named, nightly, occurrence, planner, raw, started};
use async_trait::async_trait;
use domain::ids::HolderId;
use ledger::operate::Operator;
use ledger::schedule::{Advance, Advanced, Due, Marks, OpenRun, RunFilter, RunHistory, ScheduleState};
use ledger::{Ledger, LedgerError, Schedules};
use scheduler::planner::Planner;
use scheduler::report::{Outcome, Rung};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const EVERY: &[Named] = tests![
    r10_an_idle_instance_asks_nobody,
    what_may_have_occurred_is_looked_at,
    a_mark_that_others_moved_is_read_again,
    a_definition_that_is_adopted_meanwhile_is_refused,
    what_was_planned_before_the_ledger_fell_silent_is_told,
    what_the_ledger_cannot_take_is_told_at_every_look,
    a_quiet_look_moves_an_old_mark,
];

type Meanwhile = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A ledger that counts how often it is asked, and does something else after the marks were read.
struct Watched {
    ledger: Arc<dyn Ledger>,
    asked: AtomicU32,
    meanwhile: Mutex<Option<Meanwhile>>,
    /// How many plans it takes before it fails like this.
    fails: Option<(u32, fn() -> LedgerError)>,
    advances: AtomicU32,
}

impl Watched {
    fn new(ledger: &Arc<dyn Ledger>, meanwhile: Option<Meanwhile>) -> Arc<Watched> {
        Arc::new(Watched { meanwhile: Mutex::new(meanwhile), ..Watched::failing(ledger, None) })
    }

    fn failing(ledger: &Arc<dyn Ledger>, fails: Option<(u32, fn() -> LedgerError)>) -> Watched {
        let (asked, advances) = (AtomicU32::new(0), AtomicU32::new(0));
        Watched { ledger: Arc::clone(ledger), asked, meanwhile: Mutex::new(None), fails, advances }
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Schedules for Watched {
    async fn marks(&self) -> Result<Marks, LedgerError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let marks = self.ledger.marks().await;
        let meanwhile = self.meanwhile.lock().expect("no panic").take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        marks
    }

    async fn start_schedule(&self, schedule: &str, definition: &str) -> Result<(), LedgerError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.ledger.start_schedule(schedule, definition).await
    }

    async fn advance(&self, advance: &Advance, planner: HolderId) -> Result<Advanced, LedgerError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let before = self.advances.fetch_add(1, Ordering::Relaxed);
        match self.fails {
            Some((takes, error)) if before >= takes => Err(error()),
            _ => self.ledger.advance(advance, planner).await,
        }
    }

    async fn adopt_schedule(
        &self,
        schedule: &str,
        adopt: ledger::schedule::Adopt<'_>,
        operator: &Operator,
    ) -> Result<(), LedgerError> {
        self.ledger.adopt_schedule(schedule, adopt, operator).await
    }

    async fn open_work(&self) -> Result<Vec<OpenRun>, LedgerError> {
        self.ledger.open_work().await
    }

    async fn finish(&self, due: &Due) -> Result<u64, LedgerError> {
        self.ledger.finish(due).await
    }

    async fn schedule_states(&self) -> Result<Vec<ScheduleState>, LedgerError> {
        self.ledger.schedule_states().await
    }

    async fn unfinished(&self) -> Result<Vec<(String, chrono::DateTime<chrono::Utc>)>, LedgerError> {
        self.ledger.unfinished().await
    }

    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunHistory>, LedgerError> {
        self.ledger.history(filter).await
    }
}

/// Lets the clock by which a planner counts on be later.
async fn pass(span: Duration) {
    tokio::time::pause();
    tokio::time::advance(span).await;
    tokio::time::resume();
}

/// R10: with the next occurrence hours away, a look a minute is all; fifty instances ask about once a second together.
async fn r10_an_idle_instance_asks_nobody(place: Place) {
    let ledger = place.open().await;
    // never near: it is over before the test is
    let marks = ledger.marks().await.expect("marks");
    let far = (marks.now + chrono::TimeDelta::hours(12)).format("0 %M %H * * *").to_string();
    let watched = Watched::new(&ledger, None);
    let far = named("far", &scheduler::RawSchedule { zone: "UTC".to_owned(), ..raw(&far) });
    let mut planner = Planner::new(Arc::clone(&watched) as Arc<dyn Schedules>, holder(), vec![far]);
    assert!(matches!(planner.ring().await, Rung::Looked(_)));
    let asked = watched.asked();
    for _ in 0..44 {
        assert!(matches!(planner.ring().await, Rung::Quiet));
        pass(Duration::from_secs(1)).await;
    }
    assert_eq!(watched.asked(), asked);
    pass(Duration::from_secs(16)).await;
    assert!(matches!(planner.ring().await, Rung::Looked(_)));
    assert_eq!(watched.asked(), asked + 1, "a look is one query");
}

async fn what_may_have_occurred_is_looked_at(place: Place) {
    let ledger = place.open().await;
    let mut planner = planner(&ledger, &[named("seconds", &raw("* * * * * *"))]);
    let _ = planner.ring().await;
    let mut opened = 0;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        match planner.ring().await {
            Rung::Looked(report) => opened += report.opened(),
            Rung::Quiet => {}
            Rung::Unavailable { error, .. } => panic!("{error}"),
        }
    }
    assert!(opened >= 3, "{opened}");
    assert_eq!(keys(&ledger, "open").await.len(), usize::try_from(opened).expect("few"));
}

/// Another planner plans between our reading and our writing: it is noticed by the mark, and nothing is planned twice.
async fn a_mark_that_others_moved_is_read_again(place: Place) {
    let ledger = place.open().await;
    let nightly = [nightly()];
    let start = started(&ledger, &nightly).await;
    let due = occurrence(&nightly[0], start);
    let mut other = planner(&ledger, &nightly);
    let meanwhile = async move { assert_eq!(other.look_as_if(due).await.expect("a look").opened(), 1) };
    let watched = Watched::new(&ledger, Some(Box::pin(meanwhile)));
    let mut planner = Planner::new(Arc::clone(&watched) as Arc<dyn Schedules>, holder(), nightly.to_vec());
    let report = planner.look_as_if(due).await.expect("a look");
    assert_eq!((report.opened(), report.schedules.len()), (0, 0));
    assert_eq!(watched.asked(), 3, "read, refused, read again");
    assert_eq!(keys(&ledger, "open").await.len(), 1);
}

async fn a_definition_that_is_adopted_meanwhile_is_refused(place: Place) {
    let ledger = place.open().await;
    let nightly = [nightly()];
    let start = started(&ledger, &nightly).await;
    let due = occurrence(&nightly[0], start);
    let adopting = Arc::clone(&ledger);
    let meanwhile = async move {
        let operator = Operator { name: "olga".to_owned(), reason: "a test".to_owned() };
        adopting.adopt_schedule("nightly", ledger::schedule::Adopt::definition("another"), &operator).await.expect("adopted");
    };
    let watched = Watched::new(&ledger, Some(Box::pin(meanwhile)));
    let mut planner = Planner::new(watched, holder(), nightly.to_vec());
    let report = planner.look_as_if(due).await.expect("a look");
    assert!(matches!(&report.schedules[..], [row] if matches!(row.outcome, Outcome::Refused { .. })), "{report:?}");
    assert_eq!(keys(&ledger, "open").await.len(), 0);
}

/// Two schedules occur, and the ledger is gone after the first.
async fn what_was_planned_before_the_ledger_fell_silent_is_told(place: Place) {
    let ledger = place.open().await;
    let seconds = ["a", "b"].map(|name| named(name, &raw("* * * * * *")));
    started(&ledger, &seconds).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let watched = Watched::failing(&ledger, Some((1, || LedgerError::Unavailable(std::io::Error::other("gone").into()))));
    let mut planner = Planner::new(Arc::new(watched), holder(), seconds.to_vec());
    let Rung::Unavailable { report: Some(report), .. } = planner.ring().await else { panic!("it was interrupted half-way") };
    let opened = u64::try_from(keys(&ledger, "open").await.len()).expect("few");
    assert!(opened > 0 && report.opened() == opened && report.schedules.len() == 1, "{report:?}, {opened} are open");
}

async fn what_the_ledger_cannot_take_is_told_at_every_look(place: Place) {
    let ledger = place.open().await;
    let nightly = [nightly()];
    let due = occurrence(&nightly[0], started(&ledger, &nightly).await);
    let watched = Watched::failing(&ledger, Some((0, || LedgerError::Schema("a test".to_owned()))));
    let mut planner = Planner::new(Arc::new(watched), holder(), nightly.to_vec());
    for _ in 0..3 {
        let report = planner.look_as_if(due).await.expect("a look");
        assert!(matches!(&report.schedules[..], [row] if matches!(row.outcome, Outcome::Failed { .. })), "{report:?}");
    }
}

/// R10: and a young one is left where it is, so that many instances write no more than one does.
async fn a_quiet_look_moves_an_old_mark(place: Place) {
    let ledger = place.open().await;
    let start = started(&ledger, &[nightly()]).await;
    let due = occurrence(&nightly(), start);
    let watched = Watched::new(&ledger, None);
    let mut planners = [0; 3].map(|_| Planner::new(Arc::clone(&watched) as Arc<dyn Schedules>, holder(), vec![nightly()]));
    for (minute, written) in [(0, 1), (2, 1), (5, 1), (6, 2), (11, 2), (12, 3)] {
        for planner in &mut planners {
            let report = planner.look_as_if(due + chrono::TimeDelta::minutes(minute)).await.expect("a look");
            assert_eq!(report.opened(), u64::from(minute == 0 && report.schedules.len() == 1), "minute {minute}");
        }
        assert_eq!(watched.advances.load(Ordering::Relaxed), written, "minute {minute}");
    }
    assert_eq!(ledger.marks().await.expect("marks").marks[0].at, due + chrono::TimeDelta::minutes(12));
}
