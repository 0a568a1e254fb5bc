//! The one error of this crate.

use std::{io, process::ExitStatus, time::Duration};

/// What can go wrong around a server that is not ours.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server is not on this machine. The only variant a test may be ignored for.
    #[error("{what} not found (looked in {looked}): run `cargo xtask servers`, or install the package {package}")]
    Missing {
        /// The program or library, as a person calls it.
        what: &'static str,
        /// The Debian package that has it.
        package: &'static str,
        /// Every place that was tried.
        looked: String,
    },
    /// The operating system refused.
    #[error("{action}: {source}")]
    Io {
        /// What was tried, with the path or program.
        action: String,
        /// Why not.
        source: io::Error,
    },
    /// A program ended by itself, or with an error.
    #[error("{program} ended with {status}; its last lines:\n{output}")]
    Ended {
        /// The program's name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it printed.
        output: String,
    },
    /// A program did not get there in time.
    #[error("{program} was not {state} within {limit:?}; its last lines:\n{output}")]
    Late {
        /// The program's name.
        program: String,
        /// The state waited for: "ready", "stopped", "gone".
        state: &'static str,
        /// How long was waited.
        limit: Duration,
        /// The end of what it printed, empty when it is not captured.
        output: String,
    },
    /// An environment variable does not mean what it should.
    #[error("{name}={value:?}: {problem}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong, and what is expected.
        problem: &'static str,
    },
}

impl Error {
    /// For `map_err`: says what was being done.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}
