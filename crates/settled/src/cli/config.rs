//! `settled config check | print | adopt`.

use super::Because;
use crate::config::{Config, ConfigError, Guard};
use crate::output::say;
use crate::wire;
use clap::Subcommand;
use ledger::{Ledger, LedgerError};
use std::process::ExitCode;

/// Check, print or adopt the configuration
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the configuration, and that it is the ledger's
    Check,
    /// Print the configuration in force, without passwords
    Print,
    /// Make worker.partitions and worker.guard the ledger's; stop every instance first
    Adopt(Because),
}

impl ConfigCommand {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        match self {
            ConfigCommand::Check => {
                // Asks nobody: addresses, certificates and times are looked at.
                if config.worker.guard == Guard::Lease {
                    lease::keeper::fits(wire::connector(config)?.as_ref(), &config.keeper_settings())?;
                }
                // It looks and changes nothing: neither creates a ledger nor migrates one.
                let mut options = wire::open_options(config);
                options.migrate = false;
                match ledger::open(&options).await {
                    Ok(ledger) => {
                        refuse_other_source(config, ledger.as_ref()).await?;
                        say!("the configuration fits ledger {}", ledger.meta().ledger_id);
                    }
                    Err(LedgerError::Schema(why)) => {
                        say!("the configuration is sound; its ledger is not ready: {why} (`settled migrate`)")
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            ConfigCommand::Print => say!("{}", toml::to_string(config)?),
            ConfigCommand::Adopt(because) => {
                let ledger = wire::existing(config).await?;
                ledger.adopt_config(config.worker.partitions, wire::guard(config), &because.operator()?).await?;
                say!("the ledger has {} units and guard {} now", config.worker.partitions, wire::guard(config).as_str());
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The lock service is not asked for its name; that it makes tokens and the ledger has seen none of a service's, or the reverse, is enough.
async fn refuse_other_source(config: &Config, ledger: &dyn Ledger) -> anyhow::Result<()> {
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
