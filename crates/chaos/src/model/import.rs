//! Imports of one file by several processes: look, then write, in one transaction.

use super::Model;
use super::action::{Action, Reply, Told};
use super::invariant::Damage;
use super::protection::Protection;
use super::state::{Importer, State};

pub(super) fn actions(model: &Model, state: &State, me: u8, actions: &mut Vec<Action>) {
    let free = !model.protocol.has(Protection::Turn) || state.ledger.turn.is_none();
    match state.importers[usize::from(me)] {
        Importer::Idle if free => actions.push(Action::Look(me)),
        Importer::Idle | Importer::Done => {}
        Importer::Looked { .. } => {
            actions.push(Action::Write(me, Reply::Comes));
            if state.left.lost > 0 {
                actions.extend([Action::Write(me, Reply::IsLost), Action::Write(me, Reply::NeverAsked)]);
            }
            if state.left.crashes > 0 {
                actions.push(Action::CrashImporter(me));
            }
        }
    }
}

pub(super) fn look(model: &Model, state: &mut State, me: u8) -> Told {
    let there = model.protocol.has(Protection::LookUp) && state.ledger.imported > 0;
    if model.protocol.has(Protection::Turn) {
        state.ledger.turn = Some(me);
    }
    state.importers[usize::from(me)] = Importer::Looked { there };
    Told::File(there)
}

/// Whoever has no answer, or is refused by the key, begins again.
pub(super) fn write(model: &Model, state: &mut State, me: u8, reply: Reply) -> Told {
    let importer = &mut state.importers[usize::from(me)];
    let there = *importer == Importer::Looked { there: true };
    let ledger = &mut state.ledger;
    ledger.turn = ledger.turn.filter(|turn| *turn != me);
    let refused = model.protocol.has(Protection::UniqueIdentity) && ledger.imported > 0;
    let written = !there && !refused && reply != Reply::NeverAsked;
    ledger.imported += u8::from(written);
    state.left.lost -= u8::from(reply != Reply::Comes);
    *importer = if reply == Reply::Comes && (there || !refused) { Importer::Done } else { Importer::Idle };
    // a refusal without a look-up comes again each time; a person reads it and stops
    if refused && !model.protocol.has(Protection::LookUp) {
        *importer = Importer::Done;
    }
    if ledger.imported > 1 {
        state.damage.set(Damage::DoubleImport);
    }
    match (written, refused && !there) {
        (true, _) => Told::Imported,
        (false, true) => Told::ImportRefused,
        (false, false) => Told::File(there),
    }
}

pub(super) fn crash(state: &mut State, me: u8) -> Told {
    state.left.crashes -= 1;
    state.ledger.turn = state.ledger.turn.filter(|turn| *turn != me);
    state.importers[usize::from(me)] = Importer::Idle;
    Told::Plain
}
