//! The queue of writers in front of the SQLite file. Needs `error.rs`.
//!
//! SQLite lets one connection write and has no queue: whoever waits polls for the lock in growing pauses, and a busy process
//! takes it again between two looks. So every writer of this program first takes a lock of the operating system, whose waiters
//! are woken when it is released.
//!
//! Who then runs first, the one who was woken or the one who released it and comes again, is up to the scheduler. Hence a
//! turnstile: one waits for the gate *while holding* the turnstile, so whoever comes again stands behind him. Two processes that
//! did nothing but mint tokens for four seconds, on a machine with four times more work than processors:
//!
//! | in front of the file | commits | longest wait |
//! |---|---|---|
//! | nothing | 346 : 1 | 4 s |
//! | the gate | 247 : 172 | 0.25 s |
//! | turnstile and gate | 206 : 205 | 0.07 s |
//!
//! Within a process a fair mutex comes first, so that processes take turns and not tasks, and at most one thread of a process
//! waits in the kernel.
//!
//! The gate is a courtesy: that one transaction writes at a time is SQLite's own doing, also against programs that ignore
//! the gate. There is no server to end a frozen client. A process that is frozen inside a write transaction stops every writer
//! until it wakes and commits, legally, because nobody could take over meanwhile; one that dies leaves both locks to the
//! operating system, which opens them.

use crate::LedgerError;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{io, thread};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

/// The gate of one ledger file.
#[derive(Debug)]
pub(super) struct Gate {
    turnstile: PathBuf,
    gate: PathBuf,
    queue: Arc<Mutex<()>>,
}

/// Held while it lives. The lock belongs to this descriptor alone: two gates of one process exclude each other as well.
#[derive(Debug)]
pub(super) struct Entered {
    _gate: File,
    _place: OwnedMutexGuard<()>,
}

impl Gate {
    /// The gate beside `ledger_file`.
    pub(super) fn beside(ledger_file: &Path) -> Gate {
        let beside = |suffix| {
            let mut path = ledger_file.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        Gate { turnstile: beside(".turnstile"), gate: beside(".gate"), queue: Arc::default() }
    }

    /// Waits for the gate, however long that takes.
    ///
    /// On a thread of its own, because a runtime that is shut down waits for its blocking tasks, and this one may stand behind a
    /// frozen process. When the caller is cancelled the thread waits on, and opens the gate as soon as it has it.
    pub(super) async fn enter(&self) -> Result<Entered, LedgerError> {
        let place = Arc::clone(&self.queue).lock_owned().await;
        let (turnstile, gate) = (open(&self.turnstile)?, open(&self.gate)?);
        let (tell, told) = oneshot::channel();
        let wait = move || {
            let entered = lock(&turnstile).and_then(|()| lock(&gate)).map(|()| Entered { _gate: gate, _place: place });
            let _ = tell.send(entered);
        };
        let failed = |source| LedgerError::Io { what: format!("wait for {}", self.gate.display()), source };
        thread::Builder::new().name("ledger-gate".to_owned()).spawn(wait).map_err(failed)?;
        told.await.map_err(io::Error::other).flatten().map_err(failed)
    }
}

fn open(path: &Path) -> Result<File, LedgerError> {
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    opened.map_err(|source| LedgerError::Io { what: format!("open {}", path.display()), source })
}

fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(30);

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("settled.db");
        (folder, file)
    }

    /// R15: two busy writers, each with a queue of its own as two processes have, share.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn r15_two_busy_writers_share() {
        let (_folder, file) = place();
        let done = Arc::new(AtomicBool::new(false));
        let busy = |gate: Gate| {
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                let mut entered = 0_u32;
                while !done.load(Ordering::Relaxed) {
                    let gate = gate.enter().await.expect("the gate");
                    thread::sleep(Duration::from_millis(1));
                    drop(gate);
                    entered += 1;
                }
                entered
            })
        };
        let (one, other) = (busy(Gate::beside(&file)), busy(Gate::beside(&file)));
        tokio::time::sleep(Duration::from_secs(1)).await;
        done.store(true, Ordering::Relaxed);
        let (one, other) = (one.await.expect("no panic"), other.await.expect("no panic"));
        let share = 100 * one / (one + other);
        assert!((25..=75).contains(&share), "{one} against {other}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_at_a_time() {
        let (_folder, file) = place();
        let inside = Arc::new(AtomicU32::new(0));
        let gates: Vec<Arc<Gate>> = (0..3).map(|_| Arc::new(Gate::beside(&file))).collect();
        let enter = |gate: Arc<Gate>| {
            let inside = Arc::clone(&inside);
            tokio::spawn(async move {
                for _ in 0..30 {
                    let _gate = gate.enter().await.expect("the gate");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    tokio::task::yield_now().await;
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                }
            })
        };
        let tasks: Vec<_> = (0..9).map(|task| enter(Arc::clone(&gates[task % 3]))).collect();
        for task in tasks {
            tokio::time::timeout(LIMIT, task).await.expect("no deadlock").expect("never two inside");
        }
    }

    /// R11, L11: a future that is dropped while it waits leaves nothing shut.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn r11_a_cancelled_wait_leaves_the_gate_open() {
        let (_folder, file) = place();
        let (one, other) = (Gate::beside(&file), Gate::beside(&file));
        let held = one.enter().await.expect("the gate");
        let waited = tokio::time::timeout(Duration::from_millis(20), other.enter()).await;
        assert!(waited.is_err(), "it is held");
        drop(held);
        for gate in [&one, &other, &one] {
            drop(tokio::time::timeout(LIMIT, gate.enter()).await.expect("it is open").expect("the gate"));
        }
    }
}
