//! Faults that were seen elsewhere, by tag: what must be, and that a test here says so.
//!
//! A tag counts as tested where a function of a test is named after it (`r12_ten_processes…`), where the doc comment directly above
//! one has it (`/// M11: …`), or the title that a test is added to its suite with (`"R1 SIGSTOP at …"`). A mention elsewhere, in the
//! head of a file, a message or a comment, is none.

mod repository;

use repository::{files, words};

const FAULTS: &[(&str, &str)] = &[
    // leases and fencing
    ("L1", "a waiter whose place was lost is told at once, and never has the lock"),
    ("L2", "a holder that is cut off stops at its local deadline; the ledger refuses what still gets through"),
    ("L3", "a stream that falls silent or ends is no answer; renewal goes on on a new one"),
    ("L4", "a lease survives a lock service that is killed and back in time; client and stream are rebuilt"),
    ("L5", "a keepalive of a lease that is not there is a loss, definitely"),
    ("L6", "ownership is proven by a transaction, never by a keepalive"),
    ("L7", "tokens that went back stop the worker, and the error names the command"),
    ("L8", "one lease per instance at a service that allows it; renewals are jittered"),
    ("L9", "a renewal that hangs is given up below what remains of its lease"),
    ("L10", "a failed renewal is repeated until the deadline, and lost then"),
    ("L11", "a cancelled acquire leaves nothing behind, at any await"),
    ("L12", "a renewal in flight revives no released lock"),
    ("L13", "a failover before replication gives two holders, of whom one settles"),
    ("L14", "a half-open connection is given up in time"),
    ("L15", "a demoted primary is dropped, and the primary asked for anew"),
    ("L16", "a server's clock that steps forward may give two holders, of whom one settles"),
    ("L17", "no lock is without an expiry"),
    ("L18", "a release after expiry says NotHeld; the handle is spent, the next acquire works"),
    ("L19", "expiry is by the database's clock, in a short transaction of its own; wrong clocks of workers agree"),
    ("L20", "a lock is not leaked by a client's timeout, nor believed in after its connection was ended"),
    ("L21", "tokens survive the release and the expiry of a lease"),
    ("L22", "deadlines count while the machine is suspended: CLOCK_BOOTTIME, no Instant"),
    ("L23", "one that lost stops at the first refusal, reports it, and goes back to acquiring"),
    ("L24", "progress within two TTLs after the lock service is back"),
    ("L25", "an identity per process start, never a host's or a worker's name"),
    ("L26", "a renewal compares before it extends"),
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
    ("R9", "a shutdown hands back what it has claimed, without charge; asked twice, it does not wait"),
    ("R10", "idle instances look for schedules once a minute and for work every few seconds, and not together"),
    ("R11", "a write dropped at any await leaves no open transaction behind"),
    ("R12", "ten instances start at once on an empty database"),
    ("R13", "totals of a run are read from the ledger"),
    ("R14", "the database is lost over an occurrence: it is planned when it is back, by whoever is there"),
    ("R15", "two processes share one SQLite file fairly, and no lease is lost"),
    ("R16", "a batch imported while its run is closing is settled by that run or the next"),
    // schedules
    ("S1", "a zone is a rule that is asked anew, not an offset"),
    ("S2", "a time in a gap occurs right after it, or not at all, as configured; the row says so"),
    ("S3", "a time that comes twice occurs once"),
    ("S4", "instances that restart more often than the interval miss nothing"),
    ("S5", "after two weeks off exactly the policy's rows, however many occurred"),
    ("S6", "killed before an occurrence and replaced after it: it is planned"),
    ("S7", "a thousand schedules in one second are planned, and a silent bell rings again"),
    ("S8", "instances whose clocks differ plan an occurrence once"),
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
    ("M14", "a batch is done when every currency of it is: one that does not foot holds up the others"),
    ("M16", "business dates are half-open intervals that abut, and are kept in the run's row"),
    ("M17", "tomorrow's file with the same batch numbers is another file"),
    ("M18", "a corrected file replaces a broken, a cancelled and a settled batch"),
    ("M19", "fees above the gross, zero rows, merchants at net zero"),
    ("M20", "append-only tables refuse UPDATE, DELETE, REPLACE, TRUNCATE and cascades"),
];

#[test]
fn every_fault_has_a_test() {
    let mut tests = files("crates", &[".rs"]);
    tests.retain(|file| !file.path.ends_with("tests/faults.rs"));
    let sayings: Vec<_> = tests.iter().filter_map(|file| tested(&file.path, &file.text)).flat_map(sayings).collect();
    let untested: Vec<_> = FAULTS
        .iter()
        .filter(|(tag, _)| !sayings.iter().any(|saying| has(saying, tag)))
        .map(|(tag, must)| format!("{tag}: {must}"))
        .collect();
    assert!(untested.is_empty(), "no test says\n{}", untested.join("\n"));
}

/// The part of a file that is tests.
fn tested<'a>(path: &str, text: &'a str) -> Option<&'a str> {
    if path.contains("/tests/") || path.ends_with("/src/sqlite/cancel.rs") {
        return Some(text);
    }
    text.find("#[cfg(test)]\nmod tests").map(|at| &text[at..])
}

/// What tests are called and say of themselves.
fn sayings(text: &str) -> Vec<&str> {
    let (mut said, mut doc) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("///") {
            doc.push(line);
        } else if let Some(name) = function(line) {
            said.append(&mut doc);
            said.push(name);
        } else if !line.starts_with("#[") {
            doc.clear();
        }
    }
    for add in [".plain(", ".with_postgres(", "on_both(", "on_every_lock("] {
        said.extend(text.split(add).skip(1).filter_map(title));
    }
    for cases in text.split("Case] = &[").skip(1) {
        let cases = cases.split("];").next().unwrap_or_default();
        said.extend(cases.split("(\"").skip(1).filter_map(|case| case.split('"').next()));
    }
    said
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let line =
        ["pub(crate) ", "pub(super) ", "pub ", "async "].iter().fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
    words(line.strip_prefix("fn ")?).next()
}

/// The literal that arguments begin with, after the suite and before what is put into it.
fn title(arguments: &str) -> Option<&str> {
    let [before, literal, ..] = arguments.splitn(3, '"').collect::<Vec<_>>()[..] else { return None };
    let before: String = before.split_whitespace().collect();
    ["", "suite,", "&format!(", "suite,&format!("].contains(&before.as_str()).then_some(literal)
}

/// A name has its tag between underscores, a text as a word.
fn has(saying: &str, tag: &str) -> bool {
    let lower = tag.to_lowercase();
    saying.split('_').any(|part| part == lower) || words(saying).any(|word| word == tag)
}

#[test]
fn only_tests_speak_for_a_tag() {
    let text = r#"
        //! L1 in the head of a file
        /// L2 of a constant
        const X: &str = "L3 in a literal";
        /// L4 above a test
        #[tokio::test]
        async fn r5_something_else() {
            assert!(true, "L6 in a message"); // L7 in a comment
        }
        // fn l8_is_commented_out() {}
        let suite = on_both(suite, "L9 a title", story);
        suite = on_both(suite, &format!("L10 at {step}"), story);
        suite.plain(
            "L11 on a line of its own", story).with_postgres("L12 too", story)
        pub(crate) const CASES: &[Case] = &[
            ("a case (L13)", case),
        ];
        const FEW: &[OtherCase] = &[("another (L15)", case)];
        other(("L14", case));
    "#;
    let said = sayings(text);
    let found: Vec<_> = (1..=15).filter(|n| said.iter().any(|saying| has(saying, &format!("L{n}")))).collect();
    assert_eq!(found, [4, 9, 10, 11, 12, 13, 15], "{said:?}");
    assert!(said.iter().any(|saying| has(saying, "R5")));
}
