//! `settled profile list | show | check`: what a new format needs before its first import. No ledger, no configuration.

mod check;
mod repeated;
mod report;

use crate::output;
use crate::output::say;
use clap::Subcommand;
use intake::Profile;
use intake::profile::ProfileError;
use serde::Serialize;
use std::process::ExitCode;

/// Look at profiles of settlement files, and try one on a file
#[derive(Debug, Subcommand)]
pub(super) enum ProfileCommand {
    /// List the built-in profiles
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a built-in profile: a start for one's own
    Show {
        /// Its name, as `settled profile list` has it
        name: String,
    },
    /// Read a file as an import would, without a ledger, and show what it is taken for
    Check(check::Check),
}

#[derive(Debug, Serialize)]
struct BuiltIn {
    name: String,
    source: String,
    reads: String,
}

impl ProfileCommand {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            ProfileCommand::List { json } => list(*json)?,
            ProfileCommand::Show { name } => say!("{}", Profile::text(name)?.trim_end()),
            ProfileCommand::Check(check) => return check.run(),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(json: bool) -> anyhow::Result<()> {
    let profiles = Profile::names().map(built_in).collect::<Result<Vec<_>, _>>()?;
    if json {
        return output::json(&profiles);
    }
    let mut table = output::table(["profile", "source", "reads"]);
    for BuiltIn { name, source, reads } in profiles {
        table.add_row([name, source, reads]);
    }
    say!("{table}");
    Ok(())
}

/// What it reads is the first sentence of the comment that it begins with.
fn built_in(name: &str) -> Result<BuiltIn, ProfileError> {
    let profile = Profile::load(name)?;
    let comment =
        Profile::text(name)?.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect::<Vec<_>>().join(" ");
    let reads = comment.split_once(". ").map_or(comment.as_str(), |(first, _)| first).trim_end_matches('.').to_owned();
    Ok(BuiltIn { name: name.to_owned(), source: profile.source, reads })
}
