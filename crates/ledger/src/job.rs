//! One's own jobs: how they end. Needs `error.rs`, `domain::fence`.

use crate::{Fences, LedgerError, Operation, Rejection};
use domain::fence::{Stamp, Standing, standing};
use domain::unit::Unit;

/// The end of one's own job, as the ledger saw it. Match it without `_`.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// It is done for this run, by us.
    Done,
    /// Another holder had finished it before.
    AlreadyDone,
    /// A newer holder has the job: what we did was, or will be, done by it. Kept as a rejection.
    Fenced {
        /// Who.
        stored: Stamp,
    },
    /// The ledger does not know this stamp: release and acquire anew.
    ClaimLost,
}

/// Why nothing was written when `mine` finished a job: it is done, or the unit is not ours. One decision for every engine.
pub(crate) async fn unfinished(
    ledger: &(impl Fences + ?Sized),
    unit: Unit,
    mine: Stamp,
    done: Option<Stamp>,
) -> Result<JobEnd, LedgerError> {
    // our reply was lost
    if done == Some(mine) {
        return Ok(JobEnd::Done);
    }
    let stored = ledger.fence(unit).await?;
    match standing(mine, stored) {
        Standing::Superseded => {
            ledger.record_rejections(&[Rejection { operation: Operation::Job, unit, batch: None, stamp: mine, stored }]).await?;
            Ok(JobEnd::Fenced { stored })
        }
        Standing::Current if done.is_some() => Ok(JobEnd::AlreadyDone),
        Standing::Current | Standing::Unregistered => Ok(JobEnd::ClaimLost),
    }
}
