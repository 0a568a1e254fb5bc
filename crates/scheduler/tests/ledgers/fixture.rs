//! Ledgers, planners and schedules in a few words.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::ids::HolderId;
use lab::postgres::PostgresUrl;
use ledger::schedule::{RunFilter, RunHistory};
use ledger::{Guard, Ledger, OpenOptions};
use scheduler::RawSchedule;
use scheduler::definition::Definition;
use scheduler::planner::Planner;
use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

/// A test of the suite, by its name.
pub type Named = (&'static str, Test);
/// Given a place without a ledger.
pub type Test = fn(Place) -> Pin<Box<dyn Future<Output = ()>>>;

/// The tests of a module by their names, for [`Named`].
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        &[$((concat!(module_path!(), "::", stringify!($name)), |place| Box::pin($name(place)))),*]
    };
}

/// Where a ledger can be made.
#[derive(Debug, Clone)]
pub struct Place {
    url: String,
    _folder: Option<Arc<tempfile::TempDir>>,
}

impl Place {
    pub fn sqlite() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        Place { url: format!("sqlite:{}", folder.path().join("settled.db").display()), _folder: Some(Arc::new(folder)) }
    }

    /// An empty database.
    pub fn at(url: &str) -> Place {
        Place { url: url.to_owned(), _folder: None }
    }

    /// The database, where there is a server that can be asked.
    pub fn postgres(&self) -> Option<PostgresUrl> {
        self.url.starts_with("postgres").then(|| PostgresUrl::new(self.url.clone()))
    }

    /// Opens it once more: an instance has a pool of its own.
    pub async fn open(&self) -> Arc<dyn Ledger> {
        let (guard, partitions) = (Guard::Lease, 1);
        let options = OpenOptions { url: self.url.clone(), partitions, guard, migrate: true, connections: 4 };
        ledger::open(&options).await.expect("a ledger")
    }
}

/// A process start.
pub fn holder() -> HolderId {
    HolderId(uuid::Uuid::new_v4())
}

/// A new process that plans these.
pub fn planner(ledger: &Arc<dyn Ledger>, definitions: &[Definition]) -> Planner {
    Planner::new(Arc::clone(ledger) as Arc<dyn ledger::Schedules>, holder(), definitions.to_vec())
}

pub fn raw(cron: &str) -> RawSchedule {
    RawSchedule { cron: cron.to_owned(), zone: "Europe/Dublin".to_owned(), ..RawSchedule::default() }
}

pub fn named(name: &str, raw: &RawSchedule) -> Definition {
    raw.define(name, Path::new("/nowhere")).expect("a schedule")
}

pub fn nightly() -> Definition {
    named("nightly", &raw("30 2 * * *"))
}

/// Starts the schedules, and says from when on they are planned.
pub async fn started(ledger: &Arc<dyn Ledger>, definitions: &[Definition]) -> DateTime<Utc> {
    let _ = planner(ledger, definitions).look().await.expect("a first look");
    let marks = ledger.marks().await.expect("marks").marks;
    marks.iter().map(|mark| mark.at).max().expect("a mark")
}

/// When it occurs first after a moment that is certainly after the start.
pub fn occurrence(definition: &Definition, after: DateTime<Utc>) -> DateTime<Utc> {
    definition.next_after(after + TimeDelta::seconds(10)).expect("an occurrence").at
}

/// Every row, oldest key first.
pub async fn rows(ledger: &Arc<dyn Ledger>) -> Vec<RunHistory> {
    let mut rows = ledger.history(&RunFilter { schedule: None, limit: 100_000 }).await.expect("a history");
    rows.sort_by(|a, b| (&a.key.schedule, a.scheduled_for).cmp(&(&b.key.schedule, b.scheduled_for)));
    rows
}

/// Those that are open, or missed.
pub async fn keys(ledger: &Arc<dyn Ledger>, state: &str) -> Vec<(NaiveDate, String)> {
    let rows = rows(ledger).await.into_iter().filter(|row| row.state == state);
    rows.map(|row| (row.key.business_date, row.key.slot)).collect()
}

/// What should have run in a window.
pub fn occurring(definition: &Definition, after: DateTime<Utc>, until: DateTime<Utc>) -> Vec<(NaiveDate, String)> {
    definition.occurrences(after, until).map(|found| (found.business_date, found.slot())).collect()
}

/// Without order, and each once.
pub fn set<T: Ord>(all: Vec<T>) -> BTreeSet<T> {
    let count = all.len();
    let set: BTreeSet<T> = all.into_iter().collect();
    assert_eq!(set.len(), count, "something is there twice");
    set
}
