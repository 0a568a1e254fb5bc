//! Several clients that add to one counter at once, each on connections of its own.

use crate::DrillError;
use crate::articles::{Counter, Lock};
use crate::measure::{Sample, per_second, us};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Barrier;

/// Longer than any operation takes, so that no lock is lost by time: that is another experiment.
const LOCK_TTL: Duration = Duration::from_secs(60);

/// How one is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Read, write back.
    NoLock,
    /// The same with a lock in Redis around it.
    RedisLock,
    /// `SELECT … FOR UPDATE`, write back, commit.
    ForUpdate,
    /// `UPDATE … SET value = value + 1`.
    Atomic,
}

/// So many, and what they are to do.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Where the counter is.
    pub database: String,
    /// Where the lock is.
    pub redis: String,
    /// How many there are.
    pub clients: u32,
    /// How many operations each does.
    pub each: u32,
}

/// What it came to.
#[derive(Debug, Clone)]
pub struct Ran {
    /// What the counter should be.
    pub expected: i64,
    /// And is.
    pub value: i64,
    /// From the first operation to the end of the last.
    pub took: Duration,
    /// Of every operation, waiting included.
    pub latencies: Sample,
}

impl Ran {
    /// How many of the updates are not in the counter.
    #[must_use]
    pub fn lost(&self) -> i64 {
        self.expected - self.value
    }

    /// Operations a second, all clients together.
    #[must_use]
    pub fn rate(&self) -> u64 {
        per_second(self.expected.unsigned_abs(), self.took)
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Way::NoLock => "no lock",
            Way::RedisLock => "redis lock",
            Way::ForUpdate => "for update",
            Way::Atomic => "atomic update",
        })
    }
}

impl Clients {
    /// All of them at once, from zero.
    ///
    /// # Errors
    /// A server's.
    pub async fn run(&self, way: Way) -> Result<Ran, DrillError> {
        let mut counter = Counter::at(&self.database, "shared").await?;
        counter.reset().await?;
        // the clock runs when all of them are connected
        let all_there = Arc::new(Barrier::new(self.clients as usize + 1));
        let start = |_| tokio::spawn(client(self.clone(), way, Arc::clone(&all_there)));
        let clients: Vec<_> = (0..self.clients).map(start).collect();
        all_there.wait().await;
        let begun = Instant::now();
        let mut latencies = Vec::new();
        for client in clients {
            latencies.extend(client.await.map_err(|error| DrillError::Story(format!("a client: {error}")))??);
        }
        let took = begun.elapsed();
        let expected = i64::from(self.clients) * i64::from(self.each);
        Ok(Ran { expected, value: counter.read().await?, took, latencies: Sample::of(latencies) })
    }
}

async fn client(of: Clients, way: Way, all_there: Arc<Barrier>) -> Result<Vec<u64>, DrillError> {
    let connected = connect(&of).await;
    // also where that failed: the others wait
    all_there.wait().await;
    let (mut counter, mut lock) = connected?;
    let mut latencies = Vec::new();
    for _ in 0..of.each {
        let begun = Instant::now();
        match way {
            Way::NoLock => counter.read_then_write().await?,
            Way::RedisLock => {
                let held = lock.take().await?;
                counter.read_then_write().await?;
                lock.release(&held).await?;
            }
            Way::ForUpdate => counter.lock_then_write().await?,
            Way::Atomic => counter.add_one().await?,
        }
        latencies.push(us(begun.elapsed()));
    }
    Ok(latencies)
}

async fn connect(of: &Clients) -> Result<(Counter, Lock), DrillError> {
    Ok((Counter::at(&of.database, "shared").await?, Lock::at(&of.redis, "shared", LOCK_TTL).await?))
}
