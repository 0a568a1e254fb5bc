//! A Redis that keeps nothing on disk forgets its locks with its process. Nobody tells their holders.

use super::superseded::{Arm, Frozen, LONG, books, figures};
use crate::drill::{Drill, Telling};
use crate::{DrillError, Mark, Stage};
use lab::redis::Redis;

pub(super) const DRILL: Drill = Drill {
    name: "redis-restart",
    about: "the Redis that keeps a lock is killed and starts empty: two hold the lock, the ledger lets one of them write",
    needs: "PostgreSQL, Redis",
    quick: true,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut rows = Vec::new();
        for arm in Arm::BOTH {
            let mut redis = Redis::start()?;
            let url = format!("redis://{}", redis.address());
            let books = books(stage, LONG)?.with("lease.backend", "redis").with("lease.redis.url", url);
            let frozen = Frozen::before_its_write(stage, &books, arm, LONG).await?;
            frozen.tell_lock("redis", &locks(&redis)?);
            redis.kill()?;
            stage.tell("redis", Mark::Kill, "killed (SIGKILL), and nothing of it was on disk");
            redis.start_again()?;
            stage.tell("redis", Mark::Start, "starts again, empty");
            frozen.tell_lock("redis", &locks(&redis)?);
            let taken_over = frozen.taken_over().await?;
            taken_over.tell_lock("redis", &locks(&redis)?);
            rows.push(taken_over.woken().await?);
        }
        figures(stage, "A was frozen", &rows);
        Ok(())
    })
}

/// What the locks of a server say, whoever has them.
pub(super) fn locks(redis: &Redis) -> Result<String, DrillError> {
    let names = redis.command(&["KEYS", "settled:*"])?;
    let values = names.lines().filter(|name| name.starts_with("settled:")).map(|name| redis.command(&["GET", name]));
    Ok(values.collect::<Result<Vec<_>, _>>()?.join("\n"))
}
