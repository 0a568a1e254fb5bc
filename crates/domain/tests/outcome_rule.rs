//! What became of a batch: every combination of a small world, against the rule written down a second time.

use domain::batch::BatchState;
use domain::fence::{Fence, Stamp};
use domain::ids::HolderId;
use domain::outcome::{Seen, SettleOutcome, classify};
use uuid::Uuid;

fn stamps() -> Vec<Stamp> {
    let mut stamps = Vec::new();
    for generation in 1..=2 {
        for token in 1..=3 {
            for holder in 1..=2 {
                stamps.push(Stamp { fence: Fence { generation, token }, holder: HolderId(Uuid::from_u128(holder)) });
            }
        }
    }
    stamps
}

/// The order of the sentences is the rule: our own settlement first, then the fence, then the state.
fn rule(mine: Stamp, seen: Seen) -> SettleOutcome {
    let key = |stamp: Stamp| (stamp.fence.generation, stamp.fence.token);
    let settled = seen.state == BatchState::Settled;
    let ours = seen.settled_by == Some(mine);
    let newer_registered = key(seen.unit) > key(mine);
    let token_given_twice = key(seen.unit) == key(mine) && seen.unit.holder != mine.holder;
    let never_registered = key(seen.unit) < key(mine);
    match (settled, ours) {
        (true, true) => SettleOutcome::Settled,
        _ if newer_registered || token_given_twice => SettleOutcome::Fenced { settled },
        (true, false) => SettleOutcome::AlreadySettled,
        (false, _) if never_registered => SettleOutcome::ClaimLost,
        (false, _) => SettleOutcome::NotClaimable { state: seen.state },
    }
}

#[test]
fn every_combination_is_classified_by_the_rule() {
    let mut met = std::collections::BTreeMap::new();
    for mine in stamps() {
        for unit in stamps() {
            for state in BatchState::ALL {
                for settled_by in stamps().into_iter().map(Some).chain([None]) {
                    let seen = Seen { state, settled_by, unit };
                    let outcome = classify(mine, seen);
                    assert_eq!(outcome, rule(mine, seen), "{mine:?} {seen:?}");
                    let name = format!("{outcome:?}");
                    let name = name.split(['{', ' ']).next().unwrap_or_default().to_owned();
                    *met.entry(name).or_insert(0) += 1;
                }
            }
        }
    }
    assert_eq!(met.keys().collect::<Vec<_>>(), ["AlreadySettled", "ClaimLost", "Fenced", "NotClaimable", "Settled"]);
}
