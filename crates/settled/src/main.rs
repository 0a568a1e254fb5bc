//! The settlement job runner: one file per subcommand in `cli/`, the configuration in `config.rs`, `wire.rs` makes objects of it.

mod cli;
mod config;
mod exit;
mod output;
mod progress;
mod runs;
mod serve;
mod signals;
mod telemetry;
mod wire;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&error.into()),
    };
    match runtime.block_on(arguments.run()) {
        Ok(code) => code,
        Err(error) => exit::report(&error),
    }
}
