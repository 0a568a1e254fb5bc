//! Why a worker gives up.

use lease::LeaseError;
use ledger::LedgerError;
use thiserror::Error;

/// An error of the worker.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The lock service.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// We still own the lease, yet its token is below one that the ledger has seen: the token source was restored or rebuilt.
    #[error(
        "the lock service {source_name:?} gave token {token} for unit {unit}, below {stored} which the ledger has already seen: its tokens went back (restored from a backup?). Nothing is settled with them; make sure no other instance works, then run `settled fence adopt --reason …`"
    )]
    SourceWentBack {
        /// The source.
        source_name: String,
        /// The unit.
        unit: i32,
        /// What it gave.
        token: i64,
        /// What the ledger has.
        stored: i64,
    },
    /// One's own job failed.
    #[error("job {name} failed: {source}")]
    Job {
        /// Which.
        name: String,
        /// With what.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// One's own job said that it was fenced, and it was not.
    #[error(
        "a job under unit {unit} said that a newer holder has it, but the fence is its own; does its condition compare generation, token and holder?"
    )]
    NotFenced {
        /// Its unit.
        unit: i32,
    },
    /// The wait was over before the job was done.
    #[error("job {0} was not done within the given wait; another instance has it, or nobody can")]
    JobWaitEnded(String),
    /// The wait was over before everything was settled.
    #[error("{0} units still have batches due after the given wait; they are being settled by other instances, or nobody can")]
    WaitEnded(usize),
}

impl WorkerError {
    /// Whether a service did not answer: the work waits and goes on by itself.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        match self {
            // A settle transaction that takes too long is dealt with where it happens; anything else that does is a slow database.
            WorkerError::Ledger(error) => {
                error.is_unavailable() || error.is_contention() || matches!(error, LedgerError::TimedOut(_)) || is_shortage(error)
            }
            // The keeper of this process is gone: no waiting brings it back.
            WorkerError::Lease(error) => !matches!(error, LeaseError::Invalid { .. } | LeaseError::Closed),
            WorkerError::SourceWentBack { .. }
            | WorkerError::WaitEnded(_)
            | WorkerError::Job { .. }
            | WorkerError::NotFenced { .. }
            | WorkerError::JobWaitEnded(_) => false,
        }
    }
}

/// No file descriptor is free just now (ENFILE, EMFILE).
fn is_shortage(error: &LedgerError) -> bool {
    matches!(error, LedgerError::Io { source, .. } if matches!(source.raw_os_error(), Some(23 | 24)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_waiting_cures_is_no_outage() {
        assert!(!WorkerError::Lease(LeaseError::Closed).is_outage(), "the keeper of this process is gone");
        assert!(!WorkerError::WaitEnded(1).is_outage());
        assert!(!WorkerError::Ledger(LedgerError::Config(String::new())).is_outage());
        let io = |code| LedgerError::Io { what: String::new(), source: std::io::Error::from_raw_os_error(code) };
        assert!(WorkerError::Ledger(io(24)).is_outage(), "too many open files");
        assert!(!WorkerError::Ledger(io(13)).is_outage(), "permission denied");
        let late = LeaseError::TimedOut { what: String::new(), doing: "renew", after: std::time::Duration::from_secs(1) };
        assert!(WorkerError::Lease(late).is_outage());
    }
}
