//! `settled completions SHELL`.

use super::Arguments;
use clap::CommandFactory;
use std::process::ExitCode;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        clap_complete::generate(self.shell, &mut Arguments::command(), "settled", &mut std::io::stdout());
        Ok(ExitCode::SUCCESS)
    }
}
