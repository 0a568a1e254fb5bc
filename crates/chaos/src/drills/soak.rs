//! Several instances, faults by chance, new work all the time; and at the end nothing is lost, nothing is twofold.

mod director;
mod faults;
mod instances;
mod plan;

use super::etcd_restore::on_etcd;
use super::superseded::{Arm, Figures, Frozen, books};
use crate::books::TTL;
use crate::drill::{Drill, Telling};
use crate::event::since_boot_us;
use crate::history::Op;
use crate::instance::PATIENCE;
use crate::record::Table;
use crate::stage::until;
use crate::verdict::{Healed, Judgement};
use crate::{DrillError, Mark, Stage};
use director::{BATCHES, Director};
use domain::batch::BatchState;
use lab::etcd::Etcd;
use plan::Turn;
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
/// How often somebody looks whether an instance has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// While so many batches wait, no more are taken in.
const FULL: i64 = 3 * BATCHES as i64;

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        soak(stage).await?;
        // chance seldom freezes one exactly before its write while the next is held up there: the control arm is not left to it
        let etcd = Etcd::start()?;
        let books = on_etcd(&books(stage, TTL)?, &etcd);
        let frozen = Frozen::before_its_write(stage, &books, Arm::WithoutFence, TTL).await?;
        let _: Figures = frozen.taken_over().await?.woken().await?;
        Ok(())
    })
}

async fn soak(stage: &Stage) -> Result<(), DrillError> {
    let options = stage.options();
    stage.tell(
        "director",
        Mark::Note,
        format!("{} instances, {} s, seed {}", options.instances, options.soak.as_secs(), options.seed),
    );
    let mut director = Director::begin(stage)?;
    let (ledger, begun) = (director.books.open().await?, Instant::now());
    for (at, turn) in plan::plan(&mut stage.chance(18), options.instances, TTL, options.soak) {
        let at = begun + Duration::from_millis(at);
        while Instant::now() < at {
            director.instances.look_after()?;
            sleep_until(at.min(Instant::now() + LOOK_EVERY)).await;
        }
        // enough for everybody, and no backlog that is still there long after everything is healed
        let full = turn == Turn::TakeIn && !ledger.waiting().await.is_ok_and(|waiting| waiting.pending + waiting.settling < FULL);
        if !full {
            director.does(turn)?;
        }
    }
    director.heal().await?;
    let healed = Healed { at_us: since_boot_us(), limit: TTL * SOON };
    until("everything is settled", PATIENCE * 2, async || {
        director.instances.look_after()?;
        let waiting = ledger.waiting().await?;
        Ok((waiting.pending + waiting.settling == 0).then_some(()))
    })
    .await?;
    director.instances.end().await?;
    sentence(stage, &director, healed).await
}

async fn sentence(stage: &Stage, director: &Director<'_>, healed: Healed) -> Result<(), DrillError> {
    let (arm, books) = ("random faults", &director.books);
    let judgement = stage.judgement(books, Some(healed)).await?;
    stage.must_hold_all(arm, &judgement);
    let states = books.open().await?.status(None).await?.batches;
    let all = u64::from(BATCHES) * director.files;
    let seen: Vec<String> = states.iter().map(|(state, batches)| format!("{batches} {state}")).collect();
    let settled = states.get(&BatchState::Settled) == Some(&all) && states.len() == 1;
    stage.must_hold(arm, "every batch is settled, none is given up", format!("of {all}: {}", seen.join(", ")), settled);
    let (ended, badly) = (director.instances.ended(), director.instances.ended_badly());
    let seen = if badly.is_empty() { format!("{ended} were started again") } else { badly.join("; ") };
    stage.must_hold(arm, "who ends untold was killed, or has met a service that is away", seen, badly.is_empty());
    let own = stage.history(books)?.iter().filter(|line| line.op == Op::Fault).count() as u64;
    let faults = director.faults + own;
    let seen = format!("{faults}: {own} by the instances to themselves, {} from outside", director.faults);
    // a hundred in five minutes
    stage.must_bite(arm, "there are twenty faults a minute", seen, faults >= stage.options().soak.as_secs() / 3);
    let Judgement { refused, unanswered, overlaps, .. } = judgement;
    stage.must_bite(arm, "late writes are refused", refused.to_string(), refused > 0);
    stage.must_bite(arm, "settlements get no answer", unanswered.to_string(), unanswered > 0);
    let mut table = Table::new(
        "what happened",
        ["batches", "faults by the instances", "faults from outside", "ended untold", "refused", "unanswered", "overlaps"],
    );
    table.row([all, own, director.faults, ended as u64, refused, unanswered, overlaps].map(|count| count.to_string()));
    stage.table(table);
    Ok(())
}
