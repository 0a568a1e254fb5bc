//! A cluster without its quorum answers nobody. Whoever works under a lease stops by its own deadline, nobody else begins, and all go on
//! by themselves when the quorum is back. A holder that slept through it knows of nothing.

use super::etcd_restore::{locks, on_etcd};
use super::superseded::{Arm, Figures, Frozen, SHORT, books, figures};
use super::under_way::UnderWay;
use crate::books::{Books, TTL};
use crate::drill::{Drill, Telling};
use crate::history::{Op, Phase};
use crate::instance::Instance;
use crate::{DrillError, Mark, Stage};
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
        nobody_begins(stage, &books, &frozen, &b).await?;
    }
    regain_quorum(stage, etcd)?;
    let taken_over = frozen.counted_from_now().taken_over_by(b).await?;
    taken_over.tell_lock("etcd", &locks(etcd)?);
    let figures = taken_over.woken().await?;
    etcd.start_all()?;
    Ok(figures)
}

/// Who is started in the outage waits for its end.
async fn nobody_begins(stage: &Stage, books: &Books<'_>, frozen: &Frozen<'_>, b: &Instance) -> Result<(), DrillError> {
    let before = frozen.fence().await?;
    let claimed = stage.history(books)?.iter().filter(|line| line.op == Op::Claim && line.phase == Phase::Ok).count();
    b.wait_for("is out").await?;
    stage.tell("B", Mark::Lost, "knows that the lock service is out, and waits");
    // longer than A's lease would have lasted, had etcd gone on
    tokio::time::sleep(SHORT + SHORT / 4).await;
    let (after, settled) = (frozen.fence().await?, books.settled_batches().await?);
    let claims = stage.history(books)?.iter().filter(|line| line.op == Op::Claim && line.phase == Phase::Ok).count() - claimed;
    let seen = format!("fence {before}, then {after}; {claims} claims, {settled} settled");
    let must = format!("nobody is registered, claims or settles without a quorum, in {} ms", (SHORT + SHORT / 4).as_millis());
    stage.must_hold(Arm::Fence.name(), &must, seen, after == before && claims == 0 && settled == 0);
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
