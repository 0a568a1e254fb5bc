//! The queue of writers in front of the SQLite file. Needs `error.rs`.
//!
//! SQLite lets one connection write and has no queue: whoever waits polls for the lock in growing pauses, and a busy process
//! takes it again between two looks (a settle loop let another process commit once against 1,323 times). So every writer of
//! this program first takes a lock of the operating system, whose waiters are woken when it is released.
//!
//! That alone does not help: the one who released it is running and takes it again before the one who was woken gets a
//! processor. Hence a turnstile: one waits for the gate *while holding* the turnstile, so that whoever comes again stands
//! behind him. Within a process a fair mutex comes first, so that processes take turns and not tasks, and at most one thread
//! of a process waits in the kernel.
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
