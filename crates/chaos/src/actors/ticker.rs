//! A process that notices its own pauses: a thread of it ticks every millisecond. It can be put under a load, and can hold a lock and write
//! under it while it does.

use crate::articles::{Counter, Held, Lock};
use crate::event::since_boot_us;
use crate::{DrillError, Mark};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::holder::{Guard, Holder, Renewal};
use super::tell;

/// Between two ticks.
const TICK: Duration = Duration::from_millis(1);
/// Between two writes under the lock.
const WRITE_EVERY: Duration = Duration::from_millis(10);
/// Allocated and thrown away again and again by each thread of [`Load::Allocation`].
const BYTES: usize = 48 << 20;
const PAGE: usize = 4_096;

/// What the process does besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Nothing.
    Nothing,
    /// Two threads allocate, touch every page and free.
    Allocation,
    /// Two threads compute.
    Busy,
    /// Eight threads compute, and the ticking one is the least urgent thread of the machine.
    Crowd,
}

/// The part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticker {
    /// What it does besides.
    pub load: Load,
    /// It writes under a lock, as long as it lives.
    pub holds: Option<Holder>,
    /// It ends when there is such a file.
    pub over: PathBuf,
}

/// What it noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// By how much each tick was late, in microseconds.
    pub late_us: Vec<u64>,
    /// The tokens of its writes that were refused.
    pub refused: Vec<i64>,
    /// How many were not.
    pub written: u64,
}

impl Ticker {
    pub(super) async fn play(&self) -> Result<Did, DrillError> {
        let over = Arc::new(AtomicBool::new(false));
        let load = self.load.start(&over);
        let (urgent, ends) = (self.load != Load::Crowd, Arc::clone(&over));
        let load_is = self.load;
        let ticks = std::thread::spawn(move || {
            tell(Mark::Note, &format!("ticks every ms, load: {load_is:?}"));
            tick(urgent, &ends)
        });
        let worked = match &self.holds {
            Some(holder) => self.write(holder).await,
            None => self.wait().await,
        };
        over.store(true, Ordering::SeqCst);
        for thread in load {
            let _ = thread.join();
        }
        let late_us = ticks.join().unwrap_or_default();
        Ok(Did { late_us, ..worked? })
    }

    async fn wait(&self) -> Result<Did, DrillError> {
        while !self.over.exists() {
            tokio::time::sleep(WRITE_EVERY).await;
        }
        Ok(Did::default())
    }

    /// Takes the lock and a token, writes until a write is refused, and begins anew.
    async fn write(&self, holder: &Holder) -> Result<Did, DrillError> {
        let mut lock = Lock::at(&holder.redis, &holder.name, Duration::from_millis(holder.ttl_ms)).await?;
        let mut counter = Counter::at(&holder.database, &holder.name).await?;
        let mut did = Did::default();
        while !self.over.exists() {
            let held: Held = lock.take().await?;
            let token = lock.token().await?;
            tell(Mark::Holds, &format!("takes the lock for {} ms, token {token}", holder.ttl_ms));
            let renewal = Renewal::start(holder, &held);
            while !self.over.exists() {
                if counter.write_again(token).await? == 0 {
                    tell(Mark::Refused, &format!("writes with token {token}: 0 rows"));
                    did.refused.push(token);
                    break;
                }
                did.written += 1;
                tokio::time::sleep(WRITE_EVERY).await;
            }
            drop(renewal);
            lock.release(&held).await?;
        }
        Ok(did)
    }

    /// One that holds a lock: renewed by a timer, its writes fenced.
    #[must_use]
    pub fn holder(redis: &str, database: &str, ttl_ms: u64) -> Holder {
        let (redis, database) = (redis.to_owned(), database.to_owned());
        Holder {
            redis,
            database,
            name: "ticker".to_owned(),
            ttl_ms,
            guard: Guard::Fence,
            renews: true,
            freezes: false,
            works_until: None,
        }
    }
}

impl Load {
    fn start(self, over: &Arc<AtomicBool>) -> Vec<std::thread::JoinHandle<()>> {
        let (threads, work): (usize, fn()) = match self {
            Load::Nothing => (0, || ()),
            Load::Allocation => (2, allocate),
            Load::Busy => (2, compute),
            Load::Crowd => (8, compute),
        };
        let start = |_| {
            let over = Arc::clone(over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    work();
                }
            })
        };
        (0..threads).map(start).collect()
    }
}

fn allocate() {
    let mut bytes = vec![0_u8; BYTES];
    bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    std::hint::black_box(&bytes);
}

fn compute() {
    std::hint::black_box((0..100_000_u64).fold(1, |hash: u64, n| hash.rotate_left(5) ^ n));
}

/// By how much each tick was late. On the clock that goes on while a process, or the machine, is stopped.
fn tick(urgent: bool, over: &AtomicBool) -> Vec<u64> {
    if !urgent {
        // of this thread alone, on Linux
        let _ = rustix::process::nice(19);
    }
    let tick_us = crate::measure::us(TICK);
    let (mut late, mut last) = (Vec::new(), since_boot_us());
    loop {
        let ends = over.load(Ordering::Relaxed);
        std::thread::sleep(TICK);
        let now = since_boot_us();
        late.push((now - last).saturating_sub(tick_us));
        last = now;
        // after the end, so that a stall that lasted until then counts
        if ends {
            return late;
        }
    }
}
