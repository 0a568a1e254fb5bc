//! Taking a settled batch back: what it posted is mirrored, once, by somebody who said why, and nothing else moves.

use crate::fixture::{Books, LIMITS, Named, Place, UNIT, batch, batches, changed, claimed_ids, day, holder, operator};
use crate::in_flight::{PATIENCE, blocking};
use crate::operate::audited;
use crate::postings::random_batch;
use domain::batch::{BatchEvent, BatchState, IllegalTransition};
use domain::idempotency::{reverse_entry_key, settle_entry_key};
use domain::ids::BatchId;
use domain::item::ItemKind;
use domain::outcome::SettleOutcome;
use domain::totals::Remits;
use ledger::operate::Operator;
use ledger::{Guard, LedgerError};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeSet;
use std::time::Duration;

pub const EVERY: &[Named] = tests![
    a_reversal_mirrors_what_was_posted,
    balances_are_as_before_the_settlement,
    a_batch_without_an_entry_is_reversed,
    a_reversed_batch_is_shown_with_what_took_it_back,
    a_reversed_batch_is_not_settled_again,
    the_lines_of_a_reversed_batch_may_come_again,
    m6_a_reversal_that_fails_leaves_nothing,
    m3_a_reversal_that_leaves_64_bits_is_refused,
    one_of_many_operators_reverses,
    a_cancel_is_no_way_to_take_a_settlement_back,
    a_reversal_waits_for_the_commit_in_flight,
    a_reversal_beside_settlements_of_its_unit,
    a_reversal_beside_imports_of_its_lines,
];
pub const POSTGRES: &[Named] = tests![a_reversal_waits_for_an_import];

/// What each account is owed or owes, where it is not nothing.
pub async fn balances(books: &Books) -> BTreeSet<String> {
    let balance = "SELECT a.currency || ' ' || a.code || ' ' || (sum(debit_minor) - sum(credit_minor))
        FROM account_balance b JOIN account a ON a.id = b.account_id GROUP BY a.currency, a.code
        HAVING sum(debit_minor) <> sum(credit_minor)";
    BTreeSet::from_iter(books.raw.texts(balance).await)
}

pub async fn reverse(books: &Books, id: BatchId) -> Result<(), LedgerError> {
    books.ledger.reverse_batch(id, &operator()).await
}

async fn a_reversal_mirrors_what_was_posted(place: Place) {
    let books = place.open().await;
    let draft = batch("A").charge("anna", 10_00, 30).line("JPY", ItemKind::Charge, "anna", 500, 0).remittance(9_70);
    let ids = books.settled(&[draft.remits(Remits::ByLine, 500), batch("B").charge("anna", 1_00, 0)]).await;
    let before = books.raw.tables().await;
    reverse(&books, ids[0]).await.expect("reversed");
    let touched = ["account_balance", "audit_log", "journal_entry", "posting", "settled_item", "settlement_batch"];
    assert_eq!(changed(&before, &books.raw.tables().await), touched.map(str::to_owned).into());
    assert_eq!(books.state(ids[0]).await, "reversed 1");
    assert_eq!(audited(&books).await, [format!("olga, batch reverse, {}, a test", ids[0])]);
    let pairs = "SELECT r.entry_key || ' of ' || e.entry_key || ' in ' || r.unit || ' by ' || r.fence_token
        FROM journal_entry r JOIN journal_entry e ON e.id = r.reverses_entry_id WHERE r.kind = 'reverse' ORDER BY r.id";
    let pair = |code| format!("{} of {} in -1 by 0", reverse_entry_key(ids[0], 1, code), settle_entry_key(ids[0], 1, code));
    assert_eq!(books.raw.texts(pairs).await, [pair("EUR"), pair("JPY")]);
    let detail = books.ledger.batch(ids[0]).await.expect("the batch");
    let posted = |rows: &[ledger::operate::PostingRow], turned: bool| -> BTreeSet<_> {
        let side = |side: &str| if turned == (side == "D") { "C" } else { "D" };
        rows.iter().map(|row| (row.currency.clone(), row.account.clone(), side(&row.side), row.amount_minor)).collect()
    };
    assert_eq!(posted(&detail.postings, false), posted(&detail.reversal, true));
    assert_eq!(books.raw.count(&format!("settled_item WHERE batch_id = {}", ids[0])).await, 0);
    books.assert_books_hold().await;
}

/// Of every kind, fee mode and currency; whatever was settled before and beside them.
async fn balances_are_as_before_the_settlement(place: Place) {
    let books = place.open().await;
    let seed = 20_260_401;
    let mut random = StdRng::seed_from_u64(seed);
    let mut drafts = |from: u32| -> Vec<_> {
        (from..from + 12).map(|n| random_batch(&mut random, &format!("seed {seed} batch {n}"))).collect()
    };
    let (stay, go) = (drafts(0), drafts(100));
    books.settled(&stay).await;
    let before = balances(&books).await;
    let ids = books.settled(&go).await;
    assert_ne!(before, balances(&books).await);
    for id in ids {
        reverse(&books, id).await.expect("reversed");
    }
    assert_eq!(before, balances(&books).await);
    books.assert_books_hold().await;
}

async fn a_batch_without_an_entry_is_reversed(place: Place) {
    let books = place.open().await;
    let ids = books.settled(&[batch("no lines"), batch("zero").charge("anna", 0, 0)]).await;
    for id in &ids {
        reverse(&books, *id).await.expect("reversed");
        assert_eq!(books.state(*id).await, "reversed 1");
    }
    assert_eq!((books.raw.count("journal_entry").await, books.raw.count("settled_item").await), (0, 0));
    books.assert_books_hold().await;
}

async fn a_reversed_batch_is_shown_with_what_took_it_back(place: Place) {
    let books = place.open().await;
    let id = books.settled(&batches(1)).await[0];
    assert_eq!(books.ledger.batch(id).await.expect("the batch").reversal, []);
    reverse(&books, id).await.expect("reversed");
    let detail = books.ledger.batch(id).await.expect("the batch");
    assert_eq!((detail.row.state, detail.settled_at.is_some()), (BatchState::Reversed, true));
    let keys = |rows: &[ledger::operate::PostingRow]| rows.iter().map(|row| row.entry_key.clone()).collect::<BTreeSet<_>>();
    assert_eq!(keys(&detail.postings), [settle_entry_key(id, 1, "EUR")].into());
    assert_eq!(keys(&detail.reversal), [reverse_entry_key(id, 1, "EUR")].into());
    let said: Vec<_> = detail.decisions.iter().map(|d| (d.action.as_str(), d.operator.as_str(), d.reason.as_str())).collect();
    assert_eq!(said, [("batch reverse", "olga", "a test")]);
    assert_eq!((detail.replaces, detail.replaced_by), (None, None));
}

async fn a_reversed_batch_is_not_settled_again(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(2)).await;
    books.settle(stamp, &ids).await.expect("settled");
    reverse(&books, ids[0]).await.expect("reversed");
    let before = books.raw.tables().await;
    let reversed = SettleOutcome::NotClaimable { state: BatchState::Reversed };
    assert_eq!(books.settle(stamp, &ids[..1]).await.expect("an answer"), [(ids[0], reversed)]);
    assert_eq!(before, books.raw.tables().await);
    let next = books.hold(UNIT).await;
    assert_eq!(claimed_ids(&books.claim(next, 10).await), []);
    assert_eq!(books.settle(next, &ids[..1]).await.expect("an answer"), [(ids[0], reversed)]);
    books.assert_books_hold().await;
}

/// In another batch. The batch itself does not come again because its file does: that takes a person.
async fn the_lines_of_a_reversed_batch_may_come_again(place: Place) {
    let books = place.open().await;
    let draft = batch("A").charge("anna", 10_00, 0).keyed("psp-1");
    let id = books.settled(std::slice::from_ref(&draft)).await[0];
    reverse(&books, id).await.expect("reversed");
    let before = books.raw.tables().await;
    let again = books.import(std::slice::from_ref(&draft)).await.expect("an import");
    let batch = &again.batches[0];
    assert_eq!((batch.id, batch.state, batch.already_there, again.items_accepted), (id, BatchState::Reversed, true, 0));
    assert!(again.warnings[0].contains("1 of its batches were taken back"), "{:?}", again.warnings);
    assert!(again.warnings[0].contains("batch replace --file day.csv"), "{:?}", again.warnings);
    assert_eq!(before, books.raw.tables().await);
    books.settled(&[draft.named("B")]).await;
    books.assert_books_hold().await;
}

/// The last thing a reversal writes is the line in the audit log, which refuses one without a reason.
async fn m6_a_reversal_that_fails_leaves_nothing(place: Place) {
    let books = place.open().await;
    let id = books.settled(&batches(1)).await[0];
    let before = books.raw.tables().await;
    let silent = Operator { reason: String::new(), ..operator() };
    let error = books.ledger.reverse_batch(id, &silent).await.expect_err("no reason");
    assert!(matches!(error, LedgerError::Database(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    reverse(&books, id).await.expect("reversed");
    books.assert_books_hold().await;
}

/// Each fits its unit's stripe, and both together do not fit that of operators: not at once, by one file, and not one by one.
async fn m3_a_reversal_that_leaves_64_bits_is_refused(place: Place) {
    let books = place.open_as(2, Guard::RowLock).await;
    let huge = |name: &str| batch(name).charge("anna", i64::MAX - 5, 0);
    let mut settled = Vec::new();
    let mut units = BTreeSet::new();
    for id in books.take_in(&[huge("B0"), huge("B1"), huge("B2"), huge("B3")]).await {
        if units.insert(books.ledger.batch(id).await.expect("the batch").row.unit) {
            assert_eq!(books.settle_unleased(holder(), &[id]).await[0].1, SettleOutcome::Settled);
            settled.push(id);
        }
    }
    assert_eq!(settled.len(), 2);
    let before = books.raw.tables().await;
    let names =
        BTreeSet::from_iter(books.raw.texts("SELECT external_batch_id FROM settlement_batch WHERE state = 'settled'").await);
    let corrected: Vec<_> = names.iter().map(|name| batch(name).charge("anna", 1, 0)).collect();
    let error = books.replace(&corrected).await.expect_err("two of them are too much");
    assert!(matches!(error, LedgerError::Overflow(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    reverse(&books, settled[0]).await.expect("reversed");
    let before = books.raw.tables().await;
    let error = reverse(&books, settled[1]).await.expect_err("two of them are too much");
    assert!(matches!(error, LedgerError::Overflow(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
}

fn illegal(error: &LedgerError, event: BatchEvent, state: BatchState) -> bool {
    matches!(error, LedgerError::Illegal { source, .. } if *source == IllegalTransition { state, event })
}

async fn one_of_many_operators_reverses(place: Place) {
    let books = place.open().await;
    let id = books.settled(&batches(1)).await[0];
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let books = books.clone();
            tokio::spawn(async move { reverse(&books, id).await })
        })
        .collect();
    let mut reversed = 0;
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(()) => reversed += 1,
            Err(error) => assert!(illegal(&error, BatchEvent::Reverse, BatchState::Reversed), "{error:?}"),
        }
    }
    assert_eq!((reversed, audited(&books).await.len(), books.raw.count("journal_entry").await), (1, 1, 2));
    books.assert_books_hold().await;
}

/// And the error names the one that is.
async fn a_cancel_is_no_way_to_take_a_settlement_back(place: Place) {
    let books = place.open().await;
    for round in 0..5 {
        let id = books.settled(&[batch(&format!("R{round}")).charge("anna", 1_00, 0)]).await[0];
        let cancelling = tokio::spawn({
            let books = books.clone();
            async move { books.ledger.cancel_batch(id, &operator()).await }
        });
        let reversed = reverse(&books, id).await;
        let refused = cancelling.await.expect("no panic").expect_err("it is settled, or reversed");
        reversed.expect("nobody else can");
        let settled = illegal(&refused, BatchEvent::Cancel, BatchState::Settled);
        assert!(settled || illegal(&refused, BatchEvent::Cancel, BatchState::Reversed), "{refused:?}");
        assert_eq!(refused.to_string().contains(&format!("settled batch reverse {id}")), settled, "{refused}");
    }
    books.assert_books_hold().await;
}

/// What it decides by is final: it sees the batch settling or settled, and never half of it.
async fn a_reversal_waits_for_the_commit_in_flight(place: Place) {
    let books = place.open().await;
    let (stamp, ids) = books.claimed(&batches(1)).await;
    let (probe, is_inside, go_on) = blocking();
    let settling = tokio::spawn({
        let (books, ids) = (books.clone(), ids.clone());
        async move { books.settle_probed(stamp, &ids, LIMITS, &probe).await }
    });
    tokio::task::block_in_place(|| is_inside.recv_timeout(PATIENCE)).expect("inside");
    let reversing = tokio::spawn({
        let (books, id) = (books.clone(), ids[0]);
        async move { reverse(&books, id).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!reversing.is_finished(), "decided while the batch was being settled");
    go_on.send(()).expect("it waits");
    assert_eq!(settling.await.expect("no panic").expect("an answer"), [(ids[0], SettleOutcome::Settled)]);
    reversing.await.expect("no panic").expect("reversed");
    assert_eq!(books.state(ids[0]).await, "reversed 1");
    books.assert_books_hold().await;
}

/// Fails with a deadlock where a reversal writes the stripe of the unit, or locks in another order. Below and above the batches
/// that are settled meanwhile, by their ids.
async fn a_reversal_beside_settlements_of_its_unit(place: Place) {
    let books = place.open().await;
    for round in 0..20 {
        let drafts = |part: &str| -> Vec<_> {
            (0..3).map(|n| batch(&format!("R{round}{part}{n}")).charge("anna", 10_00, 30).charge("bert", 1, 0)).collect()
        };
        let mut ids = books.take_in(&drafts("a")).await;
        ids.extend(books.take_in(&drafts("b")).await);
        let stamp = books.hold(UNIT).await;
        books.claim(stamp, 100).await;
        let (first, second) = ids.split_at(3);
        let (done, open) = if round % 2 == 0 { (first, second) } else { (second, first) };
        books.settle(stamp, done).await.expect("settled");
        let settling = tokio::spawn({
            let (books, open) = (books.clone(), open.to_vec());
            async move { books.settle(stamp, &open).await }
        });
        for id in done {
            reverse(&books, *id).await.expect("reversed");
        }
        let outcomes = settling.await.expect("no panic").expect("an answer");
        assert!(outcomes.iter().all(|(_, outcome)| *outcome == SettleOutcome::Settled), "{outcomes:?}");
    }
    books.assert_books_hold().await;
}

/// Whoever is first: the lines are held by the old batch and the new one is broken, or they are free.
async fn a_reversal_beside_imports_of_its_lines(place: Place) {
    let books = place.open().await;
    for round in 0..10 {
        let draft = batch(&format!("old {round}")).charge("anna", 10_00, 0).keyed(&format!("psp-{round}"));
        let id = books.settled(std::slice::from_ref(&draft)).await[0];
        let importing = tokio::spawn({
            let books = books.clone();
            let new = draft.named(&format!("new {round}")).on(day().succ_opt().expect("a day"));
            async move { books.import(&[new]).await }
        });
        reverse(&books, id).await.expect("reversed");
        let outcome = importing.await.expect("no panic").expect("an import");
        let state = outcome.batches[0].state;
        assert!(matches!(state, BatchState::Pending | BatchState::Broken), "{outcome:?}");
        books.assert_books_hold().await;
    }
}

/// An import decides by the identities it finds; a reversal that freed them meanwhile would let a line in without one.
async fn a_reversal_waits_for_an_import(place: Place) {
    let books = place.open().await;
    let id = books.settled(&batches(1)).await[0];
    let raw = sqlx::PgPool::connect(&place.url).await.expect("the same database");
    let mut importing = raw.begin().await.expect("a transaction");
    sqlx::query("SELECT pg_advisory_xact_lock(hashtext('settled import'))").execute(&mut *importing).await.expect("its turn");
    let reversing = tokio::spawn({
        let books = books.clone();
        async move { reverse(&books, id).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!reversing.is_finished() && books.state(id).await.starts_with("settled"));
    importing.commit().await.expect("done");
    reversing.await.expect("no panic").expect("reversed");
}
