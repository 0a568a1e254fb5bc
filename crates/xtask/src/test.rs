//! `cargo xtask test`: every test, with one private PostgreSQL for all of them.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, ExitCode},
};

use anyhow::Context;
use lab::{
    postgres::{BIN_DIR_ENV, Durability, Postgres},
    trials::{POSTGRES_ENV, REQUIRE_ENV},
};
use tempfile::TempDir;

use crate::{group::Signals, servers};

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Bring and start nothing: each test binary starts what the machine has, or ignores
    /// the tests that need it.
    #[arg(long)]
    skip_servers: bool,
    /// Passed on to `cargo test`: a filter, `--package ledger`, `-- --exact`.
    #[arg(last = true)]
    cargo_args: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.skip_servers {
        return Signals::listen()?.run(&mut cargo_test(&args.cargo_args, &[]));
    }
    with_servers(&args.cargo_args, &[], &[])
}

/// Runs `cargo test` with servers. Whatever happens, they are stopped, and their folder and
/// what interrupted tests left are removed.
pub(crate) fn with_servers(cargo_args: &[OsString], more_args: &[&str], more_env: &[(&str, &str)]) -> anyhow::Result<ExitCode> {
    // from here on Ctrl-C ends the tests first, and then us
    let signals = Signals::listen()?;
    bring()?;
    let leftovers = leftovers()?;
    let mut test = cargo_test(cargo_args, more_args);
    test.env("TMPDIR", leftovers.path()).envs(more_env.iter().copied());
    let postgres = postgres()?;
    if let Some(postgres) = &postgres {
        println!("PostgreSQL for the tests: {} (pid {})", postgres.url(), postgres.pid());
        test.env(POSTGRES_ENV, postgres.url().as_str()).env(BIN_DIR_ENV, postgres.binaries().dir());
    }
    let code = signals.run(&mut test);
    println!("stopping the servers");
    code
}

fn cargo_test(cargo_args: &[OsString], more_args: &[&str]) -> Command {
    let mut cargo = crate::cargo();
    // one failure must not hide what the later suites would say
    cargo.args(["test", "--no-fail-fast"]);
    // `--workspace` would win over a chosen package
    if !cargo_args.iter().any(|arg| arg == "-p" || arg == "--package") {
        cargo.arg("--workspace");
    }
    cargo.args(more_args).args(cargo_args);
    cargo
}

fn bring() -> anyhow::Result<()> {
    match servers::ensure(false) {
        Err(error) if !required() => {
            println!("tests that need it will be ignored: {error:#}");
            Ok(())
        }
        brought => brought,
    }
}

fn postgres() -> anyhow::Result<Option<Postgres>> {
    match Postgres::start(Durability::Off) {
        // said already
        Err(lab::Error::Missing { .. }) if !required() => Ok(None),
        started => started.map(Some).context("starting a PostgreSQL for the tests"),
    }
}

fn required() -> bool {
    env::var(REQUIRE_ENV).is_ok_and(|value| value == "1")
}

/// The tests' temporary folder. A test ended by a signal cannot tidy up, so we do. Servers
/// that run as another user live in it, hence open to walk through.
fn leftovers() -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("tests-").tempdir().context("creating a folder for the tests")?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
    Ok(folder)
}
