//! How much of everything there is, so that the space of states has an end.

use serde::Serialize;

/// Where tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The ledger's counter.
    LedgerMinted,
    /// The lock service: etcd's `create_revision`.
    External,
}

/// The bounds of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Processes that settle.
    pub workers: u8,
    /// Batches of the one unit.
    pub batches: u8,
    /// So many are claimed at once.
    pub most: u8,
    /// Processes that import the same file.
    pub importers: u8,
    /// Where tokens come from.
    pub source: Source,
    /// Leases that expire while somebody believes to hold them. Those of nobody always expire.
    pub expiries: u8,
    /// Requests whose answer is lost, or that are lost themselves.
    pub lost: u8,
    /// Processes that die and are started again.
    pub crashes: u8,
    /// Settlements that the database refuses: nothing of them is there, and the worker is told.
    pub fails: u8,
    /// The lock service forgets everything, or is what it was after its first grant; external tokens go back with it.
    pub resets: u8,
    /// Generations that an operator adopts without need. Those that are needed are not counted.
    pub adoptions: u8,
}

const NOTHING: Scope = Scope {
    name: "",
    workers: 0,
    batches: 0,
    most: 1,
    importers: 0,
    source: Source::LedgerMinted,
    expiries: 0,
    lost: 0,
    crashes: 0,
    fails: 0,
    resets: 0,
    adoptions: 0,
};

/// Those that are checked: each has much of one thing and little of the others, or the space would have no end worth waiting for.
pub const SCOPES: [Scope; 11] = [
    Scope { name: "leases expire", workers: 2, batches: 1, expiries: 2, lost: 1, ..NOTHING },
    Scope { name: "processes die", workers: 2, batches: 1, expiries: 1, crashes: 1, ..NOTHING },
    Scope { name: "processes die unheard", workers: 2, batches: 1, lost: 1, crashes: 1, ..NOTHING },
    Scope { name: "settlements fail", workers: 2, batches: 2, most: 2, expiries: 1, lost: 1, fails: 1, ..NOTHING },
    Scope { name: "two batches at once", workers: 2, batches: 2, most: 2, expiries: 1, lost: 1, ..NOTHING },
    Scope { name: "three workers", workers: 3, batches: 1, expiries: 1, ..NOTHING },
    Scope { name: "the lock service forgets", workers: 2, batches: 1, resets: 1, adoptions: 1, ..NOTHING },
    Scope {
        name: "external tokens go back",
        source: Source::External,
        workers: 2,
        batches: 1,
        resets: 1,
        adoptions: 1,
        ..NOTHING
    },
    Scope { name: "external leases expire", source: Source::External, workers: 2, batches: 1, expiries: 1, lost: 1, ..NOTHING },
    Scope {
        name: "external, back and expired",
        source: Source::External,
        workers: 2,
        batches: 1,
        expiries: 1,
        resets: 1,
        ..NOTHING
    },
    Scope { name: "imports", importers: 2, lost: 1, crashes: 1, ..NOTHING },
];
