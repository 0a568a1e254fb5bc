//! What can go wrong with a ledger, by what the caller can do about it. Needs `domain::batch`, `domain::ids`, `domain::unit`.

use domain::batch::{BatchEvent, BatchState, IllegalTransition};
use domain::ids::BatchId;
use domain::unit::Unit;
use thiserror::Error;

/// An error of the ledger. Its text says what was wrong and what to do.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The database did not answer, or ended the session. Whether a transaction in flight committed is unknown to the driver;
    /// the ledger's functions read it back before they return this.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The database could not be reached at all.
    #[error("{place} cannot be reached: {source}; is it there, and is database.url right?")]
    Unreachable {
        /// Host, port and database.
        place: String,
        /// What the driver said.
        #[source]
        source: sqlx::Error,
    },
    /// The database gave up a transaction for its own reasons (deadlock, serialization, lock wait). Safe to repeat with the
    /// same keys.
    #[error("the database rolled the transaction back ({0}); it can be repeated")]
    Contended(#[source] sqlx::Error),
    /// Another transaction has the advisory lock of this unit. Nothing was written; safe to repeat.
    #[error("another transaction is at work in unit {0}; it can be repeated")]
    Busy(Unit),
    /// A statement ran into its time limit and was rolled back.
    #[error("a statement took longer than it may ({0}); raise worker.settle_timeout_ms or settle fewer items at once")]
    TimedOut(#[source] sqlx::Error),
    /// A sum left 64 bits. Nothing was written.
    #[error("an amount leaves 64 bits of minor units ({0}); nothing was written")]
    Overflow(#[source] sqlx::Error),
    /// Any other refusal of the database: a defect, or a schema that was changed by hand.
    #[error("the database refused: {0}")]
    Database(#[source] sqlx::Error),
    /// The schema is missing, older or newer than this program.
    #[error("the schema does not fit this program: {0}; run `settled migrate` (with a program of at least that version)")]
    Schema(String),
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// Partitions or guard of the configuration are not the ledger's.
    #[error(
        "{key} is {configured} in the configuration and {stored} in the ledger; set it back, or stop every instance and run `settled config adopt --reason …`"
    )]
    Differs {
        /// The configuration key.
        key: &'static str,
        /// What the configuration says.
        configured: String,
        /// What the ledger says.
        stored: String,
    },
    /// The source of tokens is not the newest one.
    #[error(
        "fencing tokens come from {newest:?} (generation {generation}) since it was adopted, not from {source_name:?}; point this instance at it, or run `settled fence adopt --reason …`"
    )]
    SourceSuperseded {
        /// The source of this instance.
        source_name: String,
        /// The newest one.
        newest: String,
        /// Its generation.
        generation: i64,
    },
    /// No batch has this id.
    #[error("no batch {0}; `settled batch list` shows those there are")]
    NoSuchBatch(BatchId),
    /// The batch's state does not allow it.
    #[error("batch {batch}: {source}{}", way_out(*batch, *source))]
    Illegal {
        /// The batch.
        batch: BatchId,
        /// The pair that was refused.
        #[source]
        source: IllegalTransition,
    },
    /// The batch cannot be accepted as it is.
    #[error("batch {0}: {1}")]
    NotAcceptable(BatchId, String),
    /// A file brings a batch that is already there with other content. Nothing was written.
    #[error("{0}")]
    DifferentContent(String),
    /// A file would replace a batch that somebody is settling at this moment. Nothing was written.
    #[error("{0}")]
    BeingSettled(String),
    /// The reader of the file stopped before its end; its own error says why. Nothing was written.
    #[error("the file was not read to its end; nothing was written")]
    ImportAborted,
    /// A file of the ledger (SQLite) could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the path.
        what: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// What does to a batch what the refused event was meant to do, where there is something.
fn way_out(batch: BatchId, refused: IllegalTransition) -> String {
    let IllegalTransition { state, event } = refused;
    match (state, event) {
        (BatchState::Settled, BatchEvent::Cancel) => format!("; `settled batch reverse {batch} --reason …` takes it back"),
        (BatchState::Settling, BatchEvent::Cancel | BatchEvent::Reverse) => "; try again when the run is over".to_owned(),
        (BatchState::Pending | BatchState::Broken | BatchState::Quarantined, BatchEvent::Reverse) => {
            format!("; `settled batch cancel {batch} --reason …` withdraws it")
        }
        _ => String::new(),
    }
}

impl LedgerError {
    /// Whether the same call may succeed when it is simply made again.
    #[must_use]
    pub const fn is_contention(&self) -> bool {
        matches!(self, LedgerError::Contended(_) | LedgerError::Busy(_))
    }

    /// Whether it is about reaching the database, not about what was asked of it.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, LedgerError::Unavailable(_) | LedgerError::Unreachable { .. })
    }
}

/// PostgreSQL SQLSTATE and SQLite result codes, by what they mean to the caller. By code, never by message text.
impl From<sqlx::Error> for LedgerError {
    fn from(error: sqlx::Error) -> Self {
        let code = match &error {
            sqlx::Error::Database(database) => database.code().unwrap_or_default().into_owned(),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            // no PostgreSQL is there, or it fell silent in the middle of a word: the driver reads the end of a connection that a
            // balancer with no server behind it takes and closes as a byte 0, which no server says
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => return LedgerError::Unavailable(error),
            _ => return LedgerError::Database(error),
        };
        match code.as_str() {
            // serialization_failure, deadlock_detected, lock_not_available
            "40001" | "40P01" | "55P03" => LedgerError::Contended(error),
            // query_canceled: statement_timeout
            "57014" => LedgerError::TimedOut(error),
            // numeric_value_out_of_range; SQLITE_CONSTRAINT_DATATYPE: a sum that became a float, in a column of whole numbers.
            // (SQLite's "integer overflow" is a plain SQLITE_ERROR and is told where it can happen.)
            "22003" | "3091" => LedgerError::Overflow(error),
            // idle_in_transaction_session_timeout, idle_session_timeout, admin_shutdown, crash_shutdown, cannot_connect_now,
            // too_many_connections, disk full, out of memory, system and I/O errors; read_only_sql_transaction: we are still
            // connected to what was the primary before a failover. Also connection exceptions, below
            "25P03" | "57P05" | "57P01" | "57P02" | "57P03" | "57P04" | "53100" | "53200" | "53300" | "58000" | "58030"
            | "25006" => LedgerError::Unavailable(error),
            code if code.len() == 5 && code.starts_with("08") => LedgerError::Unavailable(error),
            code => match sqlite_primary(code) {
                // SQLITE_BUSY, SQLITE_LOCKED
                Some(5 | 6) => LedgerError::Contended(error),
                // SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN
                Some(10 | 13 | 14) => LedgerError::Unavailable(error),
                _ => LedgerError::Database(error),
            },
        }
    }
}

/// The primary result code of SQLite, which is the low byte of an extended one. Unlike an SQLSTATE it has fewer than five digits.
fn sqlite_primary(code: &str) -> Option<u32> {
    (code.len() < 5).then(|| code.parse::<u32>().ok()).flatten().map(|code| code & 0xff)
}

impl From<sqlx::migrate::MigrateError> for LedgerError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        match error {
            sqlx::migrate::MigrateError::Execute(error) | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => error.into(),
            other => LedgerError::Schema(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sqlite_primary;

    #[test]
    fn extended_codes_of_sqlite_mean_what_their_low_byte_says() {
        // SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_FSYNC, SQLITE_CONSTRAINT_UNIQUE, and an SQLSTATE
        assert_eq!([517, 1034, 2067].map(|code: u32| sqlite_primary(&code.to_string())), [Some(5), Some(10), Some(19)]);
        assert_eq!(sqlite_primary("23505"), None);
    }
}
