//! Configuration → objects: the one place that knows which engine and which lock service are behind the contracts.

mod faults;
mod locks;
mod recording;

use crate::config::{Config, ConfigError, Guard};
use chaos::mode::Mode;
use domain::ids::HolderId;
use lease::Keeper;
use ledger::settle::TxLimits;
use ledger::{Ledger, OpenOptions};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;
use worker::{Worker, WorkerSettings};

pub(crate) use faults::faults;
pub(crate) use locks::connector;
use recording::Recording;

/// How the ledger is opened.
pub(crate) fn open_options(config: &Config) -> OpenOptions {
    OpenOptions {
        url: config.database.url.clone(),
        partitions: config.worker.partitions,
        guard: guard(config),
        migrate: config.database.migrate,
        connections: config.database.connections,
    }
}

/// The guard in the ledger's word.
pub(crate) fn guard(config: &Config) -> ledger::Guard {
    match config.worker.guard {
        Guard::Lease => ledger::Guard::Lease,
        Guard::RowLock => ledger::Guard::RowLock,
        Guard::AdvisoryXact => ledger::Guard::AdvisoryXact,
    }
}

/// Opens the ledger, refusing one that is cut or guarded otherwise.
pub(crate) async fn ledger(config: &Config) -> anyhow::Result<Arc<dyn Ledger>> {
    Ok(ledger::open(&open_options(config)).await?)
}

/// Opens the ledger as it is, to look at it or to decide about it: nothing is created or migrated by the way.
pub(crate) async fn existing(config: &Config) -> anyhow::Result<Arc<dyn Ledger>> {
    let options = OpenOptions { migrate: false, ..open_options(config) };
    Ok(ledger::connect(&options).await?)
}

/// Who makes the tokens under this configuration, by the name that the ledger keeps. Asks the lock service where it is the one.
pub(crate) async fn source(config: &Config) -> anyhow::Result<String> {
    if config.worker.guard != Guard::Lease || !config.capabilities().makes_tokens {
        return Ok(worker::grant::LEDGER_SOURCE.to_owned());
    }
    let source = locks::connector(config)?.connect().await?.token_source();
    Ok(worker::grant::source_name(&source).to_owned())
}

/// The lock service is not asked for its name; that it makes tokens and the ledger has seen none of a service's, or the reverse, is enough.
pub(crate) async fn refuse_other_source(config: &Config, ledger: &dyn Ledger) -> anyhow::Result<()> {
    let Some(newest) = ledger.sources().await?.into_iter().next() else { return Ok(()) };
    let is_minted = newest.source == worker::grant::LEDGER_SOURCE;
    let makes_tokens = config.capabilities().makes_tokens;
    if config.worker.guard != Guard::Lease || is_minted != makes_tokens {
        return Ok(());
    }
    let (name, source, generation) = (config.capabilities().name, newest.source, newest.generation);
    let why = format!(
        "the ledger takes tokens of {source:?} (generation {generation}) only, and with lease.backend {name} they come from elsewhere; stop every instance, then `settled fence adopt --reason …`"
    );
    Err(ConfigError(why).into())
}

/// A worker of this process, to which `faults` happen.
pub(crate) fn worker(config: &Config, ledger: Arc<dyn Ledger>, faults: &Mode) -> anyhow::Result<Worker> {
    for remark in config.remarks() {
        tracing::warn!("{remark}");
    }
    let holder = HolderId(Uuid::new_v4());
    let recording = Recording::of(config, holder)?;
    let keeper = match config.worker.guard {
        Guard::Lease => {
            let connector = recording.connector(faults.connector(connector(config)?));
            Some(Keeper::start(connector, holder, config.keeper_settings())?)
        }
        Guard::RowLock | Guard::AdvisoryXact => None,
    };
    let (ledger, probe) = (recording.ledger(ledger), recording.probe(faults.probe(recording.history())));
    Ok(Worker { probe, ..Worker::new(ledger, keeper, holder, worker_settings(config)) })
}

pub(crate) fn worker_settings(config: &Config) -> WorkerSettings {
    WorkerSettings {
        batches_per_transaction: config.worker.batches_per_transaction,
        items_per_transaction: config.worker.items_per_transaction,
        max_attempts: config.worker.max_attempts,
        limits: TxLimits { total: config.settle_timeout(), idle: config.idle_timeout() },
        poll: Duration::from_millis(config.worker.poll_ms),
        idle_poll: Duration::from_millis(config.serve.idle_poll_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_the_library_is_as_patient_as_one_of_the_program() {
        assert_eq!(WorkerSettings::default(), worker_settings(&Config::default()));
    }
}
