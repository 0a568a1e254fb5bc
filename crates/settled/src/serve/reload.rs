//! A reload of the configuration: what can change while the process runs, changes; the rest is named.

use crate::config::{Config, Worker};
use crate::telemetry::LogLevel;
use crate::wire;
use scheduler::definition::Definition;
use std::path::PathBuf;
use worker::Pace;

/// The configuration in force, and where the next one comes from.
pub(super) struct Reload {
    pub(super) file: Option<PathBuf>,
    pub(super) level: LogLevel,
    pub(super) config: Config,
}

impl Reload {
    /// Reads the configuration again, applies what it can, and gives the schedules. One that cannot be used changes nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn reload(&mut self, pace: &Pace) -> anyhow::Result<Vec<Definition>> {
        let read = Config::load(self.file.as_deref())?;
        let definitions = read.schedules()?;
        let merged = merged(&self.config, read.clone());
        // each was checked for itself; what will be in force is a third one
        merged.check()?;
        self.level.set(&merged.log)?;
        let stays = fixed_sections(&self.config, &read);
        if !stays.is_empty() {
            tracing::warn!(sections = stays.join(", "), "changed in the configuration, and only a restart takes them over");
        }
        self.config = merged;
        pace.set(wire::worker_settings(&self.config));
        tracing::warn!("configuration reloaded: schedules, pace of the worker, log level");
        Ok(definitions)
    }
}

/// What is in force after a reload: the new values of what can change, the old ones of what cannot.
fn merged(old: &Config, new: Config) -> Config {
    let (guard, partitions) = (old.worker.guard, old.worker.partitions);
    Config {
        environment: old.environment.clone(),
        database: old.database.clone(),
        lease: old.lease.clone(),
        admin: old.admin.clone(),
        chaos: old.chaos.clone(),
        log: crate::config::Log { format: old.log.format, level: new.log.level },
        worker: Worker { guard, partitions, ..new.worker },
        run: new.run,
        serve: new.serve,
        schedule: new.schedule,
        folder: new.folder,
    }
}

/// Sections whose change only a restart takes over: connections, leases and what is a fact of the ledger.
fn fixed_sections(old: &Config, new: &Config) -> Vec<&'static str> {
    [
        ("environment", old.environment != new.environment),
        ("database", old.database != new.database),
        ("lease", old.lease != new.lease),
        ("worker.guard", old.worker.guard != new.worker.guard),
        ("worker.partitions", old.worker.partitions != new.worker.partitions),
        ("admin", old.admin != new.admin),
        ("chaos", old.chaos != new.chaos),
        ("log.format", old.log.format != new.log.format),
    ]
    .into_iter()
    .filter_map(|(name, changed)| changed.then_some(name))
    .collect()
}
