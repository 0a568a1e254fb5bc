//! What the oracle says of reversals: each is told, with who and why, and each way to be wrong about one has its check.

use crate::fixture::{Books, Named, Place, batch, operator};
use crate::verify::{assert_fail, assert_only, books_of_everything, corrupted, row_of};
use domain::ids::BatchId;
use domain::item::ItemKind;
use ledger::verify::{Replacement, Reversal, ReversedAmount};

pub const EVERY: &[Named] = tests![
    every_reversal_is_told,
    one_live_entry_per_settled,
    no_entry_otherwise,
    no_entry_that_takes_back_what_is_not_its_own,
    reversal_exact,
    reversal_exact_with_every_posting,
    reversal_exact_with_a_decision,
    reversal_exact_where_one_was_decided,
    identity_live_after_a_reversal,
];

async fn every_reversal_is_told(place: Place) {
    let books = place.open().await;
    assert_eq!(books.ledger.verify().await.expect("a report").reversals, []);
    let two = batch("two").charge("anna", 10_00, 30).charge("bert", 5_00, 0).line("JPY", ItemKind::Charge, "anna", 500, 0);
    let ids = books.settled(&[two, batch("stays").charge("anna", 1_00, 0), batch("nothing").charge("anna", 0, 0)]).await;
    let next = books.replace(&[batch("two").charge("anna", 9_00, 30)]).await.expect("replaced").batches[0].id;
    books.ledger.reverse_batch(ids[2], &operator()).await.expect("reversed");
    let report = books.ledger.verify().await.expect("a report");
    assert!(report.ok, "{report:#?}");
    let told: Vec<_> = report.reversals.iter().map(without_time).collect();
    let amount = |currency: &str, debits_minor| ReversedAmount { currency: currency.to_owned(), debits_minor };
    let expected = |id, external_batch_id: &str, amounts, next: Option<BatchId>| Reversal {
        batch: id,
        source: "acquirer".to_owned(),
        external_batch_id: external_batch_id.to_owned(),
        revision: 1,
        amounts,
        decision: None,
        replaced_by: next.map(|batch| Replacement { batch, revision: 2 }),
    };
    let amounts = vec![amount("EUR", 14_70), amount("JPY", 500)];
    assert_eq!(told, [expected(ids[0], "two", amounts, Some(next)), expected(ids[2], "nothing", vec![], None)]);
}

/// Who and why are the same in all of them.
fn without_time(reversal: &Reversal) -> Reversal {
    let decision = reversal.decision.as_ref().expect("somebody decided");
    assert_eq!((decision.operator.as_str(), decision.reason.as_str()), ("olga", "a test"));
    let since = chrono::Utc::now() - decision.reversed_at;
    assert!(since.abs() < chrono::TimeDelta::minutes(10), "{since}");
    Reversal { decision: None, ..reversal.clone() }
}

/// A settled batch in a currency of its own.
async fn settled(books: &Books) -> BatchId {
    books.settled(&[batch("G").line("GBP", ItemKind::Charge, "anna", 7_00, 0)]).await[0]
}

/// A reversal by hand, of all or of a part: its entry, postings and the operators' stripes.
async fn reverse(books: &Books, id: BatchId, amount: i64) {
    let sql = format!(
        "INSERT INTO journal_entry (entry_key, kind, batch_id, currency, unit, reverses_entry_id)
            SELECT 'reverse:' || batch_id || ':1:' || currency, 'reverse', batch_id, currency, -1, id
            FROM journal_entry WHERE batch_id = {id};
        INSERT INTO posting (entry_id, account_id, side, amount_minor)
            SELECT r.id, p.account_id, CASE p.side WHEN 'D' THEN 'C' ELSE 'D' END, {amount}
            FROM journal_entry r JOIN posting p ON p.entry_id = r.reverses_entry_id WHERE r.batch_id = {id};
        INSERT INTO account_balance (account_id, unit, debit_minor, credit_minor)
            SELECT account_id, -1, CASE side WHEN 'D' THEN {amount} ELSE 0 END, CASE side WHEN 'C' THEN {amount} ELSE 0 END
            FROM posting WHERE entry_id = (SELECT id FROM journal_entry WHERE batch_id = {id} AND kind = 'reverse')"
    );
    books.raw.run(&sql).await.expect("a reversal");
}

/// The state, the identities and the word of the operator, without the entry.
fn state_reversed(id: BatchId) -> String {
    format!(
        "UPDATE settlement_batch SET state = 'reversed' WHERE id = {id}; DELETE FROM settled_item WHERE batch_id = {id};
        INSERT INTO audit_log (operator, action, subject, reason) VALUES ('olga', 'batch reverse', '{id}', 'by hand')"
    )
}

async fn one_live_entry_per_settled(place: Place) {
    let books = books_of_everything(&place).await;
    let id = settled(&books).await;
    reverse(&books, id, 7_00).await;
    assert_only(&books, "one_live_entry_per_settled", &format!("batch {id} GBP: 0 standing entries")).await;
}

async fn no_entry_otherwise(place: Place) {
    let books = books_of_everything(&place).await;
    let id = settled(&books).await;
    books.raw.corrupt(&state_reversed(id)).await;
    assert_only(&books, "no_entry_otherwise", &format!("batch {id} is reversed and has entry settle:{id}:1:GBP")).await;
}

async fn no_entry_that_takes_back_what_is_not_its_own(place: Place) {
    let sql = format!("UPDATE journal_entry SET batch_id = {} WHERE kind = 'reverse'", row_of("charged"));
    corrupted(place, &sql, "no_entry_otherwise", ":1:CHF is a reverse of nothing").await;
}

async fn reversal_exact(place: Place) {
    let books = books_of_everything(&place).await;
    let id = settled(&books).await;
    reverse(&books, id, 6_99).await;
    books.raw.corrupt(&state_reversed(id)).await;
    assert_only(&books, "reversal_exact", &format!("reverse:{id}:1:GBP")).await;
}

/// One too few, and the stripe goes along: the entry does not balance either.
async fn reversal_exact_with_every_posting(place: Place) {
    let books = books_of_everything(&place).await;
    let id = settled(&books).await;
    books.ledger.reverse_batch(id, &operator()).await.expect("reversed");
    books.assert_books_hold().await;
    let credit = format!("entry_id = (SELECT id FROM journal_entry WHERE entry_key = 'reverse:{id}:1:GBP') AND side = 'C'");
    let account = format!("(SELECT account_id FROM posting WHERE {credit})");
    let stripe = format!("DELETE FROM account_balance WHERE unit = -1 AND account_id = {account}");
    books.raw.corrupt(&format!("{stripe}; DELETE FROM posting WHERE {credit}")).await;
    let off = format!("reversal reverse:{id}:1:GBP account ");
    assert_fail(&books, &[("entry_balances", ": debits 700, credits 0"), ("reversal_exact", &off)]).await;
}

async fn reversal_exact_with_a_decision(place: Place) {
    let sql = "DELETE FROM audit_log WHERE action = 'batch reverse'";
    corrupted(place, sql, "reversal_exact", "is reversed, and the audit log has it reversed 0 times").await;
}

/// As after a restore of some tables and not of others.
async fn reversal_exact_where_one_was_decided(place: Place) {
    let sql = format!(
        "INSERT INTO audit_log (operator, action, subject, reason) VALUES ('olga', 'batch reverse', {}, 'why')",
        row_of("charged").replace("SELECT id", "SELECT CAST(id AS CHAR(20))")
    );
    corrupted(place, &sql, "reversal_exact", "is settled, and the audit log has it reversed 1 times").await;
}

async fn identity_live_after_a_reversal(place: Place) {
    let books = books_of_everything(&place).await;
    let id = settled(&books).await;
    let held = "INSERT INTO settled_item (source, dedupe_key, batch_id, line_no)
        SELECT b.source, i.dedupe_key, b.id, i.line_no FROM settlement_batch b JOIN batch_item i ON i.batch_id = b.id";
    books.ledger.reverse_batch(id, &operator()).await.expect("reversed");
    books.raw.corrupt(&format!("{held} WHERE b.id = {id}")).await;
    assert_only(&books, "identity_live", &format!("identity G/0 is held by batch {id}, which is reversed")).await;
}
