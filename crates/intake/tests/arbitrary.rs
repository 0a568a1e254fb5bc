//! Whatever the bytes are: no panic, and either a summary or an error with a line. The same targets as `fuzz/`, without its
//! tools; `PROPTEST_CASES=100000` for a long run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{OWN, profile, profile_text, read, valid};
use intake::Profile;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One change of a file.
#[derive(Debug, Clone)]
enum Change {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index, usize),
    Truncate(Index),
    Copy(Index, Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let telling =
        select(vec![b"\n".to_vec(), b"\"".to_vec(), b",".to_vec(), b"9".to_vec(), b"-".to_vec(), b"\xef\xbb\xbf".to_vec()]);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
        (any::<Index>(), select(b"0123456789-.,;\"\n ".to_vec())).prop_map(|(at, byte)| Change::Flip(at, byte)),
        (any::<Index>(), telling).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (any::<Index>(), 1_usize..200).prop_map(|(at, length)| Change::Delete(at, length)),
        any::<Index>().prop_map(Change::Truncate),
        (any::<Index>(), any::<Index>(), 1_usize..300).prop_map(|(from, to, length)| Change::Copy(from, to, length)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let end = |at: usize, length: usize| (at + length).min(bytes.len());
    match change {
        Change::Flip(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Change::Insert(at, inserted) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, inserted.iter().copied());
        }
        Change::Delete(at, length) => {
            let at = at.index(bytes.len());
            bytes.drain(at..end(at, *length));
        }
        Change::Truncate(at) => bytes.truncate(at.index(bytes.len())),
        Change::Copy(from, to, length) => {
            let from = from.index(bytes.len());
            let copied = bytes[from..end(from, *length)].to_vec();
            let to = to.index(bytes.len());
            bytes.splice(to..to, copied);
        }
    }
}

/// What must hold of every reading, and what a second reading must repeat.
fn holds(bytes: &[u8], profile: &Profile) -> Result<(), TestCaseError> {
    let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count().max(bytes.len() / 94) as u64;
    match read(bytes, profile) {
        Ok((summary, items)) => {
            prop_assert_eq!(summary.items, items.len() as u64);
            prop_assert_eq!(summary.bytes, bytes.len() as u64);
            prop_assert!(items.iter().all(|staged| (staged.batch as usize) < summary.batches.len()));
            prop_assert!(items.iter().all(|staged| staged.item.net_minor().is_some() && !staged.item.dedupe_key.is_empty()));
            prop_assert!(items.iter().all(|staged| !staged.item.merchant.trim().is_empty()));
            for batch in 0..summary.batches.len() {
                let lines = items.iter().filter(|staged| staged.batch as usize == batch).map(|staged| staged.item.line_no);
                prop_assert!(lines.is_sorted_by(|one, next| one < next), "a batch keeps the order of its lines");
            }
            prop_assert!(summary.batches.iter().all(|batch| !batch.external_batch_id.trim().is_empty()));
            let again = read(bytes, profile).map(|(summary, _)| summary);
            prop_assert_eq!(again.ok(), Some(summary));
        }
        Err(error) => {
            let line = error.line();
            prop_assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{:?} of {}: {}", line, lines, error);
            prop_assert!(error.to_string().starts_with("file:"), "{}", error);
        }
    }
    Ok(())
}

/// The built-in ones, and those that use every other key.
fn any_profile() -> impl Strategy<Value = &'static str> {
    select(Profile::names().chain(OWN).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), name in any_profile()) {
        holds(&bytes, &profile(name))?;
    }

    #[test]
    fn any_text_after_a_valid_start(text in "[\\PC\n\"]{0,200}", at in any::<Index>(), name in any_profile()) {
        let mut bytes = valid(name);
        bytes.truncate(at.index(bytes.len()));
        bytes.extend(text.as_bytes());
        holds(&bytes, &profile(name))?;
    }

    #[test]
    fn a_changed_file(changes in prop::collection::vec(change(), 1..6), name in any_profile()) {
        let mut bytes = valid(name);
        changes.iter().for_each(|change| apply(&mut bytes, change));
        holds(&bytes, &profile(name))?;
    }

    /// No single changed digit of an amount goes unseen: the file is refused, or its batch is broken, or its digest is another.
    #[test]
    fn a_changed_byte_is_never_the_same_batch(at in any::<Index>(), by in 1_u8..=9) {
        let whole = valid("nacha");
        let digits: Vec<_> = whole.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit()).map(|(at, _)| at).collect();
        let at = digits[at.index(digits.len())];
        let mut bytes = whole.clone();
        bytes[at] = b'0' + (bytes[at] - b'0' + by) % 10;
        if let (Ok((before, _)), Ok((after, _))) = (read(&whole, &profile("nacha")), read(&bytes, &profile("nacha"))) {
            let amount = (30..=39).contains(&(at % 95 + 1)) && whole[at - at % 95] == b'6';
            prop_assert!(!amount || after.batches.iter().any(|batch| !batch.breaks.is_empty()));
            prop_assert_ne!(before.sha256, after.sha256);
        }
    }

    #[test]
    fn any_profile_text(changes in prop::collection::vec(change(), 1..6), name in any_profile()) {
        let mut bytes = profile_text(name).into_bytes();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        let text = String::from_utf8_lossy(&bytes);
        match Profile::parse(&text, "any") {
            // a profile that is accepted can be read with
            Ok(profile) => holds(&valid(name), &profile)?,
            Err(error) => prop_assert!(error.to_string().starts_with("profile any"), "{}", error),
        }
    }
}
