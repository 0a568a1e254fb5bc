//! What the oracle says of payouts, against the journal table of the design: cut, paid, and the way back.

use crate::fixture::{Books, Named, Place};
use crate::verify::{assert_only, books_of_everything};

pub const EVERY: &[Named] = tests![payout_equals_postings, payout_equals_postings_both_ways];

/// An entry of 1.00 EUR as the ledger writes one, with the operators' stripes. `belongs` are columns, `to` their values.
pub fn entry(key: &str, kind: &str, (belongs, to): (&str, &str), debit: &str, credit: &str) -> String {
    format!(
        "INSERT INTO journal_entry (entry_key, currency, unit, kind{belongs}) VALUES ('{key}', 'EUR', -1, '{kind}'{to});
        INSERT INTO posting (entry_id, account_id, side, amount_minor)
            SELECT e.id, a.id, CASE a.code WHEN '{debit}' THEN 'D' ELSE 'C' END, 100
            FROM journal_entry e JOIN account a ON a.currency = e.currency AND a.code IN ('{debit}', '{credit}') WHERE entry_key = '{key}';
        INSERT INTO account_balance (account_id, unit, debit_minor, credit_minor)
            SELECT account_id, -1, CASE side WHEN 'D' THEN 100 ELSE 0 END, CASE side WHEN 'C' THEN 100 ELSE 0 END
            FROM posting WHERE entry_id = (SELECT id FROM journal_entry WHERE entry_key = '{key}')
            ON CONFLICT (account_id, unit) DO UPDATE SET debit_minor = account_balance.debit_minor + excluded.debit_minor,
                credit_minor = account_balance.credit_minor + excluded.credit_minor;"
    )
}

/// A payout of each end, as numbered by `refusals`, and its entries.
pub async fn pay_out(books: &Books) {
    const PAYABLE: &str = "merchant_payable:anna";
    let (cut, paid) = (("cut", PAYABLE, "in_transit"), ("paid", "in_transit", "bank"));
    let (uncut, back) = (("undone", "in_transit", PAYABLE), ("undone", "bank", PAYABLE));
    let ends = [
        ("created", &[cut][..]),
        ("paid", &[cut, paid]),
        ("declined", &[cut, uncut]),
        ("failed", &[cut, uncut]),
        ("returned", &[cut, paid, back]),
    ];
    books
        .raw
        .run("INSERT INTO account (code, currency) VALUES ('in_transit', 'EUR') ON CONFLICT DO NOTHING")
        .await
        .expect("there");
    for (n, (state, steps)) in ends.into_iter().enumerate() {
        let mut sql = payout(books, n, state);
        for (step, debit, credit) in steps {
            let to = format!(", {}, '{step}'", numbered(n));
            sql.push_str(&entry(&format!("payout {n} {step}"), "payout", (", payout_id, payout_step", &to), debit, credit));
        }
        books.raw.run(&sql).await.expect("a payout");
    }
}

fn payout(books: &Books, n: usize, state: &str) -> String {
    format!(
        "INSERT INTO payout (merchant, currency, run_id, refusals, idempotency_key, amount_minor, state)
            VALUES ('anna', 'EUR', {}, {n}, 'payout:{n}', 100, '{state}');",
        books.run
    )
}

fn numbered(n: usize) -> String {
    format!("(SELECT id FROM payout WHERE refusals = {n})")
}

async fn payout_equals_postings(place: Place) {
    let books = books_of_everything(&place).await;
    books.raw.corrupt(&payout(&books, 7, "created")).await;
    assert_only(&books, "payout_equals_postings", "cut EUR in_transit C: 100, booked 0").await;
}

/// What is booked and is not what the payout says: its account, side, amount, currency, or step.
async fn payout_equals_postings_both_ways(place: Place) {
    let books = books_of_everything(&place).await;
    let corruptions = [
        ("merchant = 'bert'", "merchant = 'anna'", 0, "cut EUR merchant_payable:anna D: 0, booked 100"),
        ("amount_minor = 101", "amount_minor = 100", 0, "cut EUR in_transit C: 101, booked 100"),
        ("currency = 'JPY'", "currency = 'EUR'", 0, "cut JPY in_transit C: 100, booked 0"),
        ("state = 'created'", "state = 'paid'", 1, "paid EUR bank C: 0, booked 100"),
        ("state = 'manual_review'", "state = 'declined'", 2, "undone EUR in_transit D: 0, booked 100"),
        ("state = 'paid'", "state = 'returned'", 4, "undone EUR bank D: 0, booked 100"),
        ("state = 'failed'", "state = 'returned'", 4, "undone EUR bank D: 0, booked 100"),
    ];
    for (change, back, n, about) in corruptions {
        books.raw.corrupt(&format!("UPDATE payout SET {change} WHERE refusals = {n}")).await;
        assert_only(&books, "payout_equals_postings", about).await;
        books.raw.corrupt(&format!("UPDATE payout SET {back} WHERE refusals = {n}")).await;
    }
    // the sides of one step changed over: its debits are as large as before
    let step = "(SELECT id FROM journal_entry WHERE entry_key = 'payout 1 paid')";
    let turned = format!("UPDATE posting SET side = CASE side WHEN 'D' THEN 'C' ELSE 'D' END WHERE entry_id = {step}");
    let stripes = |sign: &str| {
        format!(
            "; UPDATE account_balance SET debit_minor = debit_minor {sign} CASE account_id WHEN (SELECT id FROM account
                    WHERE code = 'bank' AND currency = 'EUR') THEN 100 ELSE -100 END,
                credit_minor = credit_minor {sign} CASE account_id WHEN (SELECT id FROM account
                    WHERE code = 'bank' AND currency = 'EUR') THEN -100 ELSE 100 END
            WHERE unit = -1 AND account_id IN (SELECT account_id FROM posting WHERE entry_id = {step})"
        )
    };
    books.raw.corrupt(&format!("{turned}{}", stripes("+"))).await;
    assert_only(&books, "payout_equals_postings", "paid EUR bank D: 0, booked 100").await;
    books.raw.corrupt(&format!("{turned}{}", stripes("-"))).await;
    books.assert_books_hold().await;
}
