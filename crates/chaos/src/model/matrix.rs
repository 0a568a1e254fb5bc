//! What is taken away in turn, and what breaks then: the design's table, and beside it what breaks nothing.
//!
//! A row that breaks nothing is a finding, not a failure: another protection covers it, or it is there for speed alone.

use super::protection::Protection::{
    self, ClaimStamp, ClaimState, EntryKey, Fence, Generation, Holder, LookUp, MintBeforeProof, MintUnderLock, Nonce,
    OneTransaction, Proof, RaiseUnits, RegisterCheck, ReleaseFence, ReleaseState, SettleState, UniqueIdentity,
};
use super::scope::{SCOPES, Scope};
use super::{Damage, Happening, Model, Protocol, Turn, tell, timeline};
use serde::Serialize;
use stateright::{Checker, HasDiscoveries, Model as _};
use std::time::Instant;

/// One row.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is taken away.
    pub away: &'static [Protection],
    /// Exactly what can then be the first damage, in this order.
    pub breaks: &'static [Damage],
    /// Where nothing breaks: why.
    pub covered: &'static str,
}

const fn row(name: &'static str, away: &'static [Protection], breaks: &'static [Damage]) -> Row {
    Row { name, away, breaks, covered: "" }
}

/// Nothing breaks without it, and this is why.
const fn finding(name: &'static str, away: &'static [Protection], covered: &'static str) -> Row {
    Row { name, away, breaks: &[], covered }
}

/// Steps tried in one scope, at most: far above what any has, so that a space without an end is told and not waited for.
pub const MOST_STEPS: usize = 500_000;

/// All rows; the first takes nothing away.
pub const ROWS: &[Row] = &[
    row("full", &[], &[]),
    row("fence", &[Fence], &[Damage::SupersededCommits]),
    row("register-check", &[RegisterCheck], &[Damage::StaleOutranks]),
    row("proof", &[Proof], &[Damage::StaleOutranks]),
    row("prove-then-mint", &[MintBeforeProof], &[Damage::StaleOutranks]),
    row("mint-then-acquire", &[MintUnderLock], &[Damage::StaleOutranks]),
    row("holder", &[Holder], &[Damage::SupersededCommits, Damage::UntrueOutcome]),
    row("generation", &[Generation], &[Damage::StaleOutranks]),
    row("raise-units", &[RaiseUnits], &[Damage::SupersededCommits, Damage::StaleOutranks]),
    row("one-transaction", &[OneTransaction], &[Damage::Stuck]),
    row("one-transaction-and-entry-key", &[OneTransaction, EntryKey], &[Damage::DoubleSettlement]),
    row("claim-state", &[ClaimState], &[Damage::UntrueOutcome, Damage::Stuck]),
    row("state-condition", &[ClaimState, SettleState], &[Damage::UntrueOutcome, Damage::Stuck]),
    row(
        "state-condition-and-entry-key",
        &[ClaimState, SettleState, EntryKey],
        &[Damage::DoubleSettlement, Damage::UntrueOutcome],
    ),
    finding("settle-state", &[SettleState], "an answer that is lost is read back, never sent again"),
    finding("entry-key", &[EntryKey], "the state conditions let no second entry come to it"),
    finding(
        "settle-state-and-entry-key",
        &[SettleState, EntryKey],
        "the claim's state condition and the read-back let no second settlement come to it",
    ),
    finding("claim-stamp", &[ClaimStamp], "the fence is compared in the same transaction"),
    row("fence-and-claim-stamp", &[Fence, ClaimStamp], &[Damage::SupersededCommits]),
    row(
        "fence-and-all-conditions",
        &[Fence, ClaimStamp, SettleState, EntryKey],
        &[Damage::DoubleSettlement, Damage::SupersededCommits],
    ),
    finding("release-fence", &[ReleaseFence], "the holder whose batch is taken from it reads that back, and claims anew"),
    finding("release-state", &[ReleaseState], "only a settlement that failed is handed back, under its own stamp"),
    row("release-conditions", &[ReleaseFence, ReleaseState], &[Damage::UntrueOutcome, Damage::Stuck]),
    row(
        "release-conditions-and-entry-key",
        &[ReleaseFence, ReleaseState, EntryKey],
        &[Damage::DoubleSettlement, Damage::UntrueOutcome],
    ),
    finding("nonce", &[Nonce], "the next holder's token is newer; but two can free each other's lease again and again"),
    finding("look-up", &[LookUp], "the unique key refuses the second"),
    finding("unique-identity", &[UniqueIdentity], "imports in turn look it up"),
    finding("turn", &[Protection::Turn], "the unique key refuses the second"),
    finding("turn-and-look-up", &[Protection::Turn, LookUp], "the unique key refuses the second"),
    row("turn-and-unique-identity", &[Protection::Turn, UniqueIdentity], &[Damage::DoubleImport]),
    row("identity", &[LookUp, UniqueIdentity], &[Damage::DoubleImport]),
];

/// Damage that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Which.
    pub damage: Damage,
    /// In which scope.
    pub scope: &'static str,
    /// A shortest way to it.
    pub timeline: Vec<Turn>,
}

/// What a scope came to.
#[derive(Debug, Clone, Serialize)]
pub struct Explored {
    /// Which.
    pub scope: Scope,
    /// Different states.
    pub states: usize,
    /// Steps tried.
    pub steps: usize,
    /// The longest run.
    pub longest: usize,
    /// Whether there is no more: less than the most steps.
    pub ended: bool,
    /// How often what happened, in steps tried.
    pub happened: Vec<(Happening, u64)>,
}

/// What a row came to.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The row.
    pub row: Row,
    /// What breaks.
    pub found: Vec<Found>,
    /// What was looked at.
    pub explored: Vec<Explored>,
    /// For how long, in milliseconds.
    pub took_ms: u128,
}

impl Outcome {
    /// Whether every scope was explored to its end.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.explored.iter().all(|explored| explored.ended)
    }

    /// Whether exactly that breaks which should, in the whole space.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.is_whole() && self.found.iter().map(|found| found.damage).eq(self.row.breaks.iter().copied())
    }

    /// Different states, of all scopes.
    #[must_use]
    pub fn states(&self) -> usize {
        self.explored.iter().map(|explored| explored.states).sum()
    }
}

impl Row {
    /// What is taken away, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        tell::away(self.away)
    }

    /// Explores every scope to its end.
    #[must_use]
    pub fn run(&self) -> Outcome {
        self.run_within(MOST_STEPS)
    }

    /// Explores every scope to its end, or until so many steps have been tried in it.
    #[must_use]
    pub fn run_within(&self, most_steps: usize) -> Outcome {
        let begun = Instant::now();
        let protocol = Protocol::without(self.away);
        let mut found: Vec<Found> = Vec::new();
        let mut explored = Vec::new();
        for scope in SCOPES {
            let (one, damages) = explore(scope, protocol, most_steps);
            explored.push(one);
            for damage in damages {
                if found.iter().all(|known| known.damage != damage) {
                    found.push(Found { damage, scope: scope.name, timeline: shortest(scope, protocol, damage) });
                }
            }
        }
        found.sort_by_key(|found| found.damage);
        Outcome { row: *self, found, explored, took_ms: begun.elapsed().as_millis() }
    }
}

/// The whole space, and all damage in it.
fn explore(scope: Scope, protocol: Protocol, most_steps: usize) -> (Explored, Vec<Damage>) {
    let checker = Model::new(scope, protocol, &Damage::ALL).checker().target_state_count(most_steps).spawn_bfs().join();
    let model = checker.model();
    let happened = Happening::ALL.into_iter().map(|happening| (happening, model.happened(happening))).collect();
    let explored = Explored {
        scope,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        longest: checker.max_depth(),
        ended: checker.state_count() < most_steps,
        happened,
    };
    let found = checker.discoveries();
    (explored, Damage::ALL.into_iter().filter(|damage| found.contains_key(damage.as_str())).collect())
}

/// Stops at the first damage of this kind: breadth first, that is a shortest way.
fn shortest(scope: Scope, protocol: Protocol, damage: Damage) -> Vec<Turn> {
    let checker = Model::new(scope, protocol, &[damage]).checker().finish_when(HasDiscoveries::Any).spawn_bfs().join();
    let path = checker.discovery(damage.as_str());
    timeline(checker.model(), &path.map(|path| path.into_actions()).unwrap_or_default())
}
