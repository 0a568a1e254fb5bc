//! A client that adds one to a counter under a lock in Redis, and may freeze in the middle of it.

use crate::articles::{Counter, Held, Lock};
use crate::{DrillError, Mark};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{signal_oneself, tell};

/// What is done against a write that comes too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// Nothing: who got the lock has it.
    Nothing,
    /// The lock is looked at right before the write.
    Check,
    /// The write carries a token, and the table refuses one that is not above the last.
    Fence,
}

/// The part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Where the lock is.
    pub redis: String,
    /// Where the counter is.
    pub database: String,
    /// What both are called.
    pub name: String,
    /// For how long the lock is taken.
    pub ttl_ms: u64,
    /// What is done against late writes.
    pub guard: Guard,
    /// A thread renews the lock every third of its TTL.
    pub renews: bool,
    /// Stops itself right before its first write.
    pub freezes: bool,
    /// Between its read and its write it works for as long as this file is not there.
    pub works_until: Option<PathBuf>,
}

/// What it came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// Rows of its first write.
    pub first_rows: u64,
    /// How many writes were refused.
    pub refused: u64,
}

impl Holder {
    pub(super) async fn play(&self) -> Result<Did, DrillError> {
        let mut lock = self.lock().await?;
        let mut counter = Counter::at(&self.database, &self.name).await?;
        let (mut did, mut first) = (Did::default(), true);
        loop {
            let held = lock.take().await?;
            tell(Mark::Holds, &format!("takes the lock for {} ms", self.ttl_ms));
            let renewal = if self.renews { Some(Renewal::start(self, &held)) } else { None };
            let written = self.add_one(&mut lock, &held, &mut counter, self.freezes && first).await?;
            drop(renewal);
            match lock.release(&held).await? {
                true => tell(Mark::Releases, "releases the lock"),
                false => tell(Mark::Lost, "wants to release the lock: it is not its own any more"),
            }
            let Some(rows) = written else { continue };
            if first {
                did.first_rows = rows;
            }
            first = false;
            if rows > 0 {
                return Ok(did);
            }
            did.refused += 1;
        }
    }

    /// How many rows its write had; nothing where it did not write.
    async fn add_one(
        &self,
        lock: &mut Lock,
        held: &Held,
        counter: &mut Counter,
        freezes: bool,
    ) -> Result<Option<u64>, DrillError> {
        let token = if self.guard == Guard::Fence { lock.token().await? } else { 0 };
        let value = counter.read().await?;
        let with = if token > 0 { format!(" with token {token}") } else { String::new() };
        tell(Mark::Note, &format!("reads {value}{with}"));
        if self.guard == Guard::Check {
            if !lock.owns(held).await? {
                tell(Mark::Lost, "checks the lock: not its own any more, so it writes nothing");
                return Ok(None);
            }
            tell(Mark::Note, "checks the lock: still its own, so it may write");
        }
        if let Some(over) = &self.works_until {
            while !over.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        if freezes {
            signal_oneself(Signal::STOP)?;
        }
        let value = value + 1;
        let rows = match self.guard {
            Guard::Fence => counter.write_fenced(value, token).await?,
            Guard::Nothing | Guard::Check => counter.write(value).await?,
        };
        let mark = if rows == 0 { Mark::Refused } else { Mark::Write };
        tell(mark, &format!("writes {value}{with}: {rows} rows"));
        Ok(Some(rows))
    }

    async fn lock(&self) -> Result<Lock, DrillError> {
        Lock::at(&self.redis, &self.name, Duration::from_millis(self.ttl_ms)).await
    }
}

/// The timer that is to make an expired lock impossible: a thread of this process, which stops when the process does.
pub(super) struct Renewal {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Renewal {
    pub(super) fn start(of: &Holder, held: &Held) -> Renewal {
        let over = Arc::new(AtomicBool::new(false));
        let (of, held, ends) = (of.clone(), held.clone(), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let renewed = runtime
                .map_err(DrillError::io("a runtime"))
                .and_then(|runtime| runtime.block_on(async { renew(&of, &held, &ends).await }));
            if let Err(error) = renewed {
                tell(Mark::Fault, &format!("the renewal timer: {error}"));
            }
        });
        Renewal { over, thread: Some(thread) }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

async fn renew(of: &Holder, held: &Held, over: &AtomicBool) -> Result<(), DrillError> {
    let mut lock = of.lock().await?;
    while !over.load(Ordering::SeqCst) {
        if !lock.renew(held).await? {
            tell(Mark::Lost, "its renewal timer learns that the lock is not its own any more");
            return Ok(());
        }
        std::thread::park_timeout(Duration::from_millis(of.ttl_ms / 3));
    }
    Ok(())
}
