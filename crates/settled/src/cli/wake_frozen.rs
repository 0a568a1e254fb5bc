//! `settled wake-frozen`: the helper of a process that chaos mode freezes. Hidden: only that process can be woken by it.

use crate::exit;
use std::process::ExitCode;
use std::time::Duration;

/// Wake the process that started this one when it has been stopped for a while: chaos mode's helper
#[derive(Debug, clap::Args)]
pub(super) struct WakeFrozen {
    /// The process that started this one
    process: i32,
    /// For how long it is stopped
    ms: u64,
}

impl WakeFrozen {
    pub(super) async fn run(&self) -> anyhow::Result<ExitCode> {
        chaos::mode::wake_frozen(self.process, Duration::from_millis(self.ms)).await?;
        Ok(ExitCode::from(exit::DONE))
    }
}
