//! The worker: what every instance does with a run.
//!
//! Read in this order: [`run`] (until nothing is due; [`serve`] goes on) → [`grant`] (acquire → mint → prove → register) → [`settle`] (claim, guard,
//! settle, until the unit is done) → [`row_lock`] (the same without a lease) → [`job`] (work of one's own). Nothing here decides whether a write is allowed:
//! the lease says when to stop trying, the ledger says no.

pub mod drain;
mod error;
pub mod grant;
pub mod job;
pub mod metric;
pub mod pulse;
pub mod report;
pub mod row_lock;
pub mod run;
pub mod serve;
pub mod settings;
pub mod settle;

pub use drain::Drain;
pub use error::WorkerError;
pub use job::{JobError, JobOutcome, NightlyJob, Turn};
pub use pulse::Pulse;
pub use report::{Counters, RunReport};
pub use settings::{Pace, WorkerSettings};

use domain::ids::HolderId;
use domain::step::{NoProbe, Probe};
use lease::Keeper;
use ledger::Ledger;
use std::sync::Arc;

/// One process start that settles batches. Any number of them, anywhere, may work on one ledger.
pub struct Worker {
    /// The resource that decides.
    pub ledger: Arc<dyn Ledger>,
    /// Keeps our leases; `None` under the guards without leases, which have nothing to keep.
    pub keeper: Option<Keeper>,
    /// Who we are: the same that the keeper was started with.
    pub holder: HolderId,
    /// How we work; a reload of the configuration changes it.
    pub pace: Pace,
    /// Told of every step.
    pub probe: Arc<dyn Probe>,
    /// What we did so far; read by whoever shows progress.
    pub counters: Arc<Counters>,
    /// Says when to stop taking up work.
    pub drain: Drain,
    /// Says that our loops turn.
    pub pulse: Arc<Pulse>,
}

impl Worker {
    /// One that nobody watches or stops yet.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>, keeper: Option<Keeper>, holder: HolderId, settings: WorkerSettings) -> Worker {
        Worker {
            ledger,
            keeper,
            holder,
            pace: Pace::new(settings),
            probe: Arc::new(NoProbe),
            counters: Arc::default(),
            drain: Drain::default(),
            pulse: Arc::default(),
        }
    }
}
