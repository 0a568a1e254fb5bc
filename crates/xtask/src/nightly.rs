//! `cargo xtask nightly`: what takes longer than a developer waits.
//!
//! Wider than `cargo xtask test`: tests that read `SETTLED_NIGHTLY` take larger books and more instants, property tests try more cases,
//! every drill is told and `soak` for longer under several seeds, the product is broken on purpose in every way of `mutants.toml`, and
//! the fuzz targets of the readers run where `cargo-fuzz` is installed.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context, ensure};
use lab::servers_dir;

use crate::{mutants, page, test};

/// Told to the tests.
const NIGHTLY_ENV: &str = "SETTLED_NIGHTLY";
/// Instead of 256.
const CASES: &str = "200000";
/// Whoever looks at a failed night can repeat it.
const SOAK_SEEDS: [&str; 3] = ["1", "2", "3"];
const SOAK_S: &str = "300";
/// The targets of `crates/intake/fuzz`.
const FUZZ_TARGETS: [&str; 4] = ["csv_profile", "nacha", "ndjson", "profile"];

/// Arguments of `cargo xtask nightly`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long each fuzz target runs, in seconds; 0: not at all.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    fuzz_s: u32,
    /// Passed on to `cargo test`.
    #[arg(last = true)]
    cargo_args: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let code = test::with_servers(&args.cargo_args, &["--release"], &[(NIGHTLY_ENV, "1"), ("PROPTEST_CASES", CASES)])?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    drills()?;
    mutants::run(mutants::Args::default())?;
    if args.fuzz_s > 0 {
        fuzz(args.fuzz_s)?;
    }
    Ok(code)
}

/// Every drill, then `soak` alone.
fn drills() -> anyhow::Result<()> {
    // also where the tests that were asked for did not need it
    let built =
        crate::cargo().args(["build", "--workspace", "--release", "--bin", "settled"]).status().context("starting cargo")?;
    ensure!(built.success(), "settled cannot be built: {built}");
    let program = servers_dir().with_file_name("release").join("settled");
    let report = servers_dir().with_file_name("drill-report");
    let mut all = Command::new(&program);
    all.args(["drill", "all", "--seed", SOAK_SEEDS[0], "--report"]).arg(&report);
    well(&mut all)?;
    page::run(page::Args::of(report.join("report.html")))?;
    for seed in SOAK_SEEDS {
        well(Command::new(&program).args(["drill", "run", "soak", "--seed", seed, "--soak-s", SOAK_S]))?;
    }
    Ok(())
}

fn well(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("starting {}", command.get_program().to_string_lossy()))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Needs a nightly compiler as well, which rustup finds by `+nightly`.
fn fuzz(seconds: u32) -> anyhow::Result<()> {
    let readers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../intake");
    // rustup's proxy, not the compiler that runs us: only the proxy knows `+nightly`
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").arg("+nightly").args(arguments).current_dir(&readers);
        command
    };
    if !cargo(&["fuzz", "--version"]).output().is_ok_and(|output| output.status.success()) {
        println!("the fuzz targets are left out: they need cargo-fuzz and a nightly compiler");
        return Ok(());
    }
    for target in FUZZ_TARGETS {
        println!("fuzzing {target} for {seconds} s");
        let limit = format!("-max_total_time={seconds}");
        let status = cargo(&["fuzz", "run", target, "--", &limit]).status().context("starting cargo fuzz")?;
        ensure!(status.success(), "the fuzz target {target} found something: {status}");
    }
    Ok(())
}
