//! What can go wrong with a lock service. That a lease is held by another, or lost, is no error: those are values.
//! Needs nothing else.

use std::time::Duration;

/// A request that got no answer, or was never sent.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The service refused, answered nonsense, or the connection broke. Whether the request took effect is unknown.
    #[error(
        "lease service {what}: {doing}: {source}; nothing is worked on until it answers as it should (if it never will, see [lease] in the configuration), then work resumes by itself"
    )]
    Unavailable {
        /// Which service, and where.
        what: String,
        /// What was asked of it.
        doing: &'static str,
        /// What the driver said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer in time. Whether the request took effect is unknown.
    #[error(
        "lease service {what}: {doing}: no answer within {after:?}; nothing is worked on until it answers as it should (if it never will, see [lease] in the configuration), then work resumes by itself"
    )]
    TimedOut {
        /// Which service, and where.
        what: String,
        /// What was asked of it.
        doing: &'static str,
        /// How long we waited.
        after: Duration,
    },
    /// A setting, a name or a stored row that cannot be used; a repeat will not help.
    #[error("{what}")]
    Invalid {
        /// What, where, and what to do.
        what: String,
    },
    /// The keeper was shut down, or its thread died: every lease it kept is lost at its deadline.
    #[error("the lease keeper of this process has ended; restart the process")]
    Closed,
}
