//! Faults that were seen elsewhere, by tag: what must be, and that a test here says so.
//!
//! A tag counts as tested where the name or the doc comment of a test has it: `r12_ten_processes…`, `/// M17: …`, or the title of
//! a test on a server, `"R1 SIGSTOP at …"`.

mod repository;

use repository::{Text, files, words};

const FAULTS: &[(&str, &str)] = &[
    // leases and fencing
    ("L18", "a release after expiry says NotHeld; the handle is spent, the next acquire works"),
    ("L19", "expiry is by the database's clock, in a short transaction of its own; wrong clocks of workers agree"),
    ("L21", "tokens survive the release and the expiry of a lease"),
    ("L22", "deadlines count while the machine is suspended: CLOCK_BOOTTIME, no Instant"),
    ("L23", "one that lost stops at the first refusal, reports it, and goes back to acquiring"),
    ("L24", "progress within two TTLs after the lock service is back"),
    ("L25", "an identity per process start, never a host's or a worker's name"),
    ("L27", "a late renewal revives nothing"),
    ("L28", "the token is minted after the lease is held, and ownership proven after that"),
    ("L29", "one of two tasks of a process gets the lease"),
    // runs, claims, workers
    ("R1", "a frozen instance loses its claim, wakes, and is refused"),
    ("R2", "every transition repeats the whole guard: what finished meanwhile is left alone"),
    ("R3", "many launches of one run are one run, and each batch is settled once"),
    ("R4", "what the dead have claimed is taken over within TTL + 1 s"),
    ("R5", "a batch that kills its worker is quarantined, and no neighbour with it"),
    ("R6", "leases are renewed while every worker thread is blocked"),
    ("R7", "leases are renewed while work has taken every connection"),
    ("R8", "a client frozen inside a transaction is ended by the server; documented for SQLite"),
    ("R11", "a write dropped at any await leaves no open transaction behind"),
    ("R12", "ten instances start at once on an empty database"),
    ("R13", "totals of a run are read from the ledger"),
    ("R15", "two processes share one SQLite file fairly, and no lease is lost"),
    ("R16", "a batch imported while its run is closing is settled by that run or the next"),
    // money and the ledger
    ("M1", "amounts are decimals that become integers; no floating point"),
    ("M2", "the exponent is the currency's"),
    ("M3", "64 bits, sums in 128, and an error before the write"),
    ("M4", "locks are taken in the order of the SQL; imports that share accounts do not deadlock"),
    ("M5", "memory and statements are bounded, however large the file"),
    ("M6", "a settlement that fails inside leaves nothing in any table"),
    ("M7", "sums are decoded and range-checked on each engine"),
    ("M8", "balances lose no update"),
    ("M9", "two batches of one day are two"),
    ("M10", "a repeated line is found; two legal twins are two"),
    ("M11", "an ambiguous number is an error"),
    ("M12", "byte order mark, CRLF and a last line without its end are read; a mark elsewhere is an error"),
    ("M13", "killed between any two steps and started again: the same books"),
    ("M17", "tomorrow's file with the same batch numbers is another file"),
    ("M19", "fees above the gross, zero rows, merchants at net zero"),
    ("M20", "append-only tables refuse UPDATE, DELETE, REPLACE, TRUNCATE and cascades"),
];

#[test]
fn every_fault_has_a_test() {
    let mut tests = files("crates", &[".rs"]);
    tests.retain(|file| !file.path.ends_with("tests/faults.rs") && tested(file).is_some());
    let untested: Vec<_> = FAULTS
        .iter()
        .filter(|(tag, _)| !tests.iter().any(|file| says(file, tag)))
        .map(|(tag, must)| format!("{tag}: {must}"))
        .collect();
    assert!(untested.is_empty(), "no test says\n{}", untested.join("\n"));
}

/// The part of a file that is tests.
fn tested(file: &Text) -> Option<&str> {
    if file.path.contains("/tests/") || file.path.ends_with("/src/sqlite/cancel.rs") {
        return Some(&file.text);
    }
    file.text.find("#[cfg(test)]\nmod tests").map(|at| &file.text[at..])
}

/// In the name of a function, in a doc comment, or in a title.
fn says(file: &Text, tag: &str) -> bool {
    let lower = tag.to_lowercase();
    tested(file).unwrap_or_default().lines().map(str::trim_start).any(|line| {
        let name = line.split_once("fn ").and_then(|(_, rest)| words(rest).next());
        let named = name.is_some_and(|name| name.split('_').any(|part| part == lower));
        let told = line.starts_with("///") || line.starts_with("//!") || line.contains('"');
        named || (told && words(line).any(|word| word == tag))
    })
}
