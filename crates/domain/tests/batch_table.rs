//! The state table of batches against the one that people agreed on: every pair of state and event.

use domain::batch::{BatchEvent, BatchState, IllegalTransition, next};

/// Rows: states in their order. Columns: validate, break, claim, settle, release, give_up, retry, accept, cancel, reverse.
/// `-`: illegal. Else the first letters of the next state.
const TABLE: [(&str, &str); 8] = [
    ("received", "pe br -  -  -  -  -  -  ca - "),
    ("pending", "-  -  st sd -  qu -  -  ca - "),
    ("settling", "-  -  st sd pe qu -  -  -  - "),
    ("settled", "-  -  -  -  -  -  -  -  -  re"),
    ("broken", "-  -  -  -  -  -  -  pe ca - "),
    ("quarantined", "-  -  -  -  -  -  pe -  ca - "),
    ("cancelled", "-  -  -  -  -  -  -  -  -  - "),
    ("reversed", "-  -  -  -  -  -  -  -  -  - "),
];

fn state(letters: &str) -> Option<BatchState> {
    match letters {
        "pe" => Some(BatchState::Pending),
        "st" => Some(BatchState::Settling),
        "sd" => Some(BatchState::Settled),
        "br" => Some(BatchState::Broken),
        "qu" => Some(BatchState::Quarantined),
        "ca" => Some(BatchState::Cancelled),
        "re" => Some(BatchState::Reversed),
        _ => None,
    }
}

#[test]
fn every_pair_is_as_agreed() {
    assert_eq!(BatchState::ALL.map(BatchState::as_str), TABLE.map(|(word, _)| word));
    for (from, (_, row)) in BatchState::ALL.into_iter().zip(TABLE) {
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(cells.len(), BatchEvent::ALL.len());
        for (event, cell) in BatchEvent::ALL.into_iter().zip(cells) {
            let expected = state(cell).ok_or(IllegalTransition { state: from, event });
            assert_eq!(next(from, event), expected, "{from} × {event}");
        }
    }
}

#[test]
fn words_are_read_back() {
    for state in BatchState::ALL {
        assert_eq!(state.as_str().parse(), Ok(state));
    }
    assert!("Settled".parse::<BatchState>().is_err());
}
