//! etcd's leases end as all leases do: by time, whatever their holder believes. The ledger refuses who was superseded.

use super::etcd_restore::{locks, on_etcd};
use super::superseded::{Arm, Figures, Frozen, SHORT, books, figures};
use crate::books::{Books, TTL};
use crate::drill::{Drill, Telling};
use crate::{DrillError, Stage};
use lab::etcd::Etcd;

pub(super) const DRILL: Drill = Drill {
    name: "etcd-frozen-holder",
    about: "a holder of an etcd lease is frozen past its TTL: etcd gives the lock on, the ledger refuses the late write",
    needs: "PostgreSQL, etcd",
    quick: true,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let etcd = Etcd::start()?;
        let mut rows = Vec::new();
        for arm in Arm::BOTH {
            let books = on_etcd(&books(stage, SHORT)?, &etcd);
            let frozen = Frozen::before_its_write(stage, &books, arm, SHORT).await?;
            frozen.tell_lock("etcd", &locks(&etcd)?);
            let taken_over = frozen.taken_over().await?;
            taken_over.tell_lock("etcd", &locks(&etcd)?);
            rows.push(taken_over.woken().await?);
        }
        figures(stage, "A was frozen", &rows);
        Ok::<(), DrillError>(())
    })
}

/// The same story with the one batch of these books, whatever keeps their leases.
pub(super) async fn freeze_past_the_ttl(stage: &Stage, books: &Books<'_>, arm: &str, fenced: bool) -> Result<(), DrillError> {
    let which = if fenced { Arm::Fence } else { Arm::WithoutFence };
    let frozen = Frozen::on_what_is_due(stage, books, which, TTL).await?.named(arm);
    let _: Figures = frozen.taken_over().await?.woken().await?;
    Ok(())
}
