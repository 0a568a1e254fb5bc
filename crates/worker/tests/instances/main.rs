//! Instances of the worker on real ledgers: what they make of a job of one's own, and of serving. Several in one process here, several
//! processes in `frozen.rs`.
//!
//! A test is an ordinary async function that is given a [`fixture::Place`]; its module lists it, and `main` runs the lists on each
//! engine. Tags like R9 are those of public reports of the fault that the test closes.

#![allow(unreachable_pub, missing_docs, reason = "nothing here is a library")]

#[macro_use]
mod fixture;
mod draining;
mod frozen;
mod jobs;
#[path = "../../examples/nightly_report.rs"]
mod nightly_report;
mod outages;
mod refusals;
mod serving;

use fixture::{Named, Place, run};
use lab::trials::Suite;
use std::process::ExitCode;

const EVERY: [&[Named]; 4] = [jobs::EVERY, draining::EVERY, serving::EVERY, refusals::EVERY];

fn main() -> ExitCode {
    // tests start this program again, as an instance of the example
    if let Some(code) = frozen::as_child() {
        return code;
    }
    let mut suite = Suite::new();
    for (name, test) in EVERY.into_iter().flatten().copied() {
        let titled = |engine: &str| name.replacen("instances", engine, 1).replace('_', " ");
        suite = suite.plain(&titled("sqlite"), move || run(test(Place::sqlite())));
        suite = suite.with_postgres(&titled("postgres"), move |url| run(test(Place::at(url))));
    }
    let suite = suite.with_postgres("postgres::refusals::nothing given out is looked for after a pause", |url| {
        run(refusals::nothing_given_out_is_looked_for_after_a_pause(Place::at(url)));
    });
    outages::add(frozen::add(suite)).run()
}
