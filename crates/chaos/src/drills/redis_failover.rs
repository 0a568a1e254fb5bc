//! Redis replicates after it has answered. A replica that is promoted before it heard of a lock gives it to the next who asks.

use super::redis_restart::locks;
use super::superseded::{Arm, Frozen, LONG, books, figures};
use crate::drill::{Drill, Telling};
use crate::{Mark, Stage};
use lab::redis::{PRIMARY_NAME, Trio};

pub(super) const DRILL: Drill = Drill {
    name: "redis-failover",
    about: "a primary of Redis dies before its replica heard of a lock: two hold the lock, the ledger lets one of them write",
    needs: "PostgreSQL, Redis with its sentinel",
    quick: false,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut rows = Vec::new();
        for arm in Arm::BOTH {
            let mut trio = Trio::start()?;
            let books = books(stage, LONG)?
                .with("lease.backend", "redis")
                .with("lease.redis.url", format!("redis://{PRIMARY_NAME}"))
                .with("lease.redis.sentinels", format!("redis://{}", trio.sentinel_address()));
            trio.stop_replication()?;
            stage.tell("primary", Mark::Fault, "replication lags: the replica hears nothing new");
            let frozen = Frozen::before_its_write(stage, &books, arm, LONG).await?;
            frozen.tell_lock("primary", &locks(&trio.first)?);
            frozen.tell_lock("replica", &locks(&trio.second)?);
            trio.first.kill()?;
            stage.tell("primary", Mark::Kill, "killed (SIGKILL)");
            trio.wait_for_second()?;
            stage.tell("replica", Mark::Start, "promoted by the sentinel: it is the primary now");
            let taken_over = frozen.taken_over().await?;
            taken_over.tell_lock("replica", &locks(&trio.second)?);
            rows.push(taken_over.woken().await?);
        }
        figures(stage, "A was frozen", &rows);
        Ok(())
    })
}
