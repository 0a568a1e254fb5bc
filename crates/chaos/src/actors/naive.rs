//! A settlement job as it is often written: under a lock it looks whether the batch is done, posts its effect, and says that it is done.

use crate::articles::Lock;
use crate::{DrillError, Mark};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection};
use std::time::Duration;

use super::{signal_oneself, tell};

/// The part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Naive {
    /// Where the lock is.
    pub redis: String,
    /// Where batch and effects are: see [`TABLES`].
    pub database: String,
    /// For how long the lock is taken.
    pub ttl_ms: u64,
    /// Stops itself before it posts.
    pub freezes: bool,
}

/// What it reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// That it settled the batch.
    pub settled: bool,
}

/// One batch, and what was posted for it.
pub const TABLES: &str = "CREATE TABLE naive_batch (id bigint PRIMARY KEY, state text NOT NULL);
    CREATE TABLE naive_posting (id bigint GENERATED ALWAYS AS IDENTITY, batch bigint NOT NULL, amount_minor bigint NOT NULL);
    INSERT INTO naive_batch VALUES (1, 'pending')";

impl Naive {
    pub(super) async fn play(&self) -> Result<Did, DrillError> {
        let mut lock = Lock::at(&self.redis, "settle:1", Duration::from_millis(self.ttl_ms)).await?;
        let mut books = PgConnection::connect(&self.database).await?;
        let held = lock.take().await?;
        tell(Mark::Holds, &format!("takes the lock for {} ms", self.ttl_ms));
        let state: String = sqlx::query_scalar("SELECT state FROM naive_batch WHERE id = 1").fetch_one(&mut books).await?;
        tell(Mark::Note, &format!("batch 1 is {state}"));
        let settled = state == "pending";
        if settled {
            if self.freezes {
                signal_oneself(Signal::STOP)?;
            }
            sqlx::query("INSERT INTO naive_posting (batch, amount_minor) VALUES (1, 50000)").execute(&mut books).await?;
            sqlx::query("UPDATE naive_batch SET state = 'done' WHERE id = 1").execute(&mut books).await?;
            tell(Mark::Write, "posts 500.00 for batch 1, marks it done, and reports success");
        }
        lock.release(&held).await?;
        Ok(Did { settled })
    }
}
