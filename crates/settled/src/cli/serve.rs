//! `settled serve`: scheduler, worker and admin endpoint in one process, any number of which are equal.

use crate::config::Config;
use crate::serve;
use crate::telemetry::LogLevel;
use chaos::mode::Rule;
use std::path::PathBuf;
use std::process::ExitCode;

/// Plan and settle as scheduled, together with any number of equal instances, until a signal
#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    /// Stop or kill this process at a step of the protocol: STEP=stop or STEP=kill, @N for the Nth time, #B with batch B in hand
    #[arg(long, value_name = "STEP=SIGNAL", hide = true)]
    signal_at: Option<Rule>,
}

impl Serve {
    pub(super) async fn run(self, config: Config, file: Option<PathBuf>, level: LogLevel) -> anyhow::Result<ExitCode> {
        serve::serve(config, file, level, self.signal_at).await
    }
}
