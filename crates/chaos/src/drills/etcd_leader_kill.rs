//! Three members bear the loss of their leader: they choose another, who knows of every lock. One member alone is its own leader.

use super::etcd_restore::on_etcd;
use super::superseded::books;
use super::under_way::UnderWay;
use crate::books::TTL;
use crate::drill::{Drill, Telling};
use crate::record::Table;
use crate::{DrillError, Mark, Stage};
use lab::etcd::Etcd;
use std::time::Instant;

pub(super) const DRILL: Drill = Drill {
    name: "etcd-leader-kill",
    about: "the leader of etcd is killed in the middle of a run: with three members the run goes on, with one it stands still",
    needs: "PostgreSQL, etcd",
    quick: false,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut table = Table::new("A leader killed", ["members", "settled when it was killed", "another leader after (ms)"]);
        one_member(stage, &mut table).await?;
        three_members(stage, &mut table).await?;
        stage.table(table);
        Ok(())
    })
}

/// The control: with the only member goes the service.
async fn one_member(stage: &Stage, table: &mut Table) -> Result<(), DrillError> {
    let arm = "one member";
    let mut etcd = Etcd::start()?;
    let books = on_etcd(&books(stage, TTL)?, &etcd).with("worker.partitions", 2);
    let run = UnderWay::begin(stage, arm, &books, &["A", "B"]).await?;
    etcd.kill(0)?;
    stage.tell("etcd", Mark::Kill, "its only member is killed (SIGKILL)");
    let (settled, more) = run.stands_still(TTL).await?;
    run.hit(settled);
    let seen = format!("{settled} batches settled, {more} more in {} ms", TTL.as_millis());
    stage.must_break(arm, "the run stands still", seen, more == 0);
    table.row([arm.to_owned(), settled.to_string(), "never".to_owned()]);
    etcd.start_again(0)?;
    stage.tell("etcd", Mark::Heal, "started again, with what it has on disk");
    run.finished().await
}

async fn three_members(stage: &Stage, table: &mut Table) -> Result<(), DrillError> {
    let arm = "three members";
    let mut etcd = Etcd::start_three()?;
    let books = on_etcd(&books(stage, TTL)?, &etcd).with("worker.partitions", 2);
    let run = UnderWay::begin(stage, arm, &books, &["A", "B"]).await?;
    let leader = etcd.leader()?;
    etcd.kill(leader)?;
    let killed = Instant::now();
    stage.tell("etcd", Mark::Kill, format!("member {}, the leader, is killed (SIGKILL)", leader + 1));
    let settled = run.settled().await?;
    run.hit(settled);
    let next = etcd.leader_besides(Some(leader))?;
    let election = killed.elapsed();
    stage.tell("etcd", Mark::Heal, format!("member {} leads", next + 1));
    table.row([arm.to_owned(), settled.to_string(), election.as_millis().to_string()]);
    // the one that was killed stays away
    run.finished().await
}
