//! `cargo xtask nightly`: the tests that take longer than a developer waits.

use std::{ffi::OsString, process::ExitCode};

use crate::test;

/// Arguments of `cargo xtask nightly`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Passed on to `cargo test`.
    #[arg(last = true)]
    cargo_args: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // long tests look for this and are ignored without it
    test::with_servers(&args.cargo_args, &["--release"], &[("SETTLED_NIGHTLY", "1")])
}
