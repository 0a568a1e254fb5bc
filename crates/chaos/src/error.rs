//! Why a drill could not be told to its end. That is no verdict.

use thiserror::Error;

/// An error of a drill.
#[derive(Debug, Error)]
pub enum DrillError {
    /// A server or another process.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
    /// The lock service.
    #[error(transparent)]
    Lease(#[from] lease::LeaseError),
    /// A worker of this process.
    #[error(transparent)]
    Worker(#[from] worker::WorkerError),
    /// A table of the drill's own.
    #[error("the drill's own table: {0}")]
    Sql(#[from] sqlx::Error),
    /// A key of the drill's own.
    #[error("the drill's own key: {0}")]
    Redis(#[from] redis::RedisError),
    /// Something that is not JSON and should be.
    #[error("what a process wrote is not what this one reads: {0}")]
    Json(#[from] serde_json::Error),
    /// A file, a pipe, or a process.
    #[error("{what}: {source}")]
    Io {
        /// What was done.
        what: String,
        /// What came of it.
        #[source]
        source: std::io::Error,
    },
    /// Something that the story needs did not happen.
    #[error("{0}")]
    Story(String),
}

impl DrillError {
    /// For `map_err`.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> DrillError {
        let what = what.into();
        move |source| DrillError::Io { what, source }
    }
}
