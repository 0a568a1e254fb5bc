//! What a settled batch posts, against the rule of the domain: the SQL of an engine and `journal::entry` were written apart.

use crate::fixture::{Books, Draft, Named, Place, UNIT, batch, claimed_ids, currency, file, holder, operator};
use domain::batch::BatchState;
use domain::idempotency::settle_entry_key;
use domain::ids::BatchId;
use domain::item::{FeeMode, Item, ItemKind};
use domain::journal::{Sides, entry};
use domain::money::Currency;
use domain::outcome::SettleOutcome;
use domain::totals::{Declared, Remits, Total};

use ledger::Guard;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

pub const EVERY: &[Named] = tests![
    every_kind_and_sign_in_both_fee_modes,
    random_batches_post_what_the_rule_says,
    m19_zero_rows_and_net_zero_merchants,
    m19_a_batch_without_an_entry_settles,
    m19_a_fee_larger_than_the_gross,
    m14_every_currency_of_a_batch_is_settled,
    m14_a_currency_that_does_not_foot_holds_up_the_others,
    a_batch_that_foots_leaves_clearing_at_zero,
    m8_settlements_at_once_lose_nothing,
];

const KINDS: [ItemKind; 7] = ItemKind::ALL;

/// Postings as stored, by (currency, account).
type Posted = BTreeMap<(String, String), Sides>;

async fn posted(books: &Books, id: BatchId) -> Posted {
    let mut posted = Posted::new();
    for row in books.ledger.batch(id).await.expect("the batch").postings {
        assert!(row.amount_minor > 0, "{row:?}");
        let sides = posted.entry((row.currency, row.account)).or_default();
        let side = if row.side == "D" { &mut sides.debit_minor } else { &mut sides.credit_minor };
        assert_eq!(*side, 0, "two postings on one side of an account");
        *side = i128::from(row.amount_minor);
    }
    posted
}

/// What the rule says.
fn expected(draft: &Draft) -> Posted {
    let read = file(std::slice::from_ref(draft));
    let mut expected = Posted::new();
    for total in &read.summary.batches[0].totals {
        let of_currency = |item: &&Item| item.currency == total.currency;
        let accounts = entry(draft.items.iter().filter(of_currency), draft.fee_mode, total, 0);
        expected.extend(accounts.into_iter().map(|(code, sides)| ((total.currency.code().to_owned(), code), sides)));
    }
    expected
}

async fn assert_posted(books: &Books, drafts: &[Draft], ids: &[BatchId]) {
    for (draft, id) in drafts.iter().zip(ids) {
        assert_eq!(posted(books, *id).await, expected(draft), "of {draft:#?}");
    }
    assert_balances(books, drafts).await;
    books.assert_books_hold().await;
}

/// A balance is the sum over all batches (M7: decoded, whatever type the engine gives sums).
async fn assert_balances(books: &Books, drafts: &[Draft]) {
    let mut sums = Posted::new();
    for (account, sides) in drafts.iter().flat_map(expected) {
        let sum = sums.entry(account).or_default();
        sum.debit_minor += sides.debit_minor;
        sum.credit_minor += sides.credit_minor;
    }
    let line =
        |((currency, code), s): (&(String, String), &Sides)| format!("{currency} {code} {} {}", s.debit_minor, s.credit_minor);
    let stored = "SELECT a.currency || ' ' || a.code || ' ' || sum(debit_minor) || ' ' || sum(credit_minor)
        FROM account_balance b JOIN account a ON a.id = b.account_id GROUP BY a.currency, a.code";
    assert_eq!(BTreeSet::from_iter(books.raw.texts(stored).await), sums.iter().map(line).collect());
}

async fn every_kind_and_sign_in_both_fee_modes(place: Place) {
    let books = place.open().await;
    let mut drafts = Vec::new();
    for kind in KINDS {
        for (name, gross, fee) in [("up", 100, 3), ("down", -100, -3), ("crossed", 100, -3), ("fee", 2, 3), ("zero", 0, 0)] {
            let draft = batch(&format!("{kind:?} {name}")).line("EUR", kind, "anna", gross, fee);
            // a remittance must be covered, or the batch does not foot
            let draft =
                if kind == ItemKind::Remittance { draft.charge("bert", fee - gross, 0).remits(Remits::ByLine, 0) } else { draft };
            drafts.extend([draft.clone(), Draft { name: format!("{} charged", draft.name), ..rekeyed(draft).charged() }]);
        }
    }
    let ids = books.settled(&drafts).await;
    assert_posted(&books, &drafts, &ids).await;
}

fn rekeyed(mut draft: Draft) -> Draft {
    draft.items.iter_mut().for_each(|item| item.dedupe_key.insert_str(0, "charged "));
    draft
}

async fn random_batches_post_what_the_rule_says(place: Place) {
    let books = place.open().await;
    let seed = 20_260_302;
    let mut random = StdRng::seed_from_u64(seed);
    let drafts: Vec<Draft> = (0..60).map(|n| random_batch(&mut random, &format!("seed {seed} batch {n}"))).collect();
    let mut ids = Vec::new();
    for drafts in drafts.chunks(20) {
        ids.extend(books.settled(drafts).await);
    }
    assert_posted(&books, &drafts, &ids).await;
}

/// Any lines, in up to three currencies, that foot: what is left over is remitted.
pub fn random_batch(random: &mut StdRng, name: &str) -> Draft {
    let mut draft = batch(name);
    for _ in 0..random.random_range(0..30) {
        let code = ["EUR", "JPY", "KWD"][random.random_range(0..3)];
        let kind = KINDS[random.random_range(0..6)];
        let merchant = ["anna", "bert", "Ærø", "o'neil"][random.random_range(0..4)];
        let gross = random.random_range(-1_000_000..=1_000_000) * i64::from(random.random_bool(0.9));
        draft = draft.line(code, kind, merchant, gross, random.random_range(-50..=50) * i64::from(random.random_bool(0.7)));
    }
    if random.random_bool(0.5) {
        draft = draft.charged();
    }
    if random.random_bool(0.5) { remitted(draft, random) } else { draft }
}

fn remitted(draft: Draft, random: &mut StdRng) -> Draft {
    let totals: Vec<Total> = file(std::slice::from_ref(&draft)).summary.batches[0].totals.clone();
    // where the fee is ours, more than the declared net is paid out: only a line says how much
    let charged = draft.fee_mode == FeeMode::Charged;
    let (by_line, off) = (charged || random.random_bool(0.5), random.random_range(-5..=5));
    let remits = if by_line { Remits::ByLine } else { Remits::DeclaredNet };
    totals.iter().fold(draft.remits(remits, 5), |draft, total| {
        let (code, net) = (total.currency.code(), total.net_minor + off);
        if by_line {
            let carried = draft.items.iter().filter(|item| item.currency == total.currency && item.kind.carries_our_fee());
            let ours: i64 = if charged { carried.map(|item| item.fee_minor).sum() } else { 0 };
            draft.line(code, ItemKind::Remittance, "-", -net - ours, 0)
        } else {
            draft.declares(code, Declared { net_minor: Some(net), ..Declared::default() })
        }
    })
}

async fn m19_zero_rows_and_net_zero_merchants(place: Place) {
    let books = place.open().await;
    let draft = batch("A")
        .charge("anna", 0, 0)
        .charge("bert", 10_00, 0)
        .line("EUR", ItemKind::Refund, "bert", -10_00, 0)
        .charge("carl", 5, 5);
    let ids = books.settled(std::slice::from_ref(&draft)).await;
    let bert = posted(&books, ids[0]).await[&("EUR".to_owned(), "merchant_payable:bert".to_owned())];
    assert_eq!(bert, Sides { debit_minor: 10_00, credit_minor: 10_00 }, "both sides, never netted");
    assert_posted(&books, &[draft], &ids).await;
}

async fn m19_a_batch_without_an_entry_settles(place: Place) {
    let books = place.open().await;
    let drafts = [batch("no lines"), batch("zero").charge("anna", 0, 0), batch("all fee").charge("anna", 7, 7)];
    let ids = books.settled(&drafts).await;
    assert_eq!(books.raw.count("journal_entry").await, 0);
    assert_posted(&books, &drafts, &ids).await;
}

async fn m19_a_fee_larger_than_the_gross(place: Place) {
    let books = place.open().await;
    let drafts = [batch("A").charge("anna", 10, 25), rekeyed(batch("A").charge("anna", 10, 25)).charged().named("B")];
    let ids = books.settled(&drafts).await;
    let owed = posted(&books, ids[1]).await[&("EUR".to_owned(), "merchant_payable:anna".to_owned())];
    assert_eq!(owed, Sides { debit_minor: 15, credit_minor: 0 });
    assert_posted(&books, &drafts, &ids).await;
}

async fn m14_every_currency_of_a_batch_is_settled(place: Place) {
    let books = place.open().await;
    let draft = batch("A").charge("anna", 10_00, 0).line("JPY", ItemKind::Charge, "anna", 500, 0).line(
        "KWD",
        ItemKind::Charge,
        "anna",
        0,
        0,
    );
    let ids = books.settled(std::slice::from_ref(&draft)).await;
    let keys = books.raw.texts("SELECT entry_key FROM journal_entry ORDER BY entry_key").await;
    assert_eq!(keys, ["EUR", "JPY"].map(|code| settle_entry_key(ids[0], 1, code)));
    let currencies: Vec<Currency> = posted(&books, ids[0]).await.keys().map(|(code, _)| currency(code)).collect();
    assert_eq!(currencies.len(), 4);
    assert_posted(&books, &[draft], &ids).await;
}

/// Crowns foot, euros do not: no entry of either, until a person takes the difference.
async fn m14_a_currency_that_does_not_foot_holds_up_the_others(place: Place) {
    let books = place.open().await;
    let line = |draft: Draft, kind, gross| draft.line("SEK", kind, "anna", gross, 0);
    let draft = batch("A").charge("anna", 10_00, 0).remittance(9_50).remits(Remits::ByLine, 0);
    let draft = line(line(draft, ItemKind::Charge, 70_00), ItemKind::Remittance, -70_00);
    let id = books.take_in(std::slice::from_ref(&draft)).await[0];
    assert_eq!(books.state(id).await, "broken 0");
    let stamp = books.hold(UNIT).await;
    assert_eq!(claimed_ids(&books.claim(stamp, 10).await), []);
    let refused = books.settle(stamp, &[id]).await.expect("an answer");
    assert_eq!(refused, [(id, SettleOutcome::NotClaimable { state: BatchState::Broken })]);
    assert_eq!((books.raw.count("journal_entry").await, books.raw.count("posting").await), (0, 0));
    books.ledger.accept_batch(id, &operator()).await.expect("it can be accepted");
    assert_eq!(claimed_ids(&books.claim(stamp, 10).await), [id]);
    assert_eq!(books.settle(stamp, &[id]).await.expect("an answer"), [(id, SettleOutcome::Settled)]);
    let keys = books.raw.texts("SELECT entry_key FROM journal_entry ORDER BY entry_key").await;
    assert_eq!(keys, ["EUR", "SEK"].map(|code| settle_entry_key(id, 1, code)));
    let suspense = posted(&books, id).await[&("EUR".to_owned(), "suspense".to_owned())];
    assert_eq!(suspense, Sides { debit_minor: 50, credit_minor: 0 });
    books.assert_books_hold().await;
}

async fn a_batch_that_foots_leaves_clearing_at_zero(place: Place) {
    let books = place.open().await;
    let net = |minor| Declared { net_minor: Some(minor), ..Declared::default() };
    let drafts = [
        batch("by line").charge("anna", 10_00, 30).remittance(9_70).remits(Remits::ByLine, 0),
        batch("declared").charge("anna", 10_00, 30).declares("EUR", net(9_70)).remits(Remits::DeclaredNet, 0),
        batch("rounded").charge("anna", 10_00, 30).declares("EUR", net(9_72)).remits(Remits::DeclaredNet, 2),
        batch("charged").charge("anna", 10_00, 30).remittance(10_00).remits(Remits::ByLine, 0).charged(),
    ];
    let ids = books.settled(&drafts).await;
    let clearing =
        "SELECT sum(debit_minor) - sum(credit_minor) FROM account_balance b JOIN account a ON a.id = b.account_id WHERE code = ";
    assert_eq!(books.raw.number(&format!("{clearing}'clearing'")).await, 0);
    assert_eq!(books.raw.number(&format!("{clearing}'rounding_difference'")).await, -2);
    assert_eq!(books.raw.number(&format!("{clearing}'bank'")).await, 3 * 9_70 + 2 + 10_00);
    assert_posted(&books, &drafts, &ids).await;
}

/// Eight workers at once on the same stripes.
async fn m8_settlements_at_once_lose_nothing(place: Place) {
    let books = place.open_as(1, Guard::RowLock).await;
    let drafts: Vec<Draft> = (0..40).map(|n| batch(&format!("B{n}")).charge("anna", 10_00, 30).charge("bert", 1, 0)).collect();
    let ids = books.take_in(&drafts).await;
    let tasks: Vec<_> = ids
        .chunks(5)
        .map(|ids| {
            let (books, ids) = (books.clone(), ids.to_vec());
            tokio::spawn(async move { books.settle_unleased(holder(), &ids).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("no panic").len(), 5);
    }

    assert_posted(&books, &drafts, &ids).await;
}
