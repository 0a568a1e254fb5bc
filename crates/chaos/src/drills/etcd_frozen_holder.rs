//! etcd's leases end as all leases do: by time, whatever their holder believes. The ledger refuses who was superseded.

use crate::drill::{Drill, Telling};
use crate::{DrillError, Stage};
use lab::etcd::Etcd;
use serde_json::Value;

pub(super) const DRILL: Drill = Drill {
    name: "etcd-frozen-holder",
    about: "a holder of an etcd lease is frozen past its TTL: etcd gives the lock on, the ledger refuses the late write",
    needs: "PostgreSQL, etcd",
    quick: true,
    tell,
};

const BATCHES: u32 = 8;

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let etcd = Etcd::start()?;
        let books = stage.books(&stage.database()?);
        let books = books.with("lease.backend", "etcd").with("lease.etcd.endpoints", etcd.endpoints().join(","));
        books.take_in(BATCHES, 5)?;
        let mut a = books.start("A", &["run", "--json", "--signal-at", "BeforeSettleTx=stop"])?;
        a.wait_frozen().await?;
        let mut b = books.start("B", &["run", "--json"])?;
        let did: Value = b.end_well().await?;
        a.wake()?;
        let late: Value = a.end_well().await?;
        let report = books.open().await?.verify().await?;
        stage.must_hold("fence", "the books hold", format!("verify ok: {}", report.ok), report.ok);
        stage.must_bite("fence", "late writes are refused", late["fenced"].to_string(), late["fenced"].as_u64() > Some(0));
        let both = [&did, &late].iter().filter_map(|did| did["batches_settled"].as_u64()).sum::<u64>();
        stage.must_hold("fence", "every batch is settled once", format!("{both} of {BATCHES}"), both == u64::from(BATCHES));
        Ok::<(), DrillError>(())
    })
}
