//! `cargo xtask demo`: from a checkout to a settled night in one command.

use std::{ffi::OsString, os::unix::process::CommandExt, process::ExitCode};

use anyhow::anyhow;

use crate::servers;

/// Arguments of `cargo xtask demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Build optimised: slower to build, faster to run.
    #[arg(long)]
    release: bool,
    /// Passed on to `settled demo`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    servers::ensure_protoc()?;
    let mut cargo = crate::cargo();
    cargo.args(["run", "--package", "settled"]);
    if args.release {
        cargo.arg("--release");
    }
    // becomes cargo, so that Ctrl-C and the exit code are the demo's own
    let error = cargo.args(["--", "demo"]).args(args.args).exec();
    Err(anyhow!(error).context("starting cargo run"))
}
