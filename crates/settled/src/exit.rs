//! Exit codes, and how an error is told: what was wrong, where, and what to do. Told once, here.

use crate::config::ConfigError;
use intake::ReadError;
use intake::profile::ProfileError;
use lease::LeaseError;
use ledger::LedgerError;
use std::io::Write;
use std::process::ExitCode;
use thiserror::Error;
use worker::WorkerError;

/// Done.
pub(crate) const DONE: u8 = 0;
/// Failed.
pub(crate) const FAILED: u8 = 1;
/// Usage, configuration, or unreadable input.
pub(crate) const USAGE: u8 = 2;
/// The books do not hold: a broken or quarantined batch, a failed verify.
pub(crate) const BOOKS: u8 = 3;
/// Lock service or database unavailable, or the wait ended.
pub(crate) const UNAVAILABLE: u8 = 4;

/// A service did not answer.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Unavailable(pub(crate) String);

/// Tells the error on standard error and turns it into an exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    tell(&format!("error: {}", causes(error)));
    ExitCode::from(code(error))
}

/// Prints a line on standard error. That it cannot be printed is no reason to fail otherwise.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The error and its causes, each said once: most of ours already say what their cause said.
fn causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.contains(&cause) {
        _ if told.is_empty() => cause,
        true => told,
        false => format!("{told}: {cause}"),
    })
}

fn code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(FAILED)
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if cause.is::<ConfigError>() || cause.is::<ReadError>() || cause.is::<ProfileError>() {
        return Some(USAGE);
    }
    if cause.is::<Unavailable>() {
        return Some(UNAVAILABLE);
    }
    if let Some(error) = cause.downcast_ref::<WorkerError>() {
        return Some(worker_code(error));
    }
    if let Some(error) = cause.downcast_ref::<LeaseError>() {
        return Some(lease_code(error));
    }
    cause.downcast_ref::<LedgerError>().map(ledger_code)
}

fn worker_code(error: &WorkerError) -> u8 {
    match error {
        WorkerError::Ledger(error) => ledger_code(error),
        WorkerError::Lease(error) => lease_code(error),
        WorkerError::WaitEnded(_) | WorkerError::JobWaitEnded(_) => UNAVAILABLE,
        WorkerError::SourceWentBack { .. } | WorkerError::Job { .. } | WorkerError::NotFenced { .. } => FAILED,
    }
}

fn lease_code(error: &LeaseError) -> u8 {
    match error {
        LeaseError::Invalid { .. } => USAGE,
        LeaseError::Unavailable { .. } | LeaseError::TimedOut { .. } | LeaseError::Closed => UNAVAILABLE,
    }
}

fn ledger_code(error: &LedgerError) -> u8 {
    match error {
        LedgerError::Unavailable(_)
        | LedgerError::Unreachable { .. }
        | LedgerError::Contended(_)
        | LedgerError::Busy(_)
        | LedgerError::TimedOut(_) => UNAVAILABLE,
        LedgerError::Schema(_)
        | LedgerError::Config(_)
        | LedgerError::Differs { .. }
        | LedgerError::SourceSuperseded { .. }
        | LedgerError::NoSuchBatch(_) => USAGE,
        LedgerError::DifferentContent(_) => BOOKS,
        LedgerError::Overflow(_)
        | LedgerError::Database(_)
        | LedgerError::Illegal { .. }
        | LedgerError::NotAcceptable(..)
        | LedgerError::BeingSettled(_)
        | LedgerError::ImportAborted
        | LedgerError::Io { .. } => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    /// Whether it was met at the start or at the first unit.
    #[test]
    fn a_lock_service_that_refuses_is_a_matter_of_configuration() {
        let refused = || LeaseError::Invalid { what: "a transaction pooler".to_owned() };
        assert_eq!(code(&refused().into()), USAGE);
        assert_eq!(code(&WorkerError::Lease(refused()).into()), USAGE);
        assert_eq!(code(&WorkerError::Lease(LeaseError::Closed).into()), UNAVAILABLE);
    }

    #[test]
    fn a_cause_is_told_once() {
        let io = std::io::Error::other("disk full");
        let error =
            Err::<(), _>(LedgerError::Io { what: "writing x".to_owned(), source: io }).context("import").expect_err("it failed");
        assert_eq!(causes(&error), "import: writing x: disk full");
    }
}
