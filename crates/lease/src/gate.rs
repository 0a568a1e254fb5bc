//! A file lock in front of an SQLite file: whoever writes it holds the gate. Needs nothing else.
//!
//! SQLite lets waiting writers poll for its lock, and a busy process starves the others. A gate is a queue of the operating system,
//! or here, because the keeper must never hang behind a frozen neighbour, short jittered tries with an end.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Held while it lives. The lock belongs to this descriptor alone, so two tasks of one process exclude each other as well.
#[derive(Debug)]
pub(crate) struct Gate {
    _locked: File,
}

/// Why the gate stayed shut.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GateError {
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{0} is locked by another process; is one frozen?")]
    Locked(PathBuf),
}

impl Gate {
    /// Opens `path` anew and locks it, for at most about `patience`.
    pub(crate) async fn enter(path: &Path, patience: Duration) -> Result<Gate, GateError> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(|error| GateError::File(path.to_owned(), error))?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Gate { _locked: file }),
                Err(TryLockError::WouldBlock) if waited < patience => {
                    let pause = Duration::from_micros(rand::random_range(500..5_000));
                    tokio::time::sleep(pause).await;
                    waited += pause;
                }
                Err(TryLockError::WouldBlock) => return Err(GateError::Locked(path.to_owned())),
                Err(TryLockError::Error(error)) => return Err(GateError::File(path.to_owned(), error)),
            }
        }
    }
}
