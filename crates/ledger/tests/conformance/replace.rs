//! M18: a corrected file. What it is not the same as is cancelled or reversed, and the file's is the next revision, in one
//! transaction; after the run the books are those of a ledger that never had anything else.

use crate::corrections::{balances, reverse};
use crate::fixture::{Books, Draft, Named, Place, UNIT, batch, batches, changed, claimed_ids, operator};
use crate::operate::{audited, quarantine};
use crate::postings::random_batch;
use domain::batch::BatchState;
use domain::ids::BatchId;
use domain::outcome::SettleOutcome;
use domain::totals::Remits;
use ledger::LedgerError;
use ledger::import::ImportOutcome;
use ledger::operate::RevisionRow;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::time::Duration;

pub const EVERY: &[Named] = tests![
    m18_a_broken_batch_is_replaced,
    m18_a_cancelled_batch_is_replaced,
    m18_a_settled_batch_is_replaced,
    pending_and_quarantined_batches_are_cancelled,
    a_batch_that_is_being_settled_stops_the_file,
    the_same_content_is_left_alone,
    what_the_ledger_does_not_have_goes_in,
    a_correction_of_a_correction,
    content_that_was_replaced_comes_back_only_by_a_replacement,
    a_correction_that_does_not_foot_is_broken,
    lines_move_between_the_batches_of_a_file,
    m6_a_replacement_that_fails_leaves_nothing,
    after_the_run_the_books_are_those_of_the_corrected_file,
    four_replacements_by_one_file_at_once,
    a_replacement_beside_workers,
];

fn one(gross: i64) -> Draft {
    batch("A").charge("anna", gross, 0).keyed("psp-1")
}

/// A batch whose remittance is not there.
fn unpaid(gross: i64) -> Draft {
    one(gross).remits(Remits::ByLine, 0)
}

async fn replaced(books: &Books, draft: Draft) -> ImportOutcome {
    books.replace(&[draft]).await.expect("replaced")
}

/// Settles whatever is due.
async fn run(books: &Books) {
    let stamp = books.hold(UNIT).await;
    loop {
        let ids = claimed_ids(&books.claim(stamp, 1_000).await);
        if ids.is_empty() {
            return;
        }
        let outcomes = books.settle(stamp, &ids).await.expect("an answer");
        assert!(outcomes.iter().all(|(_, outcome)| *outcome == SettleOutcome::Settled), "{outcomes:?}");
    }
}

/// Old and new as the outcome, both batches and the audit log tell them; the new one is pending.
async fn assert_replaced(books: &Books, outcome: &ImportOutcome, old: BatchId, state: BatchState) -> BatchId {
    let [pair] = &outcome.replaced[..] else { panic!("{outcome:?}") };
    let new = outcome.batches[0].id;
    assert_eq!((pair.old_id, pair.old_state, pair.new_id), (old, state, new));
    assert_eq!((outcome.batches[0].state, outcome.batches[0].revision), (BatchState::Pending, pair.new_revision));
    assert_eq!(pair.new_revision, pair.old_revision + 1);
    let (before, after) = (books.ledger.batch(old).await.expect("the old one"), books.ledger.batch(new).await.expect("the new"));
    assert_eq!((before.row.state, before.row.revision, after.row.revision), (state, pair.old_revision, pair.new_revision));
    let row = |id, revision, state| Some(RevisionRow { id, revision, state });
    assert_eq!(before.replaced_by, row(new, pair.new_revision, BatchState::Pending));
    assert_eq!(after.replaces, row(old, pair.old_revision, state));
    for decisions in [before.decisions, after.decisions] {
        let last = decisions.last().expect("a decision");
        assert_eq!((last.action.as_str(), last.operator.as_str(), last.reason.as_str()), ("batch replace", "olga", "a test"));
    }
    books.assert_books_hold().await;
    new
}

async fn m18_a_broken_batch_is_replaced(place: Place) {
    let books = place.open().await;
    let wrong = books.take_in(&[unpaid(10_00)]).await[0];
    assert_eq!(books.state(wrong).await, "broken 0");
    let error = books.import(&[one(12_00)]).await.expect_err("other content").to_string();
    assert!(error.contains("settled batch replace --file day.csv") && error.contains("is broken"), "{error}");
    let new = assert_replaced(&books, &replaced(&books, one(12_00)).await, wrong, BatchState::Cancelled).await;
    let said = |action, id| format!("olga, {action}, {id}, a test");
    let expected = [said("batch cancel", wrong), said("batch replace", wrong), said("batch replace", new)];
    assert_eq!(audited(&books).await, expected);
    run(&books).await;
    assert_eq!(balances(&books).await, ["EUR clearing 1200", "EUR merchant_payable:anna -1200"].map(str::to_owned).into());
    books.assert_books_hold().await;
}

/// Cancelled by hand before, it takes no second decision to make room.
async fn m18_a_cancelled_batch_is_replaced(place: Place) {
    let books = place.open().await;
    let wrong = books.take_in(&[unpaid(10_00)]).await[0];
    books.ledger.cancel_batch(wrong, &operator()).await.expect("cancelled");
    assert_replaced(&books, &replaced(&books, one(12_00)).await, wrong, BatchState::Cancelled).await;
    assert_eq!(audited(&books).await.iter().filter(|line| line.contains("batch cancel")).count(), 1);
}

async fn m18_a_settled_batch_is_replaced(place: Place) {
    let books = place.open().await;
    let wrong = books.settled(&[one(10_00)]).await[0];
    let new = assert_replaced(&books, &replaced(&books, one(12_00)).await, wrong, BatchState::Reversed).await;
    assert_eq!(balances(&books).await, [].into(), "as before the settlement");
    let keys = "SELECT entry_key FROM journal_entry ORDER BY id";
    assert_eq!(books.raw.texts(keys).await, [format!("settle:{wrong}:1:EUR"), format!("reverse:{wrong}:1:EUR")]);
    run(&books).await;
    assert_eq!(balances(&books).await, ["EUR clearing 1200", "EUR merchant_payable:anna -1200"].map(str::to_owned).into());
    assert_eq!(books.raw.texts(keys).await[2], format!("settle:{new}:2:EUR"));
    books.assert_books_hold().await;
}

async fn pending_and_quarantined_batches_are_cancelled(place: Place) {
    for quarantined in [false, true] {
        let books = place.open().await;
        let draft = |gross| one(gross).named(if quarantined { "Q" } else { "P" }).keyed(&format!("{quarantined}"));
        let wrong = books.take_in(&[draft(10_00)]).await[0];
        if quarantined {
            quarantine(&books, wrong).await;
        }
        assert_replaced(&books, &replaced(&books, draft(12_00)).await, wrong, BatchState::Cancelled).await;
        run(&books).await;
    }
}

/// Nothing of the file goes in, nothing else of it is taken back, and the text says what to do.
async fn a_batch_that_is_being_settled_stops_the_file(place: Place) {
    let books = place.open().await;
    books.settled(&[batch("S").charge("anna", 1_00, 0)]).await;
    let (stamp, ids) = books.claimed(&[one(10_00)]).await;
    let before = books.raw.tables().await;
    let file = [batch("NEW").charge("anna", 1_00, 0), batch("S").charge("anna", 2_00, 0), one(12_00)];
    let error = books.replace(&file).await.expect_err("it is being settled");
    assert!(matches!(error, LedgerError::BeingSettled(_)), "{error:?}");
    for part in ["day.csv:3:", "\"A\"", "is settling", "nothing was written", "Try again when the run is over"] {
        assert!(error.to_string().contains(part), "{part:?} is not in {error}");
    }
    assert_eq!(before, books.raw.tables().await);
    books.settle(stamp, &ids).await.expect("settled");
    let outcome = books.replace(&file).await.expect("replaced");
    assert_eq!(outcome.replaced.iter().map(|pair| pair.old_state).collect::<Vec<_>>(), [BatchState::Reversed; 2]);
    books.assert_books_hold().await;
}

async fn the_same_content_is_left_alone(place: Place) {
    let books = place.open().await;
    let ids = books.settled(&batches(2)).await;
    let before = books.raw.tables().await;
    let outcome = books.replace(&batches(2)).await.expect("an answer");
    assert_eq!((outcome.replaced, outcome.items_accepted, outcome.items_duplicate), (vec![], 0, 4));
    assert!(outcome.batches.iter().all(|batch| batch.already_there && batch.state == BatchState::Settled));
    assert_eq!(outcome.batches.iter().map(|batch| batch.id).collect::<Vec<_>>(), ids);
    assert_eq!(before, books.raw.tables().await);
}

async fn what_the_ledger_does_not_have_goes_in(place: Place) {
    let books = place.open().await;
    let known = books.settled(&batches(2)).await;
    let mut file = batches(3);
    file[1] = file[1].clone().charge("carl", 5_00, 0);
    let outcome = books.replace(&file).await.expect("replaced");
    let seen: Vec<_> =
        outcome.batches.iter().map(|batch| (batch.external_batch_id.as_str(), batch.already_there, batch.revision)).collect();
    assert_eq!(seen, [("B0000", true, 1), ("B0001", false, 2), ("B0002", false, 1)]);
    assert_eq!((outcome.items_accepted, outcome.items_duplicate), (5, 2));
    assert_eq!(outcome.replaced.iter().map(|pair| pair.old_id).collect::<Vec<_>>(), known[1..]);
    assert_eq!(books.raw.count("audit_log").await, 3, "reversed, replaced, replaces");
    run(&books).await;
    books.assert_books_hold().await;
}

async fn a_correction_of_a_correction(place: Place) {
    let books = place.open().await;
    let first = books.settled(&[one(10_00)]).await[0];
    let second = assert_replaced(&books, &replaced(&books, one(12_00)).await, first, BatchState::Reversed).await;
    run(&books).await;
    let third = assert_replaced(&books, &replaced(&books, one(11_00)).await, second, BatchState::Reversed).await;
    run(&books).await;
    let middle = books.ledger.batch(second).await.expect("the batch");
    assert_eq!(middle.replaces.map(|row| row.id), Some(first));
    assert_eq!(middle.replaced_by.map(|row| (row.id, row.revision)), Some((third, 3)));
    assert_eq!(balances(&books).await, ["EUR clearing 1100", "EUR merchant_payable:anna -1100"].map(str::to_owned).into());
    let told: Vec<_> = books.ledger.verify().await.expect("a report").reversals.iter().map(|told| told.batch).collect();
    assert_eq!(told, [first, second]);
    books.assert_books_hold().await;
}

/// The file of before, taken in with all the others of its folder, undoes nothing; an operator may.
async fn content_that_was_replaced_comes_back_only_by_a_replacement(place: Place) {
    let books = place.open().await;
    let first = books.settled(&[one(10_00)]).await[0];
    let second = replaced(&books, one(12_00)).await.batches[0].id;
    let before = books.raw.tables().await;
    let again = books.import(&[one(10_00)]).await.expect("an import");
    assert_eq!((again.batches[0].id, again.batches[0].already_there, again.warnings.len()), (first, true, 1));
    assert_eq!(before, books.raw.tables().await);
    let third = assert_replaced(&books, &replaced(&books, one(10_00)).await, second, BatchState::Cancelled).await;
    reverse(&books, third).await.expect_err("it is not settled");
    run(&books).await;
    assert_eq!(balances(&books).await, ["EUR clearing 1000", "EUR merchant_payable:anna -1000"].map(str::to_owned).into());
}

async fn a_correction_that_does_not_foot_is_broken(place: Place) {
    let books = place.open().await;
    let wrong = books.settled(&[one(10_00)]).await[0];
    let outcome = replaced(&books, unpaid(12_00)).await;
    assert_eq!((outcome.batches[0].state, outcome.replaced[0].old_state), (BatchState::Broken, BatchState::Reversed));
    assert!(outcome.batches[0].break_reason.as_deref().is_some_and(|why| why.contains("12.00")), "{outcome:?}");
    assert_eq!((books.state(wrong).await.as_str(), balances(&books).await), ("reversed 1", [].into()));
    books.assert_books_hold().await;
    // a line that another live batch holds breaks it as well
    let other = books.settled(&[batch("other").charge("anna", 1_00, 0).keyed("psp-2")]).await[0];
    let repeats = replaced(&books, one(12_00).charge("anna", 1_00, 0).keyed("psp-2")).await;
    let why = repeats.batches[0].break_reason.clone().expect("a reason");
    assert_eq!((why, repeats.items_duplicate), (format!("line 2 repeats \"psp-2\" of batch {other}, line 1"), 1));
    books.assert_books_hold().await;
}

/// The identities of all that goes are free before any of what comes takes its own.
async fn lines_move_between_the_batches_of_a_file(place: Place) {
    let books = place.open().await;
    let draft = |name: &str, keys: &[&str]| keys.iter().fold(batch(name), |draft, key| draft.charge("anna", 1_00, 0).keyed(key));
    books.settled(&[draft("A", &["1", "2"]), draft("B", &["3"])]).await;
    let outcome = books.replace(&[draft("A", &["1"]), draft("B", &["2", "3"])]).await.expect("replaced");
    assert!(outcome.batches.iter().all(|batch| batch.state == BatchState::Pending), "{outcome:?}");
    assert_eq!((outcome.replaced.len(), outcome.items_duplicate), (2, 0));
    run(&books).await;
    books.assert_books_hold().await;
}

/// The very last statement is refused: the reversal, the new revision and the lines of the log are gone with it.
async fn m6_a_replacement_that_fails_leaves_nothing(place: Place) {
    let books = place.open().await;
    books.settled(&[one(10_00)]).await;
    let (refuse, allow) = if place.is_postgres() {
        (
            "ALTER TABLE audit_log ADD CONSTRAINT refused CHECK (action <> 'batch replace')",
            "ALTER TABLE audit_log DROP CONSTRAINT refused",
        )
    } else {
        (
            "CREATE TRIGGER refused BEFORE INSERT ON audit_log WHEN NEW.action = 'batch replace'
                BEGIN SELECT RAISE(ABORT, 'refused'); END",
            "DROP TRIGGER refused",
        )
    };
    books.raw.run(refuse).await.expect("refused from now on");
    let before = books.raw.tables().await;
    let error = books.replace(&[one(12_00), batch("NEW").charge("bert", 1_00, 0)]).await.expect_err("refused");
    assert!(matches!(error, LedgerError::Database(_)), "{error:?}");
    assert_eq!(changed(&before, &books.raw.tables().await), [].into());
    books.raw.run(allow).await.expect("allowed again");
    replaced(&books, one(12_00)).await;
    books.assert_books_hold().await;
}

/// Of every kind, fee mode and currency, and whatever had become of the batches of the wrong file. The other ledger is on SQLite,
/// and never had another file.
async fn after_the_run_the_books_are_those_of_the_corrected_file(place: Place) {
    let books = place.open().await;
    let seed = 20_260_402;
    let mut random = StdRng::seed_from_u64(seed);
    let mut drafts = || -> Vec<Draft> { (0..16).map(|n| random_batch(&mut random, &format!("seed {seed} batch {n}"))).collect() };
    let (wrong, right) = (drafts(), drafts());
    books.settled(&wrong[..8]).await;
    let ids = books.take_in(&wrong[8..12]).await;
    books.ledger.cancel_batch(ids[0], &operator()).await.expect("cancelled");
    let outcome = books.replace(&right).await.expect("replaced");
    assert!(outcome.replaced.len() >= 10, "{outcome:?}");
    run(&books).await;
    let other = Place::sqlite().open().await;
    other.settled(&right).await;
    assert_eq!(balances(&books).await, balances(&other).await);
    books.assert_books_hold().await;
}

async fn four_replacements_by_one_file_at_once(place: Place) {
    let books = place.open().await;
    books.settled(&batches(10)).await;
    let corrected = || batches(10).into_iter().map(|draft| draft.charge("carl", 5_00, 0)).collect::<Vec<_>>();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (books, corrected) = (books.clone(), corrected());
            tokio::spawn(async move { books.replace(&corrected).await })
        })
        .collect();
    let mut replaced = 0;
    for task in tasks {
        replaced += task.await.expect("no panic").expect("an answer").replaced.len();
    }
    assert_eq!((replaced, books.raw.count("settlement_batch").await, books.raw.count("journal_entry").await), (10, 20, 20));
    run(&books).await;
    books.assert_books_hold().await;
}

/// Workers settle the batches while they are replaced. Whatever state each was met in, the lines are settled once.
async fn a_replacement_beside_workers(place: Place) {
    let books = place.open().await;
    for round in 0..10 {
        let drafts = |gross| -> Vec<_> {
            (0..6).map(|n| batch(&format!("R{round}B{n}")).charge("anna", gross, 0).charge("bert", 1, 0)).collect()
        };
        books.take_in(&drafts(10_00)).await;
        let working = tokio::spawn({
            let books = books.clone();
            async move {
                let stamp = books.hold(UNIT).await;
                loop {
                    let ids = claimed_ids(&books.claim(stamp, 2).await);
                    if ids.is_empty() {
                        return;
                    }
                    let _ = books.settle(stamp, &ids).await.expect("an answer");
                }
            }
        });
        loop {
            match books.replace(&drafts(20_00)).await {
                Ok(_) => break,
                Err(LedgerError::BeingSettled(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{error:?}"),
            }
        }
        working.await.expect("no panic");
        run(&books).await;
        let gross = 20_00 * 6 * (round + 1);
        assert!(balances(&books).await.contains(&format!("EUR merchant_payable:anna -{gross}")), "{:?}", balances(&books).await);
    }
    books.assert_books_hold().await;
}
