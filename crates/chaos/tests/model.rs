//! The matrix of protections: with all of them nothing breaks in the whole space; with each taken away exactly that breaks which
//! stands in its row. One test a row.

use chaos::model::Happening;
use chaos::model::matrix::{ROWS, Row};
use libtest_mimic::{Arguments, Failed, Trial};

/// A model whose space is empty holds everything. Far below what it has.
const FEWEST_STATES: usize = 20_000;

fn main() {
    let mut trials: Vec<Trial> =
        ROWS.iter().map(|row| Trial::test(format!("without_{}", row.name), || breaks_exactly(row))).collect();
    trials.push(Trial::test("everything_happens", everything_happens));
    trials.push(Trial::test("a_space_that_is_cut_off_proves_nothing", cut_off_proves_nothing));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn breaks_exactly(row: &Row) -> Result<(), Failed> {
    let outcome = row.run();
    println!("without {}: {} states, {} ms", row.in_words(), outcome.states(), outcome.took_ms);
    for found in &outcome.found {
        println!("  {} after {} steps, where {}", found.damage, found.timeline.len(), found.scope);
    }
    if outcome.states() < FEWEST_STATES {
        return Err(format!("only {} states", outcome.states()).into());
    }
    if outcome.is_expected() {
        return Ok(());
    }
    if !outcome.is_whole() {
        return Err("its space has no end".into());
    }
    let told = |line: &chaos::model::Turn| format!("{:>3}  {:<10} {}", line.t, line.who, line.event);
    let lines: Vec<String> = outcome.found.iter().flat_map(|found| found.timeline.iter().map(told)).collect();
    let found: Vec<_> = outcome.found.iter().map(|found| found.damage).collect();
    Err(format!("{found:?} and not {:?}:\n{}", row.breaks, lines.join("\n")).into())
}

/// A space without an end must come back as a failure, and in time: a row that runs for ever says nothing.
fn cut_off_proves_nothing() -> Result<(), Failed> {
    let full = ROWS.iter().find(|row| row.away.is_empty()).ok_or("no row takes nothing away")?;
    let outcome = full.run_within(100);
    let most = outcome.explored.iter().map(|explored| explored.states).max();
    match outcome.is_expected() || most > Some(FEWEST_STATES) {
        true => Err(format!("taken for the whole of it, with {most:?} states").into()),
        false => Ok(()),
    }
}

/// What the protocol is there for must happen somewhere in the space of the full protocol.
fn everything_happens() -> Result<(), Failed> {
    let full = ROWS.iter().find(|row| row.away.is_empty()).ok_or("no row takes nothing away")?.run();
    for explored in &full.explored {
        println!(
            "{}: {} states, {} steps, at most {} in a row",
            explored.scope.name, explored.states, explored.steps, explored.longest
        );
    }
    let times = |happening: Happening| -> u64 {
        full.explored
            .iter()
            .flat_map(|explored| &explored.happened)
            .filter(|(one, _)| *one == happening)
            .map(|(_, times)| times)
            .sum()
    };
    match Happening::ALL.into_iter().find(|happening| times(*happening) == 0) {
        Some(never) => Err(format!("{never:?} never happens").into()),
        None => Ok(()),
    }
}
