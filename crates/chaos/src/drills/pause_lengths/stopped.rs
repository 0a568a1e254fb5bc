//! A holder with a renewal timer that is stopped again and again, for random times, and another that takes its lock when it is free.

use crate::actors::Part;
use crate::actors::ticker::Load;
use crate::actors::ticker::{Did, Ticker};
use crate::articles::{Counter, Lock};
use crate::instance::PATIENCE;
use crate::measure::Sample;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use lab::redis::Redis;
use rand::RngExt;
use std::time::Duration;

const STOPS: u32 = 10;
const TTL_MS: u64 = 500;

/// How late its ticks were. Every takeover must lead to one refused write, and nothing else to any.
pub(super) async fn tell(stage: &Stage) -> Result<Sample, DrillError> {
    let server = Redis::start()?;
    let (database, redis) = (stage.database()?.to_string(), format!("redis://{}", server.address()));
    Counter::create_table(&database).await?;
    let (holds, over) = (Ticker::holder(&redis, &database, TTL_MS), stage.path("over"));
    let mut counter = Counter::at(&database, &holds.name).await?;
    counter.reset().await?;
    let mut lock = Lock::at(&redis, &holds.name, Duration::from_millis(TTL_MS)).await?;
    let mut a = stage.actor("A", &Part::Ticker(Ticker { load: Load::Nothing, holds: Some(holds), over: over.clone() }))?;
    let (mut chance, mut last, mut superseded) = (stage.chance(9), 0, Vec::new());
    for stop in 0..STOPS {
        until("A writes", PATIENCE, async || Ok((counter.fence().await? != last).then_some(()))).await?;
        // the first two are one of each kind, whatever the seed
        let ms = match stop {
            0 => TTL_MS * 3,
            1 => TTL_MS / 10,
            _ => chance.random_range(10..TTL_MS * 2),
        };
        tokio::time::sleep(Duration::from_millis(chance.random_range(20..200))).await;
        a.freeze()?;
        tokio::time::sleep(Duration::from_millis(ms)).await;
        let taken = lock.try_take().await?;
        if let Some(held) = &taken {
            let of_a = counter.fence().await?;
            last = lock.token().await?;
            counter.write_again(last).await?;
            superseded.push(of_a);
            stage.tell("B", Mark::Write, format!("finds the lock free after {ms} ms, and writes with token {last}"));
            lock.release(held).await?;
        }
        a.wake()?;
    }
    until("A writes", PATIENCE, async || Ok((counter.fence().await? != last).then_some(()))).await?;
    std::fs::write(&over, "").map_err(DrillError::io("telling A that it is over"))?;
    let did: Did = a.end_well().await?;
    let seen = format!("{} of {STOPS} stops", superseded.len());
    stage.must_break("renewal timer", "the lease is outlived all the same", seen, !superseded.is_empty());
    let seen = format!("superseded {superseded:?}, refused {:?}, {} writes not", did.refused, did.written);
    let must = "refused is the next write with each token that was superseded, and no other";
    stage.must_hold("fence", must, seen, did.refused == superseded);
    Ok(Sample::of(did.late_us))
}
