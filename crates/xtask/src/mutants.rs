//! `cargo xtask mutants`: breaks a copy of the product on purpose, one way after the other, and looks whether anything turns red.
//!
//! The ways and what must see them are in `mutants.toml`. A way that nothing sees is a missing test. The copy is below `target/mutants`,
//! with a target folder of its own; every look is first taken at the unbroken copy, where it must be green.

mod look;
mod table;
mod tree;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use lab::postgres::{Durability, Postgres};

use look::{Look, Seen};
use table::{Mutation, Table};
use tree::Tree;

/// Arguments of `cargo xtask mutants`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Only the mutations of these names.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let chosen = Table::read()?.chosen(&args.names)?;
    crate::servers::ensure(false)?;
    let tree = Tree::copy()?;
    let postgres = Postgres::start(Durability::Off).context("starting a PostgreSQL for the tests")?;
    let looker = look::Looker { tree: &tree, postgres_url: postgres.url().to_string() };
    green(&looker, &chosen)?;
    let mut rows = Vec::new();
    for mutation in &chosen {
        rows.push((mutation, broken(&looker, mutation)?));
    }
    show(&rows);
    let unseen = rows.iter().filter(|(_, seen)| seen.iter().any(|(_, seen)| *seen != Seen::Red)).count();
    ensure!(unseen == 0, "{unseen} of {} mutations are not seen by what should see them", rows.len());
    Ok(ExitCode::SUCCESS)
}

/// A look that is red without a mutation would find every mutation.
fn green(looker: &look::Looker<'_>, chosen: &[Mutation]) -> anyhow::Result<()> {
    let mut looks: Vec<&Look> = chosen.iter().flat_map(|mutation| &mutation.seen_by).collect();
    looks.sort();
    looks.dedup();
    for look in looks {
        println!("unbroken: {look}");
        let seen = looker.look(look)?;
        ensure!(seen == Seen::Green, "{look} is {seen} without any mutation");
    }
    Ok(())
}

/// What each look says of the product with one mutation in it.
fn broken(looker: &look::Looker<'_>, mutation: &Mutation) -> anyhow::Result<Vec<(Look, Seen)>> {
    println!("{}: {}", mutation.name, mutation.breaks);
    let _applied = looker.tree.apply(mutation)?;
    let mut seen = Vec::new();
    for look in &mutation.seen_by {
        let said = looker.look(look)?;
        println!("  {said}: {look}");
        seen.push((look.clone(), said));
    }
    Ok(seen)
}

/// As Markdown, which is also a table to the eye.
fn show(rows: &[(&Mutation, Vec<(Look, Seen)>)]) {
    println!("\n| mutation | what it breaks | seen by | beside |\n|---|---|---|---|");
    for (mutation, seen) in rows {
        let looks: Vec<String> = seen.iter().map(|(look, seen)| format!("{look} ({seen})")).collect();
        let beside = mutation.paired_with.as_deref().unwrap_or("");
        println!("| {} | {} | {} | {beside} |", mutation.name, mutation.breaks, looks.join("; "));
    }
}
