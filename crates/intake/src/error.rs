//! Why a file cannot be used: always with the file, the line where there is one, and what to do. Needs nothing else.

use std::io;
use thiserror::Error;

/// Returned by a sink that wants no more lines (the transaction behind it failed, the user gave up). Reading ends at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the receiver of the lines stopped")]
pub struct Stopped;

/// Why a file was not read to its end. Nothing of it may be used.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Its content is not what the profile expects.
    #[error("{}: {what}: {remedy}", place(.file, *.line))]
    Unreadable {
        /// Name as given to `read`.
        file: String,
        /// Physical line, from 1; for NACHA without line breaks the number of the record.
        line: Option<u64>,
        /// What was wrong, and what the profile expects.
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// The operating system could not deliver it.
    #[error("{}: {source}: check that the file exists and can be read", place(.file, *.line))]
    Io {
        /// Name as given to `read` or `open`.
        file: String,
        /// Last line that was reached.
        line: Option<u64>,
        /// What the system said.
        source: io::Error,
    },
    /// The sink wants no more.
    #[error("{file}: {source}")]
    Stopped {
        /// Name as given to `read`.
        file: String,
        /// Why.
        source: Stopped,
    },
}

impl ReadError {
    /// The line that the error names.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            ReadError::Unreadable { line, .. } | ReadError::Io { line, .. } => *line,
            ReadError::Stopped { .. } => None,
        }
    }
}

fn place(file: &str, line: Option<u64>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

/// A [`ReadError`] that does not know its file yet.
#[derive(Debug)]
pub(crate) enum Fault {
    Unreadable { line: u64, what: String, remedy: String },
    Io { line: u64, error: io::Error },
    Stopped(Stopped),
}

impl Fault {
    pub(crate) fn at(line: u64, what: impl Into<String>, remedy: impl Into<String>) -> Fault {
        Fault::Unreadable { line, what: what.into(), remedy: remedy.into() }
    }

    /// The same finding where something else helps.
    pub(crate) fn with_remedy(self, other: &str) -> Fault {
        match self {
            Fault::Unreadable { line, what, .. } => Fault::at(line, what, other),
            fault @ (Fault::Io { .. } | Fault::Stopped(_)) => fault,
        }
    }

    pub(crate) fn in_file(self, file: &str) -> ReadError {
        let file = file.to_owned();
        match self {
            Fault::Unreadable { line, what, remedy } => ReadError::Unreadable { file, line: Some(line), what, remedy },
            Fault::Io { line, error } => {
                let line = Some(line);
                match damage(&error) {
                    Some(what) => {
                        ReadError::Unreadable { file, line, what, remedy: "transfer the file again and compare its size".into() }
                    }
                    None => ReadError::Io { file, line, source: error },
                }
            }
            Fault::Stopped(source) => ReadError::Stopped { file, source },
        }
    }
}

/// What a decompressor says of damaged data, in our words; `None` for errors of the system.
fn damage(error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Some("the compressed data ends too early".to_owned()),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Some(format!("the compressed data is damaged ({error})")),
        _ => None,
    }
}
