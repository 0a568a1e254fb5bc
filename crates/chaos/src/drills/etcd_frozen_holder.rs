//! etcd's leases end as all leases do: by time, whatever their holder believes. The ledger refuses who was superseded.

use super::etcd_restore::{locks, on_etcd};
use super::superseded::{Arm, Frozen, SHORT, books, figures};
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
