//! An etcd that is built again from a snapshot counts its revisions from there: tokens go back. A frozen holder then has a higher one
//! than whoever comes after it. The ledger stops, until an operator raises the generation.

use super::superseded::{Arm, Figures, Frozen, LONG, books, figures};
use crate::books::Books;
use crate::drill::{Drill, Telling};
use crate::{DrillError, Mark, Stage};
use lab::etcd::Etcd;

pub(super) const DRILL: Drill = Drill {
    name: "etcd-restore",
    about: "etcd is restored from a snapshot and its tokens go back: nothing is settled until `fence adopt`, then the old holder is refused",
    needs: "PostgreSQL, etcd, etcdctl",
    quick: true,
    tell,
};

/// By so many the tokens go back, at the least: more than are drawn until the story is over.
const FORGOTTEN: u32 = 24;

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut etcd = Etcd::start()?;
        let mut rows = Vec::new();
        for (arm, as_another) in [(Arm::WithoutFence, false), (Arm::Fence, false), (Arm::Fence, true)] {
            rows.push(restored(stage, &mut etcd, arm, as_another).await?);
        }
        figures(stage, "A was frozen", &rows);
        Ok(())
    })
}

/// A is registered under a token that etcd then forgets; B comes when the generation was raised.
async fn restored(stage: &Stage, etcd: &mut Etcd, arm: Arm, as_another: bool) -> Result<Figures, DrillError> {
    let id = if as_another { "another cluster id" } else { "the same cluster id" };
    let name = format!("{}, {id}", arm.name());
    let snapshot = stage.path(&format!("{name}.db"));
    etcd.snapshot(&snapshot)?;
    stage.tell("etcd", Mark::Note, format!("a snapshot is taken at revision {}", etcd.revision()?));
    (0..FORGOTTEN).try_for_each(|_| etcd.ctl(&["put", "somebody", "else"]).map(drop))?;
    // no order of leases is looked for across the two: what the second one gives, the first may have given before
    let books = on_etcd(&books(stage, LONG)?, etcd).with_lock_service_replaced();
    let frozen = Frozen::before_its_write(stage, &books, arm, LONG).await?.named(&name);
    frozen.tell_lock("etcd", &locks(etcd)?);
    let before = frozen.fence().await?;
    etcd.restore(&snapshot, as_another)?;
    stage.tell("etcd", Mark::Fault, format!("restored with {id}, at revision {}", etcd.revision()?));
    frozen.tell_lock("etcd", &locks(etcd)?);
    stage.tell("director", Mark::Note, "the two are two services: no common order of their leases is looked for");
    stopped_until_adopted(stage, &name, &books).await?;
    let taken_over = frozen.taken_over().await?;
    taken_over.tell_lock("etcd", &locks(etcd)?);
    let after = taken_over.fence().await?;
    let seen = format!("generation.token: A {before}, B {after}");
    let must = "by its token alone the superseded holder would be the newer one";
    stage.must_bite(&name, must, seen.clone(), after.token < before.token);
    stage.must_hold(&name, "with its generation, the newer holder has the higher fence", seen, after > before);
    taken_over.woken().await
}

/// The next instance refuses to work and names the command that an operator then gives.
async fn stopped_until_adopted(stage: &Stage, arm: &str, books: &Books<'_>) -> Result<(), DrillError> {
    let output = books.command(&["run", "--wait", "30"]).output().map_err(DrillError::io("starting this program"))?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let refuses = !output.status.success() && told.contains("settled fence adopt --reason");
    stage.tell("C", Mark::Refused, format!("an instance that starts now ends with {}, and says what to do", output.status));
    let settled = books.settled_batches().await?;
    let seen = format!("{}, `fence adopt` named: {refuses}, {settled} settled", output.status);
    stage.must_hold(arm, "nothing is settled before somebody decides", seen, refuses && settled == 0);
    books.settled(&["fence", "adopt", "--reason", "etcd was restored from a snapshot"])?;
    stage.tell("director", Mark::Heal, "settled fence adopt --reason …: the generation is raised");
    Ok(())
}

/// These books with leases in that cluster.
pub(super) fn on_etcd<'a>(books: &Books<'a>, etcd: &Etcd) -> Books<'a> {
    books.with("lease.backend", "etcd").with("lease.etcd.endpoints", etcd.endpoints().join(","))
}

/// What the locks of a cluster say, whoever has them.
pub(super) fn locks(etcd: &Etcd) -> Result<String, DrillError> {
    Ok(etcd.ctl(&["get", "--prefix", "settled/", "--print-value-only"])?)
}
