//! What operators look at and do: every change is legal, whole, and in the audit log.

use crate::fixture::{
    Books, LIMITS, MAX_ATTEMPTS, Named, Place, SOURCE, UNIT, batch, batches, claimed_ids, day, holder, operator,
};
use domain::batch::{BatchEvent, BatchState, next};
use domain::ids::{BatchId, HolderId};
use domain::outcome::SettleOutcome;
use domain::run::RunKey;
use domain::step::NoProbe;
use domain::totals::Remits;
use domain::unit::Unit;
use ledger::operate::{BatchFilter, Operator};
use ledger::schedule::{Due, PlannedRun};
use ledger::settle::{Authority, Claim, ClaimRequest, SettleWork};
use ledger::{Guard, LedgerError};

pub const EVERY: &[Named] = tests![
    a_quarantined_batch_is_tried_again,
    m18_a_cancelled_batch_makes_room_for_its_correction,
    an_accepted_difference_goes_to_suspense,
    a_batch_with_repeated_lines_is_not_accepted,
    what_the_state_forbids_changes_nothing,
    a_change_needs_a_reason,
    a_new_configuration_cuts_the_work_anew,
    a_holder_of_a_unit_that_is_gone_is_fenced,
    an_instance_of_the_old_configuration_imports_into_the_new_units,
    the_guard_is_adopted_too,
    lists_and_status_say_what_there_is,
];

async fn a_quarantined_batch_is_tried_again(place: Place) {
    let books = place.open().await;
    let id = books.take_in(&batches(1)).await[0];
    quarantine(&books, id).await;
    books.ledger.retry_batch(id, &operator()).await.expect("retried");
    assert_eq!(books.state(id).await, "pending 0");
    assert_eq!(audited(&books).await, [format!("olga, batch retry, {id}, a test")]);
    let stamp = books.hold(UNIT).await;
    let claimed = books.claim(stamp, 10).await;
    assert_eq!((claimed_ids(&claimed), claimed.batches[0].attempts), (vec![id], 1));
}

pub async fn quarantine(books: &Books, id: BatchId) {
    books.raw.run(&format!("UPDATE settlement_batch SET attempts = {MAX_ATTEMPTS} WHERE id = {id}")).await.expect("charged");
    let stamp = books.hold(UNIT).await;
    assert_eq!(books.claim(stamp, 1).await.quarantined, [id]);
}

pub async fn audited(books: &Books) -> Vec<String> {
    books.raw.texts("SELECT operator || ', ' || action || ', ' || subject || ', ' || reason FROM audit_log ORDER BY id").await
}

async fn m18_a_cancelled_batch_makes_room_for_its_correction(place: Place) {
    let books = place.open().await;
    let wrong = books.take_in(&[batch("A").charge("anna", 10_00, 0).keyed("psp-1")]).await[0];
    let corrected = batch("A").charge("anna", 12_00, 0).keyed("psp-1");
    assert!(matches!(books.import(std::slice::from_ref(&corrected)).await, Err(LedgerError::DifferentContent(_))));
    books.ledger.cancel_batch(wrong, &operator()).await.expect("cancelled");
    let outcome = books.import(&[corrected]).await.expect("an import");
    assert_eq!((outcome.items_accepted, outcome.items_duplicate, outcome.batches[0].state), (1, 0, BatchState::Pending));
    let row = books.ledger.batch(outcome.batches[0].id).await.expect("the batch").row;
    assert_eq!((row.revision, row.external_batch_id.as_str()), (2, "A"));
    assert_eq!(books.state(wrong).await, "cancelled 0");
    assert_eq!(audited(&books).await, [format!("olga, batch cancel, {wrong}, a test")]);
    let stamp = books.hold(UNIT).await;
    books.claim(stamp, 1).await;
    books.settle(stamp, &[row.id]).await.expect("settled");
    assert_eq!(books.raw.texts("SELECT entry_key FROM journal_entry").await, [format!("settle:{}:2:EUR", row.id)]);
    books.assert_books_hold().await;
}

async fn an_accepted_difference_goes_to_suspense(place: Place) {
    let books = place.open().await;
    let draft = batch("A").charge("anna", 10_00, 30).remittance(9_00).remits(Remits::ByLine, 5);
    let id = books.take_in(&[draft]).await[0];
    books.ledger.accept_batch(id, &operator()).await.expect("accepted");
    let detail = books.ledger.batch(id).await.expect("the batch");
    let total = &detail.totals[0];
    assert_eq!((detail.row.state, total.difference_minor, total.accepted_minor), (BatchState::Pending, 70, 70));
    assert_eq!(audited(&books).await, [format!("olga, batch accept, {id}, a test")]);
    let stamp = books.hold(UNIT).await;
    books.claim(stamp, 1).await;
    books.settle(stamp, &[id]).await.expect("settled");
    let posted = books.ledger.batch(id).await.expect("the batch").postings;
    let posted: Vec<_> = posted.iter().map(|p| (p.side.as_str(), p.account.as_str(), p.amount_minor)).collect();
    let (debits, credits): (Vec<_>, Vec<_>) = posted.into_iter().partition(|(side, ..)| *side == "D");
    assert_eq!(debits, [("D", "bank", 9_00), ("D", "clearing", 9_70), ("D", "suspense", 70)]);
    assert_eq!(credits, [("C", "clearing", 9_70), ("C", "merchant_payable:anna", 9_70)]);
    books.assert_books_hold().await;
}

async fn a_batch_with_repeated_lines_is_not_accepted(place: Place) {
    let books = place.open().await;
    books.take_in(&[batch("A").charge("anna", 10_00, 0).keyed("psp-1")]).await;
    let id = books.take_in(&[batch("B").charge("anna", 1_00, 0).charge("anna", 10_00, 0).keyed("psp-1")]).await[0];
    let before = books.raw.tables().await;
    let error = books.ledger.accept_batch(id, &operator()).await.expect_err("a repeated line");
    assert!(matches!(error, LedgerError::NotAcceptable(..)), "{error:?}");
    assert!(error.to_string().contains("lines 2 repeat"), "{error}");
    assert_eq!(before, books.raw.tables().await);
}

const OPERATORS: [BatchEvent; 4] = [BatchEvent::Retry, BatchEvent::Accept, BatchEvent::Cancel, BatchEvent::Reverse];

/// Every state that a ledger shows, and every event that an operator has.
async fn what_the_state_forbids_changes_nothing(place: Place) {
    let books = place.open().await;
    let quarantined = books.take_in(&[batch("Q").charge("anna", 1, 0)]).await[0];
    quarantine(&books, quarantined).await;
    books.settled(&[batch("S").charge("anna", 1, 0)]).await;
    let reversed = books.settled(&[batch("R").charge("anna", 1, 0)]).await[0];
    books.ledger.reverse_batch(reversed, &operator()).await.expect("reversed");
    books.claimed(&[batch("C").charge("anna", 1, 0)]).await;
    let cancelled = books.take_in(&[batch("X")]).await[0];
    books.ledger.cancel_batch(cancelled, &operator()).await.expect("cancelled");
    books.take_in(&[batch("P"), batch("B").charge("anna", 1, 0).remits(Remits::ByLine, 0)]).await;
    let before = books.raw.tables().await;
    let rows = books.ledger.batches(&BatchFilter { limit: 100, ..BatchFilter::default() }).await.expect("a list");
    assert_eq!(rows.len(), 7, "one in each state");
    let mut refused = 0;
    for row in rows {
        for event in OPERATORS {
            let Err(illegal) = next(row.state, event) else { continue };
            let error = operate(&books, row.id, event).await.expect_err("illegal");
            let LedgerError::Illegal { batch, source } = error else { panic!("{error:?}") };
            assert_eq!((batch, source), (row.id, illegal));
            refused += 1;
        }
    }
    assert_eq!(refused, 22);
    for event in OPERATORS {
        assert!(matches!(operate(&books, BatchId(999), event).await, Err(LedgerError::NoSuchBatch(BatchId(999)))));
    }
    assert!(matches!(books.ledger.batch(BatchId(999)).await, Err(LedgerError::NoSuchBatch(BatchId(999)))));
    assert_eq!(before, books.raw.tables().await);
}

async fn operate(books: &Books, id: BatchId, event: BatchEvent) -> Result<(), LedgerError> {
    match event {
        BatchEvent::Retry => books.ledger.retry_batch(id, &operator()).await,
        BatchEvent::Accept => books.ledger.accept_batch(id, &operator()).await,
        BatchEvent::Reverse => books.ledger.reverse_batch(id, &operator()).await,
        _ => books.ledger.cancel_batch(id, &operator()).await,
    }
}

async fn a_change_needs_a_reason(place: Place) {
    let books = place.open().await;
    let id = books.take_in(&batches(1)).await[0];
    let before = books.raw.tables().await;
    let silent = Operator { reason: String::new(), ..operator() };
    books.ledger.cancel_batch(id, &silent).await.expect_err("no reason");
    books.ledger.adopt_source("etcd", &silent).await.expect_err("no reason");
    books.ledger.adopt_config(3, Guard::RowLock, &silent).await.expect_err("no reason");
    assert_eq!(before, books.raw.tables().await);
}

/// A name of a batch of `unit` of four.
fn name_in(unit: i32) -> String {
    let named = |name: &String| Unit::of_batch(SOURCE, name, 4) == Unit(unit);
    (0..).map(|n| format!("B{n}")).find(named).expect("one of them")
}

/// One claimed batch in each unit of four, and its holder.
async fn held(books: &Books) -> Vec<(ClaimRequest, BatchId)> {
    let drafts: Vec<_> = (0..4).map(|unit| batch(&name_in(unit)).charge("anna", 1_00, 0)).collect();
    let mut held = Vec::new();
    for (unit, id) in (0..).map(Unit).zip(books.take_in(&drafts).await) {
        let request = ClaimRequest { unit, ..books.request(books.hold(unit).await, 10) };
        let Claim::Work(claimed) = books.ledger.claim(&request).await.expect("an answer") else { panic!("{unit}") };
        assert_eq!(claimed_ids(&claimed), [id]);
        held.push((request, id));
    }
    held
}

async fn a_new_configuration_cuts_the_work_anew(place: Place) {
    let books = place.open_as(4, Guard::Lease).await;
    let held = held(&books).await;
    let settled = SettleWork {
        authority: Authority::Lease { unit: Unit(0), stamp: held[0].0.stamp },
        run: books.run,
        batches: &[held[0].1],
        limits: LIMITS,
    };
    assert_eq!(books.ledger.settle(&settled, &NoProbe).await.expect("an answer"), [(held[0].1, SettleOutcome::Settled)]);
    books.ledger.adopt_config(2, Guard::Lease, &operator()).await.expect("adopted");
    assert_eq!(audited(&books).await, ["olga, config adopt, worker.partitions = 2, worker.guard = lease, a test"]);
    for (_, id) in &held[1..] {
        let row = books.ledger.batch(*id).await.expect("the batch").row;
        assert_eq!((row.unit, row.state), (Unit::of_batch(SOURCE, &row.external_batch_id, 2), BatchState::Pending));
    }
    assert!(matches!(ledger::open(&place.options(4, Guard::Lease)).await.err(), Some(LedgerError::Differs { .. })));
    let anew = place.open_as(2, Guard::Lease).await;
    let units: Vec<_> =
        anew.ledger.fences().await.expect("fences").iter().map(|fence| (fence.unit, fence.stamp.holder)).collect();
    assert_eq!(units, [(Unit(0), HolderId::NOBODY), (Unit(1), HolderId::NOBODY)]);
    for unit in anew.ledger.due_units(&Due::all(day())).await.expect("units") {
        let request = ClaimRequest { unit, ..anew.request(anew.hold(unit).await, 10) };
        assert!(matches!(anew.ledger.claim(&request).await.expect("an answer"), Claim::Work(_)));
    }
    anew.assert_books_hold().await;
}

/// A frozen holder of any of the old units, also of one that is not a unit any more, is refused and counted.
async fn a_holder_of_a_unit_that_is_gone_is_fenced(place: Place) {
    let books = place.open_as(4, Guard::Lease).await;
    let held = held(&books).await;
    books.ledger.adopt_config(2, Guard::Lease, &operator()).await.expect("adopted");
    for (request, id) in &held {
        let (unit, stamp) = (request.unit, request.stamp);
        let stored = books.ledger.register(unit, stamp).await.expect("an answer");
        assert!(stored.fence > stamp.fence, "{unit}: {stored:?}");
        assert_eq!(books.ledger.claim(request).await.expect("an answer"), Claim::Fenced { stored });
        let authority = Authority::Lease { unit, stamp };
        let work = SettleWork { authority, run: books.run, batches: &[*id], limits: LIMITS };
        let outcomes = books.ledger.settle(&work, &NoProbe).await.expect("an answer");
        assert_eq!(outcomes, [(*id, SettleOutcome::Fenced { settled: false })]);
    }
    assert_eq!(books.raw.count("fence_rejection").await, 8);
    assert_eq!(books.raw.count("journal_entry").await, 0);
}

/// One that was not stopped: its batches must be where the new instances look for them.
async fn an_instance_of_the_old_configuration_imports_into_the_new_units(place: Place) {
    let old = place.open_as(4, Guard::Lease).await;
    let new = place.open_as(4, Guard::Lease).await;
    new.ledger.adopt_config(2, Guard::Lease, &operator()).await.expect("adopted");
    let drafts: Vec<_> = (0..4).map(|unit| batch(&name_in(unit)).charge("anna", 1_00, 0)).collect();
    for id in old.take_in(&drafts).await {
        let row = new.ledger.batch(id).await.expect("the batch").row;
        assert_eq!(row.unit, Unit::of_batch(SOURCE, &row.external_batch_id, 2));
    }
}

async fn the_guard_is_adopted_too(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(2)).await;
    books.ledger.adopt_config(1, Guard::RowLock, &operator()).await.expect("adopted");
    let anew = place.open_as(1, Guard::RowLock).await;
    assert_eq!(anew.settle_unleased(holder(), &ids[..1]).await, [(ids[0], SettleOutcome::Settled)]);
    let outcomes = books.settle(old, &ids).await.expect("an answer");
    let fenced = |settled| SettleOutcome::Fenced { settled };
    assert_eq!(outcomes, [(ids[0], fenced(true)), (ids[1], fenced(false))]);
    anew.assert_books_hold().await;
}

async fn lists_and_status_say_what_there_is(place: Place) {
    let books = place.open().await;
    let tomorrow = day().succ_opt().expect("a day");
    let first = books.settled(&batches(2)).await;
    let late = books.take_in(&[batch("later").charge("anna", 1, 0).on(tomorrow)]).await[0];
    let list = async |filter| books.ledger.batches(&filter).await.expect("a list").iter().map(|row| row.id).collect::<Vec<_>>();
    let all = BatchFilter { limit: 100, ..BatchFilter::default() };
    assert_eq!(list(all.clone()).await, [late, first[0], first[1]]);
    assert_eq!(list(BatchFilter { limit: 2, ..all.clone() }).await, [late, first[0]]);
    assert_eq!(list(BatchFilter { state: Some(BatchState::Settled), ..all.clone() }).await, first);
    assert_eq!(list(BatchFilter { business_date: Some(tomorrow), ..all }).await, [late]);
    let status = books.ledger.status(Some(&Due::all(day()))).await.expect("a status");
    assert_eq!((status.batches, status.items, status.fence_rejections), ([(BatchState::Settled, 2)].into(), 4, 0));
    let status = books.ledger.status(None).await.expect("a status");
    assert_eq!((status.batches[&BatchState::Pending], status.items), (1, 5));
    let key = RunKey { schedule: "nightly".to_owned(), business_date: tomorrow, slot: "02:00".to_owned() };
    let run = books.ledger.open_run(&PlannedRun::by_hand(key.clone()), holder()).await.expect("a run");
    let last = books.ledger.status(None).await.expect("a status").last_run.expect("a run");
    assert_eq!((last.id, last.schedule, last.business_date, last.slot), (run, key.schedule, key.business_date, key.slot));
}
