//! `settled bench`.

use crate::config::Config;
use std::process::ExitCode;

/// Measure settling on this machine
#[derive(Debug, clap::Args)]
pub(super) struct Bench {}

impl Bench {
    pub(super) async fn run(&self, _config: &Config) -> anyhow::Result<ExitCode> {
        anyhow::bail!("not measured yet")
    }
}
