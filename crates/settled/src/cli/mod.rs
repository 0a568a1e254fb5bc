//! The command line: an enum and a match; each subcommand in a file of its own.

mod batch;
mod bench;
mod completions;
mod config;
mod demo;
mod drill;
mod fence;
mod import;
mod lease;
mod migrate;
mod profile;
mod run;
mod schedule;
mod serve;
mod status;
mod verify;
mod wake_frozen;

use crate::config::{Config, ConfigError};
use crate::telemetry;
use clap::{Parser, Subcommand};
use ledger::operate::Operator;
use std::path::PathBuf;
use std::process::ExitCode;

/// The settlement job runner: settles batches into a double-entry ledger once, on several instances, and proves it.
#[derive(Debug, Parser)]
#[command(name = "settled", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 usage, configuration or unreadable input, 3 the books do not hold, 4 lock service or database unavailable, or the wait ended."
)]
pub(crate) struct Arguments {
    /// Configuration file (TOML); every key is also SETTLED__SECTION__KEY
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See a frozen instance's late write refused, in half a minute, without any set-up
    Demo(demo::Demo),
    /// Create the ledger's schema or bring it up to date
    Migrate(migrate::Migrate),
    /// Take settlement files in
    Import(import::Import),
    /// Settle every due batch, together with whoever else runs
    Run(run::Run),
    /// Plan and settle as scheduled, together with any number of equal instances, until a signal
    Serve(serve::Serve),
    /// When runs occur, what they will be, what became of them
    #[command(subcommand)]
    Schedule(schedule::Schedule),
    /// The ledger at a glance
    Status(status::Status),
    /// Check every invariant of the books
    Verify(verify::Verify),
    /// Look at batches, and decide about those that wait for a person
    #[command(subcommand)]
    Batch(batch::Batch),
    /// Who holds which unit, by the lock service
    #[command(subcommand)]
    Lease(lease::Lease),
    /// Who holds which unit, by the ledger; where its tokens come from
    #[command(subcommand)]
    Fence(fence::Fence),
    /// Check, print or adopt the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Look at profiles of settlement files, and try one on a file
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Measure settling on this machine
    Bench(bench::Bench),
    /// Experiments with real processes and servers: what breaks without a protection, and holds with it
    #[command(subcommand)]
    Drill(drill::DrillCommand),
    /// Wake the process that started this one when it has been stopped for a while: chaos mode's helper
    #[command(hide = true)]
    WakeFrozen(wake_frozen::WakeFrozen),
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

impl Arguments {
    /// Runs the subcommand.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        if let Command::Completions(command) = &self.command {
            return command.run();
        }
        if let Command::Demo(command) = self.command {
            return command.run().await;
        }
        if let Command::Drill(command) = self.command {
            return command.run(self.config.as_deref()).await;
        }
        if let Command::Profile(command) = &self.command {
            return command.run();
        }
        if let Command::WakeFrozen(command) = &self.command {
            return command.run().await;
        }
        let config = Config::load(self.config.as_deref())?;
        let level = telemetry::start(&config.log)?;
        match self.command {
            Command::Migrate(command) => command.run(&config).await,
            Command::Import(command) => command.run(&config).await,
            Command::Run(command) => command.run(&config).await,
            Command::Serve(command) => command.run(config, self.config, level).await,
            Command::Schedule(command) => command.run(&config).await,
            Command::Status(command) => command.run(&config).await,
            Command::Verify(command) => command.run(&config).await,
            Command::Batch(command) => command.run(&config).await,
            Command::Lease(command) => command.run(&config).await,
            Command::Fence(command) => command.run(&config).await,
            Command::Config(command) => command.run(&config).await,
            Command::Bench(command) => command.run(&config).await,
            Command::Completions(_) | Command::Demo(_) | Command::Drill(_) | Command::Profile(_) | Command::WakeFrozen(_) => {
                unreachable!("run above: they need no configuration")
            }
        }
    }
}

/// Who does something by hand, and why. Kept in the audit log.
#[derive(Debug, clap::Args)]
struct Because {
    /// Why; kept in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Because {
    fn operator(&self) -> anyhow::Result<Operator> {
        if self.reason.trim().is_empty() {
            return Err(ConfigError("--reason must say why".to_owned()).into());
        }
        Ok(Operator { name: login(), reason: self.reason.clone() })
    }
}

/// Who is at the keyboard, for the audit log: `alice (uid 1000)`. The name is a claim, taken from the environment, which anyone
/// can set; the user id is what the system says, and behind `sudo` it is root's.
fn login() -> String {
    let name = ["SUDO_USER", "USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    format!("{} (uid {})", name.as_deref().unwrap_or("unknown"), rustix::process::getuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name alone would be what the environment says.
    #[test]
    fn the_audit_log_has_the_real_user_id() {
        let status = std::fs::read_to_string("/proc/self/status").expect("proc(5)");
        let real = status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().next());
        assert!(login().ends_with(&format!(" (uid {})", real.expect("a user id"))), "{}", login());
    }
}
