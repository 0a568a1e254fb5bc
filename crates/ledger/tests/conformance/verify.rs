//! The oracle: it says yes to good books, and to one corrupted row it says no by exactly the name of what is broken.

use crate::fixture::{Books, Named, Place, UNIT, batch, batches, day, holder, operator};
use crate::verify_payouts::{entry, pay_out};
use domain::batch::BatchState;
use domain::item::ItemKind;
use domain::totals::{Declared, Remits};
use ledger::Guard;
use ledger::verify::CHECKS;
use std::collections::BTreeSet;

pub const EVERY: &[Named] = tests![
    good_books_hold,
    headings_say_what_there_is,
    totals_may_leave_64_bits,
    a_sum_of_an_entry_that_leaves_64_bits,
    many_contradictions_are_cut_short,
    entry_balances,
    entry_balances_with_postings,
    entry_balances_in_one_currency,
    entry_equals_items,
    no_entry_of_nothing,
    stripes_equal_postings,
    clearing_equals_rows_minus_remittance,
    clearing_of_a_batch_that_remits,
    identity_live_of_a_line,
    identity_live_of_an_identity,
    one_live_revision,
    states_legal,
    fence_monotone_per_unit,
    fence_monotone_with_one_holder,
    fence_monotone_against_the_registered,
    fence_monotone_against_the_registered_holder,
    totals_bound_to_the_lines,
    totals_bound_to_the_declared,
    totals_bound_to_the_tolerance,
    totals_bound_to_the_declared_remittance,
    totals_bound_by_a_break,
];

/// Books with something of everything: both fee modes, currencies, differences of each kind, every state, payouts of every end.
pub async fn books_of_everything(place: &Place) -> Books {
    let books = place.open().await;
    let declared = |minor| Declared { net_minor: Some(minor), ..Declared::default() };
    let broken = |name: &str| batch(name).charge("anna", 10_00, 30).remittance(9_00).remits(Remits::ByLine, 5);
    let accepted = books.take_in(&[broken("accepted")]).await[0];
    books.ledger.accept_batch(accepted, &operator()).await.expect("accepted");
    let cancelled = books.take_in(&batches(1)).await[0];
    books.ledger.cancel_batch(cancelled, &operator()).await.expect("cancelled");
    let drafts = [
        batch("withheld").charge("anna", 10_00, 30).charge("bert", 5_00, 5_00).line("EUR", ItemKind::Refund, "anna", -3_00, -10),
        batch("charged").charge("anna", 10_00, 30).charge("bert", 5_00, 10).line("EUR", ItemKind::Fee, "anna", -25, 0).charged(),
        batch("rounded")
            .line("JPY", ItemKind::Charge, "anna", 500, 3)
            .declares("JPY", declared(495))
            .remits(Remits::DeclaredNet, 2),
        batch("zero").charge("anna", 0, 0),
    ];
    let (stamp, tomorrow) = (books.hold(UNIT).await, day().succ_opt().expect("a day"));
    let ids = books.take_in(&drafts).await;
    books.claim(stamp, 10).await;
    books.settle(stamp, &[&[accepted][..], &ids].concat()).await.expect("settled");
    let taken_back = books.settled(&[batch("taken back").line("CHF", ItemKind::Charge, "carl", 7_00, 0)]).await[0];
    books.ledger.reverse_batch(taken_back, &operator()).await.expect("reversed");
    books.take_in(&[batch("pending").charge("anna", 1, 0).on(tomorrow), broken("broken")]).await;
    pay_out(&books).await;
    books.assert_books_hold().await;
    books
}

/// Exactly one check fails, and says something of `about`.
pub async fn assert_only(books: &Books, id: &str, about: &str) {
    assert_fail(books, &[(id, about)]).await;
}

/// These checks fail and no others, and each says something of its own.
pub async fn assert_fail(books: &Books, expected: &[(&str, &str)]) {
    let report = books.ledger.verify().await.expect("a report");
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.ok).collect();
    assert!(failed.iter().map(|check| check.id).eq(expected.iter().map(|(id, _)| *id)), "{failed:#?}");
    for (check, (_, about)) in failed.iter().zip(expected) {
        assert!(check.detail.contains(about), "{about:?} is not in {:?}", check.detail);
    }
    assert!(!report.ok);
}

/// Corrupts and looks.
pub async fn corrupted(place: Place, sql: &str, id: &str, about: &str) {
    let books = books_of_everything(&place).await;
    books.raw.corrupt(sql).await;
    assert_only(&books, id, about).await;
}

/// The row of a batch, in SQL.
pub fn row_of(name: &str) -> String {
    format!("(SELECT id FROM settlement_batch WHERE external_batch_id = '{name}')")
}

async fn good_books_hold(place: Place) {
    let books = books_of_everything(&place).await;
    let report = books.ledger.verify().await.expect("a report");
    assert_eq!(report.checks.iter().map(|check| check.id).collect::<Vec<_>>(), CHECKS.map(|(id, ..)| id));
    assert!(report.checks.iter().all(|check| check.ok && !check.detail.is_empty()));
    assert_eq!(CHECKS.iter().map(|(id, ..)| id).collect::<BTreeSet<_>>().len(), 14);
}

async fn headings_say_what_there_is(place: Place) {
    let books = books_of_everything(&place).await;
    let report = books.ledger.verify().await.expect("a report");
    let expected = [
        (BatchState::Pending, 1),
        (BatchState::Settled, 5),
        (BatchState::Broken, 1),
        (BatchState::Cancelled, 1),
        (BatchState::Reversed, 1),
    ];
    assert_eq!((report.batches, report.journal_entries), (expected.into(), 6 + 10));
    let currencies: Vec<_> = report.totals.iter().map(|total| (total.currency.as_str(), total.debits_minor)).collect();
    assert_eq!((currencies[0], currencies[1].0, currencies[2].0), (("CHF", 14_00), "EUR", "JPY"));
    assert!(report.totals.iter().all(|total| total.debits_minor == total.credits_minor));
}

/// Two units, so that no stripe leaves them.
async fn totals_may_leave_64_bits(place: Place) {
    let books = place.open_as(2, Guard::RowLock).await;
    let huge = |name: &str| batch(name).charge(name, i64::MAX, 0);
    let ids = books.take_in(&[huge("B0"), huge("B1"), huge("B2"), huge("B3")]).await;
    let mut units = BTreeSet::new();
    for id in ids {
        if units.insert(books.ledger.batch(id).await.expect("the batch").row.unit) {
            books.settle_unleased(holder(), &[id]).await;
        }
    }
    assert_eq!(units.len(), 2);
    let report = books.ledger.verify().await.expect("a report");
    assert!(report.ok, "{report:#?}");
    assert_eq!(report.totals[0].debits_minor, 2 * i128::from(i64::MAX));
}

/// Both sides of two accounts in one entry. PostgreSQL adds on; SQLite cannot, and says so.
async fn a_sum_of_an_entry_that_leaves_64_bits(place: Place) {
    let books = place.open().await;
    books.settled(&[batch("A").charge("anna", i64::MAX, 0).line("EUR", ItemKind::Refund, "anna", -1, 0)]).await;
    if place.is_postgres() {
        return books.assert_books_hold().await;
    }
    let error = books.ledger.verify().await.expect_err("a sum beyond 64 bits").to_string();
    assert!(error.contains("check entry_balances cannot be made") && error.contains("PostgreSQL"), "{error}");
}

async fn many_contradictions_are_cut_short(place: Place) {
    let books = place.open().await;
    books.take_in(&batches(9)).await;
    books.raw.corrupt("UPDATE settlement_batch SET state = 'broken'").await;
    assert_only(&books, "states_legal", "; and more").await;
}

/// A line that does not add up, and is settled as it is: what is posted is what it says.
async fn entry_balances(place: Place) {
    let books = books_of_everything(&place).await;
    let (stamp, ids) = books.claimed(&[batch("G").charge("anna", 10_00, 30).charged()]).await;
    books.raw.drop_check("batch_item", "batch_item_check").await;
    books.raw.corrupt(&format!("UPDATE batch_item SET net_minor = net_minor + 1 WHERE batch_id = {}", ids[0])).await;
    books.settle(stamp, &ids).await.expect("settled");
    assert_only(&books, "entry_balances", ": debits 1000, credits 1001").await;
}

async fn entry_balances_with_postings(place: Place) {
    let empty = format!(
        "INSERT INTO journal_entry (entry_key, kind, batch_id, currency, unit) VALUES ('by hand', 'settle', {}, 'EUR', 0)",
        row_of("zero")
    );
    corrupted(place, &empty, "entry_balances", "by hand").await;
}

/// As when an entry is posted to the account of another currency: no sum differs.
async fn entry_balances_in_one_currency(place: Place) {
    let sql = "UPDATE account SET currency = 'USD' WHERE code = 'bank' AND currency = 'JPY'";
    corrupted(place, sql, "entry_balances", ", 4 of 5 postings in JPY").await;
}

async fn entry_equals_items(place: Place) {
    let other = format!("UPDATE batch_item SET merchant = 'bert' WHERE merchant = 'anna' AND batch_id = {}", row_of("charged"));
    corrupted(place, &other, "entry_equals_items", "merchant_payable:bert").await;
}

/// The table refuses it, and where it did not the books show it.
async fn no_entry_of_nothing(place: Place) {
    let books = books_of_everything(&place).await;
    let (batch, settled) = (format!(", {}", row_of("charged")), ", (SELECT min(id) FROM journal_entry)".to_owned());
    let payout = ", (SELECT min(id) FROM payout), 'undone'".to_owned();
    let unreferenced = [("reverse", ", batch_id", batch), ("payout", "", String::new()), ("settle", "", String::new())];
    let others = [("payout", ", reverses_entry_id", settled), ("settle", ", payout_id, payout_step", payout)];
    for (kind, belongs, to) in unreferenced.iter().chain(&others) {
        let refused = books.raw.run(&entry("by hand", kind, (belongs, to), "bank", "clearing")).await;
        let refused = refused.expect_err("an entry of nothing").to_string();
        assert!(refused.contains("journal_entry_belongs"), "{refused}");
    }
    books.raw.drop_check("journal_entry", "journal_entry_belongs").await;
    for (kind, belongs, to) in unreferenced {
        let by_hand = entry("by hand", kind, (belongs, &to), "bank", "clearing");
        books.raw.corrupt(&by_hand).await;
        assert_only(&books, "no_entry_otherwise", &format!("entry by hand is a {kind} of nothing")).await;
        books.raw.corrupt(TAKE_OUT).await;
    }
    books.assert_books_hold().await;
}

/// What [`entry`] put in.
const TAKE_OUT: &str = "UPDATE account_balance SET debit_minor = debit_minor - 100
        WHERE unit = -1 AND account_id = (SELECT id FROM account WHERE code = 'bank' AND currency = 'EUR');
    UPDATE account_balance SET credit_minor = credit_minor - 100
        WHERE unit = -1 AND account_id = (SELECT id FROM account WHERE code = 'clearing' AND currency = 'EUR');
    DELETE FROM posting WHERE entry_id = (SELECT id FROM journal_entry WHERE entry_key = 'by hand');
    DELETE FROM journal_entry WHERE entry_key = 'by hand'";

async fn stripes_equal_postings(place: Place) {
    let sql = "UPDATE account_balance SET debit_minor = debit_minor + 1
        WHERE account_id = (SELECT id FROM account WHERE code = 'bank' AND currency = 'JPY')";
    corrupted(place, sql, "stripes_equal_postings", "account bank JPY").await;
}

/// The other checks see every amount that is posted. What only this one sees is a rule that the batch was settled by and is not
/// the one it says now.
async fn clearing_equals_rows_minus_remittance(place: Place) {
    let books = books_of_everything(&place).await;
    books.raw.drop_check("settlement_batch", "settlement_batch_fee_mode_check").await;
    books.raw.corrupt("UPDATE settlement_batch SET fee_mode = 'unknown' WHERE external_batch_id = 'withheld'").await;
    assert_only(&books, "clearing_equals_rows_minus_remittance", "EUR: clearing").await;
}

/// A difference that is forgotten at import is forgotten by everything that follows. What remains in clearing shows it.
async fn clearing_of_a_batch_that_remits(place: Place) {
    let books = books_of_everything(&place).await;
    let (stamp, ids) = books.claimed(&[batch("G").charge("anna", 10_00, 30).remittance(9_68).remits(Remits::ByLine, 5)]).await;
    books.raw.corrupt(&format!("UPDATE batch_total SET rounding_minor = 0 WHERE batch_id = {}", ids[0])).await;
    books.settle(stamp, &ids).await.expect("settled");
    assert_only(&books, "clearing_equals_rows_minus_remittance", &format!("batch {} EUR: clearing 2", ids[0])).await;
}

async fn identity_live_of_a_line(place: Place) {
    let sql = "DELETE FROM settled_item WHERE dedupe_key = 'charged/1'";
    corrupted(place, sql, "identity_live", "does not hold charged/1").await;
}

async fn identity_live_of_an_identity(place: Place) {
    let sql = format!(
        "INSERT INTO settled_item (source, dedupe_key, batch_id, line_no) VALUES ('acquirer', 'x', {}, 1)",
        row_of("B0000")
    );
    corrupted(place, &sql, "identity_live", "which is cancelled").await;
}

async fn one_live_revision(place: Place) {
    let sql = "DROP INDEX settlement_batch_one_live;
        INSERT INTO settlement_batch (source, external_batch_id, revision, import_file_id, first_line, digest, business_date, fee_mode,
            unit, state, items)
        SELECT source, external_batch_id, 2, import_file_id, first_line, digest, business_date, fee_mode, unit, 'pending', 0
        FROM settlement_batch WHERE external_batch_id = 'charged'";
    corrupted(place, sql, "one_live_revision", "charged: 2 live revisions").await;
}

async fn states_legal(place: Place) {
    let sql = "UPDATE settlement_batch SET settled_at = (SELECT min(settled_at) FROM settlement_batch)
        WHERE external_batch_id = 'pending'";
    corrupted(place, sql, "states_legal", "is pending with settled_at").await;
}

async fn fence_monotone_per_unit(place: Place) {
    let sql = "UPDATE journal_entry SET fence_token = 0 WHERE batch_id = (SELECT max(batch_id) FROM journal_entry)
        AND kind = 'settle'";
    corrupted(place, sql, "fence_monotone_per_unit", "fence 1.0 after 1.").await;
}

async fn fence_monotone_with_one_holder(place: Place) {
    let sql = format!(
        "UPDATE journal_entry SET holder = '00000000-0000-0000-0000-000000000001' WHERE currency = 'EUR' AND batch_id = {}",
        row_of("charged")
    );
    corrupted(place, &sql, "fence_monotone_per_unit", "holder 00000000-0000-0000-0000-000000000001 after").await;
}

async fn fence_monotone_against_the_registered(place: Place) {
    let sql = "UPDATE unit_fence SET token = token - 1";
    corrupted(place, sql, "fence_monotone_per_unit", "above the registered").await;
}

async fn fence_monotone_against_the_registered_holder(place: Place) {
    let sql = "UPDATE unit_fence SET holder = '00000000-0000-0000-0000-000000000001'";
    corrupted(place, sql, "fence_monotone_per_unit", "is registered to 00000000-0000-0000-0000-000000000001").await;
}

async fn totals_bound_to_the_lines(place: Place) {
    let sql = format!("UPDATE batch_total SET credit_minor = credit_minor + 1 WHERE batch_id = {}", row_of("withheld"));
    corrupted(place, &sql, "totals_bound", "stored totals are not those of its lines").await;
}

async fn totals_bound_to_the_declared(place: Place) {
    let sql = format!("UPDATE batch_total SET declared_gross_minor = 1 WHERE batch_id = {}", row_of("charged"));
    corrupted(place, &sql, "totals_bound", "does not bind").await;
}

async fn totals_bound_to_the_tolerance(place: Place) {
    let books = books_of_everything(&place).await;
    let id = books.settled(&[batch("G").charge("anna", 10_00, 30).remittance(9_68).remits(Remits::ByLine, 5)]).await[0];
    books.raw.corrupt(&format!("UPDATE batch_total SET tolerance_minor = 1 WHERE batch_id = {id}")).await;
    assert_only(&books, "totals_bound", &format!("batch {id} EUR: rounds by 2 with a tolerance of 1")).await;
}

async fn totals_bound_to_the_declared_remittance(place: Place) {
    let sql = format!("UPDATE batch_total SET declared_net_minor = 496 WHERE batch_id = {}", row_of("rounded"));
    corrupted(place, &sql, "totals_bound", "remits 495 of a declared net of 496").await;
}

async fn totals_bound_by_a_break(place: Place) {
    let sql = "UPDATE settlement_batch SET break_reason = 'it did not foot' WHERE external_batch_id = 'charged'";
    corrupted(place, sql, "totals_bound", "that nobody accepted").await;
}
