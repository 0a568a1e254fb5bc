//! etcd's leases end as all leases do: by time, whatever their holder believes. The ledger refuses who was superseded.

use crate::books::Books;
use crate::drill::{Drill, Telling};
use crate::instance::{Instance, PATIENCE};
use crate::stage::until;
use crate::verdict::fences::SUPERSEDED;
use crate::{DrillError, Mark, Stage, Without};
use domain::batch::BatchState;
use domain::unit::Unit;
use lab::etcd::Etcd;
use serde_json::Value;

pub(super) const DRILL: Drill = Drill {
    name: "etcd-frozen-holder",
    about: "a holder of an etcd lease is frozen past its TTL: etcd gives the lock on, the ledger refuses the late write",
    needs: "PostgreSQL, etcd",
    quick: true,
    tell,
};

const STOPS_BEFORE_ITS_WRITE: [&str; 2] = ["--signal-at", "BeforeSettleTx=stop"];

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let etcd = Etcd::start()?;
        for (arm, fenced) in [("without the fence", false), ("fence", true)] {
            stage.tell("director", Mark::Note, format!("{arm}: one batch, so that both have it in hand"));
            let books = stage.books(&stage.database()?).with("worker.partitions", 1);
            let books = books.with("lease.backend", "etcd").with("lease.etcd.endpoints", etcd.endpoints().join(","));
            books.take_in(1, 5)?;
            freeze_past_the_ttl(stage, &books, arm, fenced).await?;
        }
        Ok(())
    })
}

/// A is frozen before its write, B takes unit and batch over and is held up before its own, so that A finds the batch still open.
async fn freeze_past_the_ttl(stage: &Stage, books: &Books<'_>, arm: &str, fenced: bool) -> Result<(), DrillError> {
    let mut a = match fenced {
        true => books.start("A", &[&["run", "--json"], &STOPS_BEFORE_ITS_WRITE[..]].concat())?,
        false => books.start_without(Without::Fence, "A", &STOPS_BEFORE_ITS_WRITE)?,
    };
    a.wait_frozen().await?;
    let mut b = books.start("B", &[&["run", "--json"], &STOPS_BEFORE_ITS_WRITE[..]].concat())?;
    b.wait_frozen().await?;
    wake_the_superseded(stage, books, &mut a).await?;
    b.wake()?;
    let (_, _): (Value, Value) = (a.end_well().await?, b.end_well().await?);
    if fenced {
        let refused = stage.judge(arm, books).await?;
        stage.must_bite(arm, "late writes are refused", refused.to_string(), refused > 0);
    } else {
        let judgement = stage.judgement(books, None).await?;
        let found = judgement.of(SUPERSEDED).map(|finding| finding.seen.clone()).unwrap_or_default();
        stage.must_break(arm, "a superseded holder commits", found, judgement.breaks(SUPERSEDED));
    }
    Ok(())
}

/// Returns when the first thing that it writes has gone in, or was refused.
async fn wake_the_superseded(stage: &Stage, books: &Books<'_>, a: &mut Instance) -> Result<(), DrillError> {
    let ledger = books.open().await?;
    let newest = ledger.fence(Unit(0)).await?.fence;
    a.wake()?;
    let wrote = until("A writes or is refused", PATIENCE, async || {
        let status = ledger.status(None).await?;
        let settled = status.batches.contains_key(&BatchState::Settled);
        Ok((settled || status.fence_rejections > 0).then_some(settled))
    });
    if wrote.await? {
        stage.tell("A", Mark::Damage, format!("its late write is in the ledger, though fence {newest} is B's"));
    }
    Ok(())
}
