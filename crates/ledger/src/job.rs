//! What became of a job that could not be finished: one decision for every engine.

use crate::schedule::JobEnd;
use crate::{Fences, LedgerError, Operation, Rejection};
use domain::fence::{Stamp, Standing, standing};
use domain::unit::Unit;

/// Why nothing was written when `mine` finished a job: it is done, or a newer holder has it.
pub(crate) async fn refused(
    ledger: &(impl Fences + ?Sized),
    unit: Unit,
    mine: Stamp,
    (done, stored): (Option<Stamp>, Stamp),
) -> Result<JobEnd, LedgerError> {
    match done {
        // our reply was lost
        Some(by) if by == mine => return Ok(JobEnd::Done),
        Some(_) if standing(mine, stored) == Standing::Current => return Ok(JobEnd::AlreadyDone),
        Some(_) | None => {}
    }
    ledger.record_rejections(&[Rejection { operation: Operation::Job, unit, batch: None, stamp: mine, stored }]).await?;
    Ok(JobEnd::Fenced { stored })
}
