//! A run of the model in words: one line per step.

use super::Model;
use super::action::{Action, Reply, Told};
use super::protection::Protection;
use super::state::State;
use domain::outcome::SettleOutcome;
use serde::Serialize;
use stateright::Model as _;

/// What should happen somewhere, or a model that holds holds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// A batch was settled.
    Settled,
    /// A batch that another had in hand was claimed.
    TakenOver,
    /// A registration was refused.
    RefusedAtRegister,
    /// A claim was refused.
    RefusedAtClaim,
    /// A settlement was refused.
    RefusedAtSettle,
    /// A settlement whose answer was lost was found.
    ReadBack,
    /// What could not be settled was handed back.
    HandedBack,
    /// A holder was not proven.
    NotProven,
    /// A holder saw that its lease was gone.
    LossNoticed,
    /// A generation was adopted.
    Adopted,
    /// A source that went back was stopped.
    SourceStopped,
    /// A file was imported.
    Imported,
    /// A file was there already.
    AlreadyThere,
}

impl Happening {
    /// All.
    pub const ALL: [Happening; 13] = [
        Happening::Settled,
        Happening::TakenOver,
        Happening::RefusedAtRegister,
        Happening::RefusedAtClaim,
        Happening::RefusedAtSettle,
        Happening::ReadBack,
        Happening::HandedBack,
        Happening::NotProven,
        Happening::LossNoticed,
        Happening::Adopted,
        Happening::SourceStopped,
        Happening::Imported,
        Happening::AlreadyThere,
    ];
}

pub(super) fn happening(action: Action, told: Told) -> Option<Happening> {
    Some(match (action, told) {
        (Action::Settle(..) | Action::Finish(_), Told::Settled(_)) => Happening::Settled,
        (_, Told::Claimed(_, true)) => Happening::TakenOver,
        (_, Told::Refused(..)) => Happening::RefusedAtRegister,
        (_, Told::ClaimFenced) => Happening::RefusedAtClaim,
        (_, Told::Outcome(SettleOutcome::Fenced { .. })) => Happening::RefusedAtSettle,
        (_, Told::Outcome(SettleOutcome::Settled)) => Happening::ReadBack,
        (_, Told::HandedBack(1..)) => Happening::HandedBack,
        (Action::Prove(_), Told::NotOwner) => Happening::NotProven,
        (Action::NoticeLoss(_), _) => Happening::LossNoticed,
        (Action::Adopt, _) => Happening::Adopted,
        (_, Told::SourceStopped) => Happening::SourceStopped,
        (_, Told::Imported) => Happening::Imported,
        (_, Told::File(true)) => Happening::AlreadyThere,
        _ => return None,
    })
}

/// One line of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// Which step, from 1.
    pub t: usize,
    /// Who takes it.
    pub who: String,
    /// What happens.
    pub event: String,
}

/// Tells these steps from the beginning, and at the end the damage.
#[must_use]
pub fn timeline(model: &Model, actions: &[Action]) -> Vec<Turn> {
    let mut turns = Vec::new();
    let Some(mut state) = model.init_states().pop() else { return turns };
    for action in actions {
        let before = state.clone();
        let told = model.step(&mut state, *action);
        let mut event = in_words(&before, *action, told);
        if let Some(damage) = super::Damage::ALL.into_iter().find(|damage| !model.spares(&state, *damage)) {
            event = format!("{event} — {}", damage.as_str().to_uppercase());
        }
        turns.push(Turn { t: turns.len() + 1, who: who(*action), event });
    }
    turns
}

fn who(action: Action) -> String {
    let name = |first: u8, number: u8| char::from(first + number).to_string();
    match action {
        Action::ReadGeneration(me) | Action::Prove(me) | Action::Doubt(me) | Action::Finish(me) => name(b'A', me),
        Action::ReadBack(me) | Action::NoticeLoss(me) | Action::Release(me) | Action::Crash(me) => name(b'A', me),
        Action::Acquire(me, _) | Action::Mint(me, _) | Action::Register(me, _) => name(b'A', me),
        Action::Claim(me, _) | Action::Settle(me, _) | Action::HandBack(me, _) => name(b'A', me),
        Action::Expire | Action::Forget | Action::Restore => "lock".to_owned(),
        Action::Adopt => "operator".to_owned(),
        Action::Look(me) | Action::Write(me, _) | Action::CrashImporter(me) => format!("importer {}", me + 1),
    }
}

fn in_words(before: &State, action: Action, told: Told) -> String {
    let (asked, reply) = asked(before, action);
    let came = came(told);
    match reply {
        Reply::Comes if came.is_empty() => asked,
        Reply::Comes => format!("{asked}: {came}"),
        Reply::IsLost if came.is_empty() => format!("{asked}; the answer is lost"),
        Reply::IsLost => format!("{asked}: {came}; the answer is lost"),
        Reply::NeverAsked => format!("{asked}; the request is lost"),
        Reply::Fails => format!("{asked}: {came}"),
    }
}

fn asked(before: &State, action: Action) -> (String, Reply) {
    let whose = || before.lock.memory.held.and_then(|held| before.workers.iter().position(|worker| worker.nonce == held));
    let (asked, reply) = match action {
        Action::ReadGeneration(_) => ("reads the generation", Reply::Comes),
        Action::Acquire(_, reply) => ("acquires the lease", reply),
        Action::Mint(_, reply) => ("mints a token", reply),
        Action::Prove(_) => ("asks whether the lease is still its own", Reply::Comes),
        Action::Register(_, reply) => ("registers", reply),
        Action::Doubt(_) => ("was refused with an external token, and asks again whether the lease is its own", Reply::Comes),
        Action::Claim(_, reply) => ("claims", reply),
        Action::Settle(_, reply) => ("settles", reply),
        Action::HandBack(_, reply) => ("hands its batches back", reply),
        Action::Finish(_) => ("marks the batch as settled, in a transaction of its own", Reply::Comes),
        Action::ReadBack(_) => ("reads back what became of it", Reply::Comes),
        Action::NoticeLoss(_) => ("sees that the lease is gone, and gives up", Reply::Comes),
        Action::Release(_) => ("releases", Reply::Comes),
        Action::Crash(_) => ("is killed, and started again", Reply::Comes),
        Action::Expire => match whose() {
            Some(worker) => {
                return (format!("{}'s lease expires", char::from(b'A' + u8::try_from(worker).unwrap_or(0))), Reply::Comes);
            }
            None => ("a lease of nobody expires", Reply::Comes),
        },
        Action::Forget => ("forgets everything", Reply::Comes),
        Action::Restore => ("is restored to what it was after its first grant", Reply::Comes),
        Action::Adopt => ("fence adopt", Reply::Comes),
        Action::Look(_) => ("looks for the file", Reply::Comes),
        Action::Write(_, reply) => ("imports", reply),
        Action::CrashImporter(_) => ("is killed, and started again", Reply::Comes),
    };
    (asked.to_owned(), reply)
}

fn came(told: Told) -> String {
    match told {
        Told::Generation(generation) => format!("it is {generation}"),
        Told::Granted(Some(token)) => format!("granted, with token {token}"),
        Told::Granted(None) => "granted".to_owned(),
        Told::Token(token) => format!("it is {token}"),
        Told::Owner => "yes".to_owned(),
        Told::NotOwner => "no".to_owned(),
        Told::Registered(fence) => format!("the ledger has {fence} now"),
        Told::Refused(mine, stored) => format!("{mine} is refused, the ledger has {}", stored.fence),
        Told::Raised(mine, stored) => format!("{mine} is of an old generation, the ledger has {}", stored.fence),
        Told::SourceStopped => "yes, so its tokens went back: the source is stopped until somebody adopts one".to_owned(),
        Told::Claimed(0, _) => "nothing is due".to_owned(),
        Told::Claimed(batches, false) => bits(batches),
        Told::Claimed(batches, true) => format!("{}, which another had in hand", bits(batches)),
        Told::ClaimFenced => "refused, a newer holder has registered".to_owned(),
        Told::ClaimLost => "refused, the ledger does not know this fence".to_owned(),
        Told::Settled(batches) => format!("{} settled", bits(batches)),
        Told::EffectPosted(batches) => format!("the effect of {} is posted, its state not yet changed", bits(batches)),
        Told::NothingSettled => "nothing is written".to_owned(),
        Told::KeyTaken => "the key of the entry is there already".to_owned(),
        Told::Failed => "the database refuses it, nothing is written".to_owned(),
        Told::HandedBack(0) => "none is its own any more".to_owned(),
        Told::HandedBack(batches) => bits(batches),
        Told::Outcome(outcome) => outcome_in_words(outcome),
        Told::File(true) => "it is there".to_owned(),
        Told::File(false) => "it is not there".to_owned(),
        Told::Imported => "written".to_owned(),
        Told::ImportRefused => "the unique key refuses it".to_owned(),
        Told::LeaseFree => "the lease is free".to_owned(),
        Told::ReleasedAnothers => "and that was another's lease".to_owned(),
        Told::NotHeld => "it was not held any more".to_owned(),
        Told::Plain => String::new(),
    }
}

fn outcome_in_words(outcome: SettleOutcome) -> String {
    match outcome {
        SettleOutcome::Settled => "settled, by itself".to_owned(),
        SettleOutcome::AlreadySettled => "settled, by another".to_owned(),
        SettleOutcome::Fenced { settled: true } => "refused, and another has settled it".to_owned(),
        SettleOutcome::Fenced { settled: false } => "refused".to_owned(),
        SettleOutcome::ClaimLost => "the ledger does not know this fence".to_owned(),
        SettleOutcome::NotClaimable { state } => format!("still {state}"),
    }
}

fn bits(batches: u8) -> String {
    let numbers: Vec<String> = (0..8).filter(|n| batches & (1 << n) != 0).map(|n| (n + 1).to_string()).collect();
    format!("batch {}", numbers.join(" and "))
}

/// What was taken away, in words.
pub(super) fn away(protections: &[Protection]) -> String {
    match protections {
        [] => "nothing".to_owned(),
        some => some.iter().map(|protection| protection.as_str()).collect::<Vec<_>>().join(" + "),
    }
}
