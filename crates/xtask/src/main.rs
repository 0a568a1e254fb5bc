//! `cargo xtask …`: everything around the code that is not a plain cargo command.
//!
//! One file or folder per subcommand; `apt` and `group` are what they share.

mod apt;
mod demo;
mod group;
mod mutants;
mod nightly;
mod page;
mod servers;
mod test;
mod tools;

use std::process::{Command, ExitCode};

use clap::Parser;

/// What `cargo xtask` can do.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", about = "Demo, tests with real servers, and the servers themselves.")]
enum Xtask {
    /// Build `settled` and run its demo.
    Demo(demo::Args),
    /// Bring the servers tests need, start one for all of them, run every test.
    Test(test::Args),
    /// Find the servers tests need, or bring them into target/servers.
    Servers(servers::Args),
    /// The long tests and every drill, optimised; then the mutants.
    Nightly(nightly::Args),
    /// Break a copy of the product on purpose, in every way of mutants.toml, and see that something turns red.
    Mutants(mutants::Args),
    /// Look at the report of drills in a headless browser.
    Page(page::Args),
    /// Bring what the deployment files are checked with into target/tools.
    Tools,
}

fn main() -> ExitCode {
    let done = match Xtask::parse() {
        Xtask::Demo(args) => demo::run(args),
        Xtask::Test(args) => test::run(args),
        Xtask::Servers(args) => servers::run(args),
        Xtask::Nightly(args) => nightly::run(args),
        Xtask::Mutants(args) => mutants::run(args),
        Xtask::Page(args) => page::run(args),
        Xtask::Tools => tools::run(),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// The cargo that runs us, or the one of the PATH.
///
/// Not told what cargo told us of this package: build scripts of dependencies look at it, and everything behind them would be built
/// anew, by `cargo test` and by `cargo xtask test` in turn.
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|of_this_package| name.starts_with(of_this_package)) {
            cargo.env_remove(name);
        }
    }
    cargo
}
