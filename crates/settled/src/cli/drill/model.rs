//! `settled drill model`: the protocol in every order of events, with each protection taken away in turn.

use crate::config::ConfigError;
use crate::exit;
use crate::output::{self, say};
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
        let print: fn(&Outcome) = match (self.json, self.show.is_some()) {
            (true, _) => |_| {},
            (false, true) => tell,
            (false, false) => line,
        };
        let decided = |row: &Row| {
            let outcome = row.run();
            print(&outcome);
            outcome
        };
        if !self.json && self.show.is_none() {
            say!("{:<30} {:<8} {:>7} {:>5}  breaks", "name", "expected", "states", "steps");
        }
        let outcomes: Vec<Outcome> = rows.into_iter().map(decided).collect();
        if self.json {
            output::json(&outcomes)?;
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

/// One row, as soon as it is decided. `steps` are those of a shortest way to the damage.
fn line(outcome: &Outcome) {
    let as_expected = if outcome.is_expected() { "yes" } else { "NO" };
    let (name, states) = (outcome.row.name, outcome.states());
    let mut found = outcome.found.iter().map(|found| (found.timeline.len().to_string(), found.damage.to_string()));
    let (steps, damage) = found.next().unwrap_or_else(|| (String::new(), nothing(outcome)));
    say!("{name:<30} {as_expected:<8} {states:>7} {steps:>5}  {damage}");
    found.for_each(|(steps, damage)| say!("{:<30} {:<8} {:>7} {steps:>5}  {damage}", "", "", ""));
}

/// That nothing breaks is the promise where nothing is taken away, and a finding elsewhere.
fn nothing(outcome: &Outcome) -> String {
    match (outcome.is_whole(), outcome.row.away) {
        (false, _) => "not decided: the space has no end".to_owned(),
        (true, []) => "nothing".to_owned(),
        (true, _) if outcome.row.covered.is_empty() => "nothing".to_owned(),
        (true, _) => format!("nothing (a finding: {})", outcome.row.covered),
    }
}

fn tell(outcome: &Outcome) {
    say!("without {}", outcome.row.in_words());
    for explored in &outcome.explored {
        let (states, steps, longest) = (explored.states, explored.steps, explored.longest);
        say!("  {:<26} {states:>7} states, {steps:>7} steps tried, at most {longest} in a row", explored.scope.name);
    }
    if outcome.found.is_empty() {
        say!("breaks: {}", nothing(outcome));
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
