//! A cluster without its quorum answers nobody. Whoever works under a lease stops by its own deadline, nobody else begins, and all go on
//! by themselves when the quorum is back. A holder that slept through it knows of nothing.

use super::etcd_restore::{locks, on_etcd};
use super::superseded::{Arm, Figures, Frozen, SHORT, books, figures};
use super::under_way::UnderWay;
use crate::books::{Books, TTL};
use crate::drill::{Drill, Telling};
use crate::instance::Instance;
use crate::{DrillError, Mark, Stage};
use domain::batch::BatchState;
use lab::etcd::Etcd;

pub(super) const DRILL: Drill = Drill {
    name: "etcd-quorum-loss",
    about: "two of three members of etcd are gone: nothing is settled; back again, work goes on, and who slept through it is refused",
    needs: "PostgreSQL, etcd, etcdctl",
    quick: false,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut etcd = Etcd::start_three()?;
        fails_closed(stage, &mut etcd).await?;
        let mut rows = Vec::new();
        for arm in Arm::BOTH {
            rows.push(slept_through(stage, &mut etcd, arm).await?);
        }
        figures(stage, "the quorum was back", &rows);
        Ok(())
    })
}

/// A run that is under way stops, and goes on.
async fn fails_closed(stage: &Stage, etcd: &mut Etcd) -> Result<(), DrillError> {
    let books = on_etcd(&books(stage, TTL)?, etcd);
    let run = UnderWay::begin(stage, "a run under way", &books, &["C"]).await?;
    lose_quorum(stage, etcd)?;
    let (settled, more) = run.stands_still(TTL).await?;
    run.hit(settled);
    let seen = format!("{more} batches in {} ms", TTL.as_millis());
    stage.must_hold("a run under way", "nothing is settled without a quorum", seen, more == 0);
    regain_quorum(stage, etcd)?;
    run.finished().await?;
    Ok(etcd.start_all()?)
}

/// A sleeps from before the outage until another has its lease; that other was started in the outage, and waits for its end.
async fn slept_through(stage: &Stage, etcd: &mut Etcd, arm: Arm) -> Result<Figures, DrillError> {
    let books = on_etcd(&books(stage, SHORT)?, etcd);
    let frozen = Frozen::before_its_write(stage, &books, arm, SHORT).await?;
    frozen.tell_lock("etcd", &locks(etcd)?);
    lose_quorum(stage, etcd)?;
    let b = frozen.start_other()?;
    if arm == Arm::Fence {
        nobody_begins(stage, &books, arm, &b).await?;
    }
    regain_quorum(stage, etcd)?;
    let taken_over = frozen.counted_from_now().taken_over_by(b).await?;
    taken_over.tell_lock("etcd", &locks(etcd)?);
    let figures = taken_over.woken().await?;
    etcd.start_all()?;
    Ok(figures)
}

/// Who is started in the outage waits for its end.
async fn nobody_begins(stage: &Stage, books: &Books<'_>, arm: Arm, b: &Instance) -> Result<(), DrillError> {
    b.wait_for("is out").await?;
    stage.tell("B", Mark::Lost, "knows that the lock service is out, and waits");
    let settled = books.open().await?.status(None).await?.batches.contains_key(&BatchState::Settled);
    let seen = format!("something was settled: {settled}");
    stage.must_hold(arm.name(), "nobody begins without a quorum", seen, !settled);
    Ok(())
}

fn lose_quorum(stage: &Stage, etcd: &mut Etcd) -> Result<(), DrillError> {
    etcd.kill(0)?;
    etcd.kill(1)?;
    stage.tell("etcd", Mark::Kill, "two of its three members are killed (SIGKILL)");
    Ok(())
}

fn regain_quorum(stage: &Stage, etcd: &mut Etcd) -> Result<(), DrillError> {
    etcd.start_again(0)?;
    stage.tell("etcd", Mark::Heal, "one of them is back, and with it the quorum");
    Ok(())
}
