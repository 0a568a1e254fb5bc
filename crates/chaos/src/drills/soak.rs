//! Several instances, faults by chance, new work all the time; and at the end nothing is lost, nothing is twofold.

mod director;
mod plan;

use super::etcd_frozen_holder::freeze_past_the_ttl;
use crate::books::TTL;
use crate::drill::{Drill, Telling};
use crate::event::since_boot_us;
use crate::instance::PATIENCE;
use crate::stage::until;
use crate::verdict::Healed;
use crate::{DrillError, Mark, Stage};
use director::Director;
use lab::etcd::Etcd;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

pub(super) const DRILL: Drill = Drill {
    name: "soak",
    about: "instances are frozen, killed, cut off and restarted at random, the database too: everything is settled once all the same",
    needs: "PostgreSQL, etcd",
    quick: false,
    tell,
};

/// Work goes on so many TTLs after everything is well, at the latest. Most of it is how long a busy machine takes.
const SOON: u32 = 15;

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        soak(stage).await?;
        // chance seldom freezes one exactly before its write while the next is held up there: the control arm is not left to it
        let etcd = Etcd::start()?;
        let books = stage.books(&stage.database()?).with("worker.partitions", 1);
        let books = books.with("lease.backend", "etcd").with("lease.etcd.endpoints", etcd.endpoints().join(","));
        books.take_in(1, 5)?;
        freeze_past_the_ttl(stage, &books, "without the fence", false).await
    })
}

async fn soak(stage: &Stage) -> Result<(), DrillError> {
    let (arm, options) = ("random faults", stage.options());
    stage.tell(
        "director",
        Mark::Note,
        format!("{} instances, {} s, seed {}", options.instances, options.soak.as_secs(), options.seed),
    );
    let mut director = Director::begin(stage)?;
    let begun = Instant::now();
    for (at, turn) in plan::plan(&mut stage.chance(18), options.instances, TTL, options.soak) {
        sleep_until(begun + Duration::from_millis(at)).await;
        director.does(turn)?;
    }
    director.heal()?;
    let healed = Healed { at_us: since_boot_us(), limit: TTL * SOON };
    let ledger = director.books.open().await?;
    until("everything is settled", PATIENCE * 2, async || {
        let waiting = ledger.waiting().await?;
        Ok((waiting.pending + waiting.settling == 0).then_some(()))
    })
    .await?;
    director.end().await?;
    let judgement = stage.judgement(&director.books, Some(healed)).await?;
    stage.must_hold_all(arm, &judgement);
    let seen = format!("{}, and {} writes were refused", director.faults, judgement.refused);
    // a hundred in five minutes
    stage.must_bite(arm, "a fault every three seconds", seen, director.faults >= options.soak.as_secs() / 3);
    Ok(())
}
