//! `settled drill model`: the protocol in every order of events, with each protection taken away in turn.

use crate::config::ConfigError;
use crate::exit;
use crate::output::{self, plain_table, say};
use chaos::model::matrix::{Outcome, ROWS, Row};
use std::process::ExitCode;

/// Every order of events of the protocol, and what breaks without each protection
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Model {
    /// Tell a shortest way to the damage, for this row only
    #[arg(long, value_name = "NAME")]
    show: Option<String>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

impl Model {
    pub(in crate::cli) fn run(self) -> anyhow::Result<ExitCode> {
        let rows: Vec<&Row> = match &self.show {
            Some(name) => vec![row_named(name)?],
            None => ROWS.iter().collect(),
        };
        let outcomes: Vec<Outcome> = rows.into_iter().map(Row::run).collect();
        match (self.json, self.show.is_some()) {
            (true, _) => output::json(&outcomes)?,
            (false, true) => outcomes.iter().for_each(tell),
            (false, false) => table(&outcomes),
        }
        let holds = outcomes.iter().all(Outcome::is_expected);
        Ok(ExitCode::from(if holds { exit::DONE } else { exit::BOOKS }))
    }
}

fn row_named(name: &str) -> Result<&'static Row, ConfigError> {
    let names = || ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    let found = ROWS.iter().find(|row| row.name == name);
    found.ok_or_else(|| ConfigError(format!("the model has no row {name:?}; it has {}", names())))
}

fn table(outcomes: &[Outcome]) {
    let mut table = plain_table(["name", "taken away", "breaks", "states", "steps to it", "as expected"]);
    for outcome in outcomes {
        let each = |cell: fn(&chaos::model::matrix::Found) -> String| match outcome.found.as_slice() {
            [] => "nothing".to_owned(),
            found => found.iter().map(cell).collect::<Vec<_>>().join("\n"),
        };
        table.add_row([
            outcome.row.name.to_owned(),
            outcome.row.in_words(),
            each(|found| found.damage.to_string()),
            outcome.states().to_string(),
            if outcome.found.is_empty() { String::new() } else { each(|found| found.timeline.len().to_string()) },
            if outcome.is_expected() { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    say!("{table}");
}

fn tell(outcome: &Outcome) {
    say!("without {}", outcome.row.in_words());
    for explored in &outcome.explored {
        let (states, steps, longest) = (explored.states, explored.steps, explored.longest);
        say!("  {:<26} {states:>7} states, {steps:>7} steps tried, at most {longest} in a row", explored.scope.name);
    }
    if outcome.found.is_empty() {
        say!("nothing breaks");
    }
    for found in &outcome.found {
        say!("");
        say!("{}, where {}:", found.damage, found.scope);
        say!("{:>4}  {:<10} what happens", "t", "who");
        for turn in &found.timeline {
            say!("{:>4}  {:<10} {}", turn.t, turn.who, turn.event);
        }
    }
}
