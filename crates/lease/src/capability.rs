//! What each lock service gives beyond the contract, and what it does not: declared by its file, shown as one table.
//!
//! The conformance suite tries every one of them on a real service, and expects the opposite where a service does not declare it. The
//! table of the README is [`matrix`]. Needs nothing else.

use std::time::Duration;

/// What one lock service gives. Everything that is not here is the contract, which all of them keep.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// The word for it in the configuration.
    pub name: &'static str,
    /// Its own tokens order its grants; otherwise the ledger mints.
    pub makes_tokens: bool,
    /// A grant outlives the connection over which it was asked for.
    pub outlives_connection: bool,
    /// A grant outlives a killed and restarted service, where that is back in time.
    pub outlives_restart: bool,
    /// A grant outlives, and is renewed in spite of, the loss of less than half of the servers.
    pub outlives_minority: bool,
    /// A wall clock that steps forward at a server ends no lease early.
    pub withstands_clock_step: bool,
    /// Who waits stands in line: a release wakes one of them.
    pub keeps_line: bool,
    /// A holder whose process died is succeeded at once, not after its TTL.
    pub notices_death: bool,
    /// The shortest TTL that is accepted.
    pub shortest_ttl: Duration,
    /// How long after the last sign of life of a frozen holder another one has the lease, at most.
    pub takeover: &'static str,
}

type Row = (&'static str, fn(&Capabilities) -> String);

const ROWS: [Row; 9] = [
    ("tokens come from", |of| if of.makes_tokens { "the service" } else { "the ledger" }.to_owned()),
    ("a grant outlives its connection", |of| yes(of.outlives_connection)),
    ("… a restart of the service that is over in time", |of| yes(of.outlives_restart)),
    ("… the loss of a minority of servers", |of| yes(of.outlives_minority)),
    ("… a server's clock that steps forward", |of| yes(of.withstands_clock_step)),
    ("waiters stand in line", |of| yes(of.keeps_line)),
    ("a dead holder is succeeded at once", |of| yes(of.notices_death)),
    ("shortest `lease.ttl_ms`", |of| of.shortest_ttl.as_millis().to_string()),
    ("a frozen holder is succeeded within", |of| of.takeover.to_owned()),
];

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

/// The table, in Markdown, one column for each of `services`.
#[must_use]
pub fn matrix(services: &[Capabilities]) -> String {
    let line = |first: &str, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
    let heads = services.iter().map(|of| format!("`{}`", of.name)).collect();
    let rules = format!("|{}\n", "---|".repeat(services.len() + 1));
    let rows = ROWS.iter().map(|(what, cell)| line(what, services.iter().map(cell).collect()));
    line("", heads) + &rules + &rows.collect::<String>()
}
