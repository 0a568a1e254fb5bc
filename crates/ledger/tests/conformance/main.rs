//! One suite over every engine: what a ledger promises does not depend on where it is kept.
//!
//! A test is an ordinary async function that is given a [`fixture::Place`]; its module lists it, and `main` runs the lists on
//! each engine. Tags like M10 are those of public reports of the fault that the test closes.

#![allow(unreachable_pub, missing_docs, reason = "nothing here is a library")]

#[macro_use]
mod fixture;
mod advisory_xact;
mod append_only;
mod claim;
mod corrections;
mod fence;
mod import;
mod in_flight;
mod jobs;
mod lock_order;
mod operate;
mod postings;
mod replace;
mod row_lock;
mod runs;
mod schedules;
mod settle;
mod stale;
mod start;
mod statements;
mod verify;
mod verify_payouts;
mod verify_reversals;
mod verify_triggers;

use fixture::{Named, Place, Test};
use lab::trials::Suite;
use std::process::ExitCode;
use std::time::Duration;

/// On every engine.
const EVERY: [&[Named]; 21] = [
    import::EVERY,
    fence::EVERY,
    claim::EVERY,
    settle::EVERY,
    postings::EVERY,
    in_flight::EVERY,
    row_lock::EVERY,
    runs::EVERY,
    schedules::EVERY,
    jobs::EVERY,
    operate::EVERY,
    corrections::EVERY,
    replace::EVERY,
    stale::EVERY,
    verify::EVERY,
    verify_payouts::EVERY,
    verify_reversals::EVERY,
    verify_triggers::EVERY,
    append_only::EVERY,
    start::EVERY,
    statements::EVERY,
];
/// About what only a server has: sessions that it can end, advisory locks, TRUNCATE.
const POSTGRES: [&[Named]; 9] = [
    row_lock::ADVISORY,
    advisory_xact::POSTGRES,
    in_flight::POSTGRES,
    append_only::POSTGRES,
    stale::POSTGRES,
    schedules::POSTGRES,
    jobs::POSTGRES,
    corrections::POSTGRES,
    lock_order::POSTGRES,
];
/// About what only SQLite has, statements that replace a row, and what it does not have.
const SQLITE: [&[Named]; 2] = [append_only::SQLITE, advisory_xact::SQLITE];

fn main() -> ExitCode {
    // a test may start this program again, as another process on the same ledger
    if let Some(code) = start::as_child() {
        return code;
    }
    let mut suite = Suite::new();
    for (name, test) in EVERY.into_iter().flatten().copied() {
        suite = on_sqlite(on_postgres(suite, name, test), name, test);
    }
    for (name, test) in POSTGRES.into_iter().flatten().copied() {
        suite = on_postgres(suite, name, test);
    }
    for (name, test) in SQLITE.into_iter().flatten().copied() {
        suite = on_sqlite(suite, name, test);
    }
    suite.run()
}

fn on_postgres(suite: Suite, name: &str, test: Test) -> Suite {
    suite.with_postgres(&titled("postgres", name), move |url| run(Place::at(url), test))
}

fn on_sqlite(suite: Suite, name: &str, test: Test) -> Suite {
    suite.plain(&titled("sqlite", name), move || run(Place::sqlite(), test))
}

fn titled(engine: &str, name: &str) -> String {
    name.replacen("conformance", engine, 1).replace('_', " ")
}

/// Four threads, because a probe may block one of them as long as a test likes.
fn run(place: Place, test: Test) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime");
    let limit = Duration::from_secs(300);
    runtime.block_on(async { tokio::time::timeout(limit, test(place)).await.expect("within five minutes") });
}
