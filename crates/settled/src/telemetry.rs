//! The log: `tracing` to standard error, as text or JSON. Its level can be changed while the process runs.

use crate::config::{ConfigError, Log, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Changes what is logged from now on.
pub(crate) struct LogLevel(Box<dyn Fn(EnvFilter) -> anyhow::Result<()> + Send + Sync>);

impl LogLevel {
    /// Logs as `log` says. The format stays: it is the output of a process, which a reader must not see change.
    pub(crate) fn set(&self, log: &Log) -> anyhow::Result<()> {
        (self.0)(filter(log)?)
    }
}

/// Starts the log of this process.
pub(crate) fn start(log: &Log) -> anyhow::Result<LogLevel> {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter(log)?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match log.format {
        LogFormat::Text => {
            let subscriber = subscriber.with_filter_reloading();
            let handle = subscriber.reload_handle();
            subscriber.init();
            Ok(LogLevel(Box::new(move |filter| Ok(handle.reload(filter)?))))
        }
        LogFormat::Json => {
            let subscriber = subscriber.json().flatten_event(true).with_filter_reloading();
            let handle = subscriber.reload_handle();
            subscriber.init();
            Ok(LogLevel(Box::new(move |filter| Ok(handle.reload(filter)?))))
        }
    }
}

fn filter(log: &Log) -> anyhow::Result<EnvFilter> {
    // Lines of the driver (every statement over a second) and of the bell only where they are asked for: log.level = "warn,sqlx=warn".
    EnvFilter::try_new(format!("sqlx=error,tokio_cron_scheduler=error,{}", log.level))
        .map_err(|error| ConfigError(format!("log.level {:?}: {error}", log.level)).into())
}
