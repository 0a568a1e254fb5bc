//! Files in: once, whole, or not at all.

use crate::fixture::{Books, Named, Place, batch, batches, day, feed, file};
use crate::start::{Child, IMPORT};
use domain::batch::BatchState;
use domain::idempotency::occurrence_key;
use domain::item::ItemKind;
use domain::totals::{Declared, Remits};
use ledger::LedgerError;
use ledger::import::{ImportMode, Staged};
use std::time::Duration;
use tokio::sync::mpsc;

pub const EVERY: &[Named] = tests![
    a_new_file_goes_in,
    the_same_file_again_changes_nothing,
    only_new_batches_of_a_file_go_in,
    other_content_is_shown_and_refused,
    a_file_that_was_not_read_to_its_end_leaves_no_row,
    the_summary_ends_the_file,
    r8_a_reader_that_stands_still_holds_nobody,
    m10_a_repeated_line_breaks_its_batch,
    m10_a_line_of_another_batch_breaks_it,
    m10_two_legal_twins_are_two_lines,
    a_batch_that_does_not_foot_is_broken,
    m9_two_batches_of_one_day_are_two,
    m3_amounts_near_64_bits_go_in,
    text_arrives_as_it_was_sent,
    m5_memory_stays_bounded,
    four_imports_of_one_file_at_once,
    m4_imports_that_share_accounts,
];

async fn a_new_file_goes_in(place: Place) {
    let books = place.open().await;
    let outcome = books.import(&batches(3)).await.expect("an import");
    assert_eq!((outcome.items_accepted, outcome.items_duplicate), (6, 0));
    let seen: Vec<_> = outcome
        .batches
        .iter()
        .map(|b| (b.external_batch_id.as_str(), b.state, b.items, b.already_there, b.business_date))
        .collect();
    let new = |name| (name, BatchState::Pending, 2, false, day());
    assert_eq!(seen, [new("B0000"), new("B0001"), new("B0002")]);
    let detail = books.ledger.batch(outcome.batches[1].id).await.expect("the batch");
    assert_eq!((detail.row.source.as_str(), detail.row.revision, detail.row.attempts), ("acquirer", 1, 0));
    assert_eq!((detail.file.as_str(), detail.postings.len(), detail.settled_at), ("day.csv", 0, None));
    let total = &detail.totals[0];
    assert_eq!((total.items, total.gross_minor, total.fee_minor, total.net_minor), (2, 30_00, 80, 29_20));
    assert_eq!(books.raw.count("settled_item").await, 6);
    books.assert_books_hold().await;
}

async fn the_same_file_again_changes_nothing(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(3)).await;
    let before = books.raw.tables().await;
    let again = books.import(&batches(3)).await.expect("an import");
    assert_eq!((again.items_accepted, again.items_duplicate), (0, 6));
    assert!(again.batches.iter().all(|batch| batch.already_there && batch.items == 2));
    assert_eq!(again.batches.iter().map(|batch| batch.id).collect::<Vec<_>>(), ids);
    assert_eq!(before, books.raw.tables().await);
}

async fn only_new_batches_of_a_file_go_in(place: Place) {
    let books = place.open().await;
    let known = books.settled(&batches(2)[1..]).await;
    let outcome = books.import(&batches(3)).await.expect("an import");
    assert_eq!((outcome.items_accepted, outcome.items_duplicate), (4, 2));
    let there: Vec<_> = outcome.batches.iter().map(|batch| (batch.already_there, batch.state)).collect();
    assert_eq!(there, [(false, BatchState::Pending), (true, BatchState::Settled), (false, BatchState::Pending)]);
    assert_eq!(outcome.batches[1].id, known[0]);
    assert_eq!(books.raw.count("settlement_batch").await, 3);
}

async fn other_content_is_shown_and_refused(place: Place) {
    let books = place.open().await;
    books.take_in(&[batch("A").charge("anna", 10_00, 30)]).await;
    let before = books.raw.tables().await;
    let corrected = [batch("NEW").charge("bert", 1_00, 0), batch("A").charge("anna", 12_00, 30)];
    let error = books.import(&corrected).await.expect_err("other content");
    assert!(matches!(error, LedgerError::DifferentContent(_)), "{error:?}");
    let text = error.to_string();
    for part in [
        "day.csv:2",
        "\"A\"",
        "gross 10.00, fee 0.30, net 9.70 EUR",
        "gross 12.00, fee 0.30, net 11.70 EUR",
        "batch replace --file day.csv",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert_eq!(before, books.raw.tables().await);
}

async fn a_file_that_was_not_read_to_its_end_leaves_no_row(place: Place) {
    let books = place.open().await;
    let before = books.raw.tables().await;
    let (sender, receiver) = mpsc::channel(4);
    sender.send(Staged::Items(file(&batches(10)).items)).await.expect("room");
    drop(sender);
    let error = books.ledger.import(receiver, &ImportMode::add("olga")).await.expect_err("no end");
    assert!(matches!(error, LedgerError::ImportAborted), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    books.take_in(&batches(10)).await;
}

/// A reader that keeps its end of the channel, perhaps until it is told what became of the file.
async fn the_summary_ends_the_file(place: Place) {
    let books = place.open().await;
    let file = file(&batches(1));
    let (sender, receiver) = mpsc::channel(4);
    sender.send(Staged::Items(file.items)).await.expect("room");
    sender.send(Staged::End(Box::new(file.summary))).await.expect("room");
    let mode = ImportMode::add("olga");
    let import = tokio::time::timeout(Duration::from_secs(60), books.ledger.import(receiver, &mode));
    assert_eq!(import.await.expect("it ends").expect("an import").items_accepted, 2);
    drop(sender);
}

/// Half a file is staged, and its reader is frozen: others import and settle, also the same batches.
async fn r8_a_reader_that_stands_still_holds_nobody(place: Place) {
    let books = place.open().await;
    let (frozen, receiver) = mpsc::channel(4);
    let file = file(&batches(5));
    frozen.send(Staged::Items(file.items)).await.expect("room");
    let ledger = books.ledger.clone();
    let import = tokio::spawn(async move { ledger.import(receiver, &ImportMode::add("olga")).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    tokio::time::timeout(Duration::from_secs(60), books.settled(&batches(3))).await.expect("nobody waits");
    frozen.send(Staged::End(Box::new(file.summary))).await.expect("it reads on");
    let outcome = import.await.expect("no panic").expect("an import");
    assert_eq!((outcome.items_accepted, outcome.items_duplicate), (4, 6));
    books.assert_books_hold().await;
}

async fn m10_a_repeated_line_breaks_its_batch(place: Place) {
    let books = place.open().await;
    let draft =
        batch("A").charge("anna", 10_00, 0).keyed("psp-1").charge("bert", 10_00, 0).charge("anna", 10_00, 0).keyed("psp-1");
    let outcome = books.import(&[draft, batch("B").charge("anna", 1, 0)]).await.expect("an import");
    let states: Vec<_> = outcome.batches.iter().map(|batch| batch.state).collect();
    assert_eq!(states, [BatchState::Broken, BatchState::Pending]);
    assert_eq!((outcome.items_accepted, outcome.items_duplicate), (3, 1));
    let id = outcome.batches[0].id;
    let reason = outcome.batches[0].break_reason.clone().expect("a reason");
    assert_eq!(reason, format!("line 3 repeats \"psp-1\" of batch {id}, line 1"));
    assert_eq!(books.ledger.batch(id).await.expect("the batch").row.break_reason, Some(reason));
    books.assert_books_hold().await;
}

async fn m10_a_line_of_another_batch_breaks_it(place: Place) {
    let books = place.open().await;
    let first = books.take_in(&[batch("A").charge("anna", 5_00, 0).charge("anna", 10_00, 0).keyed("psp-1")]).await[0];
    let outcome = books
        .import(&[
            batch("B").charge("bert", 1_00, 0).charge("anna", 10_00, 0).keyed("psp-1"),
            batch("C").charge("x", 1, 0).keyed("B/0"),
        ])
        .await
        .expect("an import");
    let reasons: Vec<_> = outcome.batches.iter().map(|batch| batch.break_reason.clone().expect("a reason")).collect();
    let second = outcome.batches[0].id;
    let expected = [
        format!("line 2 repeats \"psp-1\" of batch {first}, line 2"),
        format!("line 3 repeats \"B/0\" of batch {second}, line 1"),
    ];
    assert_eq!(reasons, expected);
    assert_eq!((outcome.items_accepted, outcome.items_duplicate), (1, 2));
    books.assert_books_hold().await;
}

async fn m10_two_legal_twins_are_two_lines(place: Place) {
    let books = place.open().await;
    let twin = |n| occurrence_key("A", "c0ffee", n);
    let draft = batch("A").charge("anna", 10_00, 0).keyed(&twin(0)).charge("anna", 10_00, 0).keyed(&twin(1));
    let outcome = books.import(&[draft]).await.expect("an import");
    assert_eq!((outcome.batches[0].state, outcome.items_accepted), (BatchState::Pending, 2));
}

async fn a_batch_that_does_not_foot_is_broken(place: Place) {
    let books = place.open().await;
    let declared = Declared { gross_minor: Some(99_00), ..Declared::default() };
    let wrong = batch("A").charge("anna", 10_00, 0).declares("EUR", declared);
    let unpaid = batch("B").charge("anna", 10_00, 0).remittance(9_00).remits(Remits::ByLine, 5);
    let within = batch("C").charge("anna", 10_00, 0).remittance(9_99).remits(Remits::ByLine, 5);
    let outcome = books.import(&[wrong, unpaid, within]).await.expect("an import");
    let seen: Vec<_> = outcome.batches.iter().map(|batch| (batch.state, batch.break_reason.as_deref())).collect();
    assert_eq!(
        seen,
        [
            (BatchState::Broken, Some("declares gross of 99.00 EUR, rows sum to 10.00")),
            (BatchState::Broken, Some("rows net 10.00 EUR, remittance 9.00 EUR: 1.00 left over")),
            (BatchState::Pending, None)
        ]
    );
    assert_eq!(outcome.items_accepted, 5);
    books.assert_books_hold().await;
}

async fn m9_two_batches_of_one_day_are_two(place: Place) {
    let books = place.open().await;
    let morning = books.settled(&[batch("1001").charge("anna", 10_00, 0)]).await;
    let evening = books.settled(&[batch("1002").charge("anna", 10_00, 0)]).await;
    assert_ne!(morning, evening);
    let owed = "SELECT sum(credit_minor) FROM account_balance b JOIN account a ON a.id = b.account_id WHERE code = 'merchant_payable:anna'";
    assert_eq!(books.raw.number(owed).await, 20_00);
}

async fn m3_amounts_near_64_bits_go_in(place: Place) {
    let books = place.open().await;
    let huge = i64::MAX - 1;
    let draft = batch("A").charge("anna", huge, 0).line("JPY", ItemKind::Refund, "anna", -huge, 0);
    let id = books.take_in(&[draft]).await[0];
    let totals = books.ledger.batch(id).await.expect("the batch").totals;
    let gross: Vec<_> = totals.iter().map(|total| (total.currency.as_str(), total.gross_minor)).collect();
    assert_eq!(gross, [("EUR", huge), ("JPY", -huge)]);
}

async fn text_arrives_as_it_was_sent(place: Place) {
    let books = place.open().await;
    let names = ["tab\there", "line\nfeed\r", "back\\slash \\N \\.", "quote'\"", "Ærøskøbing 東京", "percent %s $1 ;"];
    let draft = names.iter().fold(batch("A \\N 'x'"), |draft, name| draft.charge(name, 1_00, 0).keyed(&format!("key {name}")));
    books.settled(&[draft]).await;
    let mut stored = books.raw.texts("SELECT merchant FROM batch_item ORDER BY line_no").await;
    assert_eq!(stored, names);
    stored.iter_mut().for_each(|name| name.insert_str(0, "key "));
    assert_eq!(books.raw.texts("SELECT dedupe_key FROM batch_item ORDER BY line_no").await, stored);
    books.assert_books_hold().await;
}

/// A process that imports 200,000 lines: it would be larger by their 50 MB if it kept them.
async fn m5_memory_stays_bounded(place: Place) {
    let books = place.open().await;
    let mut child = Child::start(IMPORT, &place.url);
    assert!(child.ended(Duration::from_secs(240)).await, "the import failed");
    assert_eq!(books.raw.count("batch_item").await, 200_000);
    assert_eq!(books.raw.count("settlement_batch WHERE state = 'pending'").await, 4_000);
    let peak = child.peak_rss_bytes() >> 20;
    assert!(peak < 64, "{peak} MB");
}

/// What that process does. Lines are made while they are sent, so that it holds none itself.
pub async fn import_200_000_lines(books: &Books) {
    let (sender, receiver) = mpsc::channel(2);
    let reader = tokio::spawn(async move {
        let mut whole = file(&[]).summary;
        for index in 0..4_000 {
            let draft = (0..50).fold(batch(&format!("B{index}")), |draft, n| draft.charge(&format!("m{}", n % 20), 10_00 + n, 3));
            let mut one = file(&[draft]);
            for staged in &mut one.items {
                staged.batch = index;
                staged.item.line_no += i64::from(index) * 50;
            }
            whole.batches.append(&mut one.summary.batches);
            whole.items += 50;
            sender.send(Staged::Items(one.items)).await.expect("the import reads");
        }
        sender.send(Staged::End(Box::new(whole))).await.expect("the import reads");
    });
    let outcome = books.ledger.import(receiver, &ImportMode::add("olga")).await.expect("an import");
    reader.await.expect("the reader ends");
    assert_eq!((outcome.items_accepted, outcome.batches.len()), (200_000, 4_000));
}

async fn four_imports_of_one_file_at_once(place: Place) {
    let books = place.open().await;
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let books = books.clone();
            tokio::spawn(async move { books.import(&batches(20)).await })
        })
        .collect();
    let (mut accepted, mut duplicate) = (0, 0);
    for task in tasks {
        let outcome = task.await.expect("no panic").expect("an import");
        assert_eq!(outcome.batches.len(), 20);
        accepted += outcome.items_accepted;
        duplicate += outcome.items_duplicate;
    }
    assert_eq!((accepted, duplicate), (40, 120));
    assert_eq!(books.raw.count("settlement_batch").await, 20);
    assert_eq!(books.raw.count("import_file").await, 1);
    books.assert_books_hold().await;
}

/// Five files at once, each with new accounts of the same three merchants, named in another order each time.
async fn m4_imports_that_share_accounts(place: Place) {
    let books = place.open().await;
    for round in 0..5 {
        let tasks: Vec<_> = (0..5)
            .map(|task: usize| {
                let merchants = (0..3).map(move |n| format!("r{round}-m{}", (n + task) % 3));
                let draft =
                    merchants.fold(batch(&format!("R{round}T{task}")), |draft, merchant| draft.charge(&merchant, 1_00, 0));
                let (ledger, receiver) = (books.ledger.clone(), feed(file(&[draft])));
                tokio::spawn(async move { ledger.import(receiver, &ImportMode::add("olga")).await })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic").expect("an import");
        }
    }
    assert_eq!(books.raw.count("account WHERE code LIKE 'merchant_payable:%'").await, 15);
    assert_eq!(books.raw.count("settlement_batch WHERE state = 'pending'").await, 25);
}
