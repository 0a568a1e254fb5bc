//! The worker: what every instance does with a run.
//!
//! Read in this order: [`run`] (until nothing is due) → [`grant`] (acquire → mint → prove → register) → [`settle`] (claim, guard,
//! settle, until the unit is done) → [`row_lock`] (the same without a lease). Nothing here decides whether a write is allowed:
//! the lease says when to stop trying, the ledger says no.

pub mod drain;
mod error;
pub mod grant;
pub mod report;
pub mod row_lock;
pub mod run;
pub mod settings;
pub mod settle;

pub use drain::Drain;
pub use error::WorkerError;
pub use report::{Counters, RunReport};
pub use settings::WorkerSettings;

use domain::ids::HolderId;
use domain::step::Probe;
use lease::Keeper;
use ledger::Ledger;
use std::sync::Arc;

/// One process start that settles batches. Any number of them, anywhere, may work on one ledger.
pub struct Worker {
    /// The resource that decides.
    pub ledger: Arc<dyn Ledger>,
    /// Keeps our leases; `None` under the row-lock guard, which has nothing to keep.
    pub keeper: Option<Keeper>,
    /// Who we are: the same that the keeper was started with.
    pub holder: HolderId,
    /// How we work.
    pub settings: WorkerSettings,
    /// Told of every step.
    pub probe: Arc<dyn Probe>,
    /// What we did so far; read by whoever shows progress.
    pub counters: Arc<Counters>,
    /// Says when to stop taking up work.
    pub drain: Drain,
}
