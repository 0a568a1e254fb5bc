//! The log: `tracing` to standard error, as text or JSON.

use crate::config::{ConfigError, Log, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts the log of this process.
pub(crate) fn start(log: &Log) -> anyhow::Result<()> {
    // The driver's own lines (every statement over a second) only where they are asked for: log.level = "warn,sqlx=warn".
    let filter = EnvFilter::try_new(format!("sqlx=error,{}", log.level))
        .map_err(|error| ConfigError(format!("log.level {:?}: {error}", log.level)))?;
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    match log.format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
    Ok(())
}
