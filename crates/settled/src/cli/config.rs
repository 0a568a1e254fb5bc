//! `settled config check | print | adopt`.

use super::Because;
use crate::config::{Config, Guard};
use crate::output::say;
use crate::{exit, wire};
use clap::Subcommand;
use ledger::LedgerError;
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
                        wire::refuse_other_source(config, ledger.as_ref()).await?;
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
                if let Err(error) = wire::refuse_other_source(config, ledger.as_ref()).await {
                    exit::tell(&format!("one thing is left to do: {error:#}"));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
