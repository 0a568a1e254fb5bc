//! What may see a mutation: a test, or a drill.

use std::{fmt, process::Command, str::FromStr};

use anyhow::{Context, bail, ensure};
use lab::trials::{POSTGRES_ENV, REQUIRE_ENV};
use serde::Deserialize;

use super::tree::Tree;

/// See the head of `mutants.toml`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Look {
    Test { package: String, test: String, filter: String },
    Drill { name: String },
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Green,
    Red,
}

/// Looks at the copy.
pub(super) struct Looker<'a> {
    pub(super) tree: &'a Tree,
    pub(super) postgres_url: String,
}

impl FromStr for Look {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (what, which) = text.split_once(": ").with_context(|| format!("{text:?} has no \": \""))?;
        if what == "drill" {
            return Ok(Self::Drill { name: which.to_owned() });
        }
        let (package, test) = what.split_once('/').with_context(|| format!("{what:?} is neither PACKAGE/TEST nor drill"))?;
        Ok(Self::Test { package: package.to_owned(), test: test.to_owned(), filter: which.to_owned() })
    }
}

impl TryFrom<String> for Look {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map_err(|error: anyhow::Error| error.to_string())
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test { package, test, filter } if filter.is_empty() => write!(f, "{package}/{test}"),
            Self::Test { package, test, filter } => write!(f, "{package}/{test}: {filter}"),
            Self::Drill { name } => write!(f, "drill {name}"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Green => "green",
            Self::Red => "red",
        })
    }
}

impl Looker<'_> {
    pub(super) fn look(&self, look: &Look) -> anyhow::Result<Seen> {
        match look {
            Look::Test { test, filter, .. } => self.test(test, filter),
            Look::Drill { name } => self.drill(name),
        }
    }

    /// Built as part of the workspace: alone, a package has features of its own, and everything below it would be built anew.
    fn test(&self, test: &str, filter: &str) -> anyhow::Result<Seen> {
        let test = ["test", "--workspace", "--no-fail-fast", "--test", test];
        // a mutation that does not compile breaks nothing
        self.built(self.cargo().args(test).arg("--no-run"))?;
        let output = self.cargo().args(test).arg(filter).output().context("starting cargo")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let told = said.lines().filter_map(|line| line.strip_prefix("running ")?.split_once(' ')).any(|(count, _)| count != "0");
        ensure!(told, "no test is called {filter:?}: {said}");
        if output.status.success() {
            return Ok(Seen::Green);
        }
        ensure!(said.contains("test result: FAILED"), "the tests did not come to an end: {said}");
        Ok(Seen::Red)
    }

    fn drill(&self, name: &str) -> anyhow::Result<Seen> {
        self.built(self.cargo().args(["build", "--workspace", "--bin", "settled"]))?;
        let program = self.tree.target().join("debug/settled");
        let output = Command::new(program).args(["drill", "run", name]).output().context("starting settled")?;
        match output.status.code() {
            Some(0) => Ok(Seen::Green),
            Some(3) => Ok(Seen::Red),
            _ => bail!("the drill {name} was not told to its end: {}", String::from_utf8_lossy(&output.stdout)),
        }
    }

    fn built(&self, command: &mut Command) -> anyhow::Result<()> {
        let output = command.output().context("starting cargo")?;
        ensure!(output.status.success(), "the copy cannot be built: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    fn cargo(&self) -> Command {
        let mut cargo = crate::cargo();
        cargo.current_dir(self.tree.root()).env("CARGO_TARGET_DIR", self.tree.target());
        cargo.env(POSTGRES_ENV, &self.postgres_url).env(REQUIRE_ENV, "1");
        cargo
    }
}
