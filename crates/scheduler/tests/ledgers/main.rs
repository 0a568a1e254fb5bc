//! Planners on real ledgers of every engine. Their clocks cannot be set, so a planner is told what time to take it for.

#![allow(unreachable_pub, missing_docs, reason = "nothing here is a library")]

#[macro_use]
mod fixture;
mod clocks;
mod definitions;
mod looks;
mod outage;
mod restarts;

use fixture::{Named, Place, Test};
use lab::trials::Suite;
use std::process::ExitCode;
use std::time::Duration;

const EVERY: [&[Named]; 4] = [restarts::EVERY, clocks::EVERY, definitions::EVERY, looks::EVERY];

fn main() -> ExitCode {
    let mut suite = Suite::new();
    for &(name, test) in EVERY.into_iter().flatten() {
        suite = suite.with_postgres(&titled("postgres", name), move |url| run(Place::at(url.as_str()), test));
        suite = suite.plain(&titled("sqlite", name), move || run(Place::sqlite(), test));
    }
    suite.plain("postgres::R14 the database is lost over an occurrence", outage::r14_lost_and_back).run()
}

fn titled(engine: &str, name: &str) -> String {
    name.replacen("ledgers", engine, 1).replace('_', " ")
}

/// One thread: a test may stop the runtime's clock, which several do not allow.
fn run(place: Place, test: Test) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let limit = Duration::from_secs(300);
    runtime.block_on(async { tokio::time::timeout(limit, test(place)).await.expect("within five minutes") });
}
