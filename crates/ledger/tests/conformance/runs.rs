//! What open runs make due, by source and by day; when a run is finished, and what comes after that.

use crate::fixture::{Books, Named, Place, SOURCE, UNIT, batch, batches, claimed_ids, day, holder, operator};
use chrono::{Days, NaiveDate};
use domain::batch::BatchState;
use domain::ids::{BatchId, RunId};
use domain::run::RunKey;
use domain::unit::Unit;
use ledger::Guard;
use ledger::schedule::{Due, OpenRun, PlannedRun, RunFilter, RunHistory, Sources};
use ledger::settle::{Charge, Claim, ClaimRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const EVERY: &[Named] = tests![
    sources_in_any_order_are_one_set,
    the_newest_open_run_of_each_set_of_sources,
    only_batches_of_the_sources_are_due,
    what_two_runs_cover_is_due_with_both,
    a_missed_run_makes_nothing_due,
    r16_a_late_batch_is_due_again_under_the_newest_run,
    a_run_is_finished_once_and_its_elders_with_it,
    only_what_can_be_settled_keeps_a_run_from_its_end,
    r16_no_run_is_finished_over_a_batch_that_came_before,
    history_is_ordered_filtered_and_counted,
];

const ALL: RunFilter = RunFilter { schedule: None, limit: 100 };

fn later(days: u64) -> NaiveDate {
    day() + Days::new(days)
}

fn planned(schedule: &str, business_date: NaiveDate, sources: Sources) -> PlannedRun {
    let key = RunKey { schedule: schedule.to_owned(), business_date, slot: "02:00".to_owned() };
    PlannedRun { sources, ..PlannedRun::by_hand(key) }
}

async fn open(books: &Books, run: &PlannedRun) -> RunId {
    books.ledger.open_run(run, holder()).await.expect("a run")
}

async fn open_work(books: &Books) -> Vec<OpenRun> {
    books.ledger.open_work().await.expect("an answer")
}

async fn due_units(books: &Books, due: &Due) -> Vec<Unit> {
    books.ledger.due_units(due).await.expect("units")
}

async fn finish(books: &Books, due: &Due) -> u64 {
    books.ledger.finish(due).await.expect("an answer")
}

async fn history(books: &Books, filter: RunFilter) -> Vec<RunHistory> {
    books.ledger.history(&filter).await.expect("a history")
}

/// Claims whatever a run makes due, by whoever is next.
async fn claim(books: &Books, run: RunId, due: &Due) -> Vec<BatchId> {
    let stamp = books.hold(UNIT).await;
    let request = ClaimRequest { run, due: due.clone(), ..books.request(stamp, 1_000) };
    match books.ledger.claim(&request).await.expect("an answer") {
        Claim::Work(claimed) => {
            let ids = claimed_ids(&claimed);
            books.ledger.release(UNIT, stamp, &ids, true).await.expect("handed back");
            ids
        }
        refused @ (Claim::Fenced { .. } | Claim::ClaimLost) => panic!("{refused:?}"),
    }
}

async fn sources_in_any_order_are_one_set(place: Place) {
    let books = place.open().await;
    let first = open(&books, &planned("a", day(), Sources::only(["paypal", "adyen"]))).await;
    let second = open(&books, &planned("b", day(), Sources::only(["adyen", "paypal", "adyen"]))).await;
    let work = open_work(&books).await;
    let told: Vec<_> = work.iter().map(|run| (run.id, run.due.sources.names())).collect();
    let names = ["adyen".to_owned(), "paypal".to_owned()];
    assert_eq!(told, [(second, Some(&names[..])), (books.run, None)]);
    // one set: they end together
    assert_eq!(finish(&books, &Due { upto: day(), sources: Sources::only(["paypal", "adyen"]) }).await, 2);
    assert!(history(&books, ALL).await.iter().all(|run| run.finished_at.is_some() == [first, second].contains(&run.id)));
}

async fn the_newest_open_run_of_each_set_of_sources(place: Place) {
    let books = place.open().await;
    let only = |source: &str| Sources::only([source]);
    let newest = open(&books, &planned("nightly", later(2), Sources::ALL)).await;
    open(&books, &planned("nightly", later(1), Sources::ALL)).await;
    open(&books, &planned("a", day(), only("a"))).await;
    let a = open(&books, &planned("a", later(1), only("a"))).await;
    let twice = open(&books, &planned("again", later(1), only("a"))).await;
    assert!(twice > a, "of one day, the one that was opened last");
    let b = open(&books, &planned("b", day(), only("b"))).await;
    let work = open_work(&books).await;
    assert_eq!(work.iter().map(|run| run.id).collect::<Vec<_>>(), [twice, b, newest]);
    let run = &work[2];
    assert_eq!((run.key.business_date, &run.due, run.finished), (later(2), &Due::all(later(2)), false));
    assert_eq!(run.units, [], "nothing is there to be done");
}

/// Three sources, two schedules: what belongs to neither is due with neither, wherever it is asked.
async fn only_batches_of_the_sources_are_due(place: Place) {
    let books = place.open().await;
    // the run of all sources that every test begins with is of a day before
    let (today, a, b) = (later(1), Sources::only(["a"]), Sources::only(["b"]));
    let draft = |name: &str| [batch(name).charge("anna", 10_00, 30).on(today)];
    let of_a = books.take_in_from("a", &draft("A")).await;
    let of_b = books.take_in_from("b", &draft("B")).await;
    books.take_in_from("c", &draft("C")).await;
    let runs = [open(&books, &planned("a", today, a.clone())).await, open(&books, &planned("b", today, b.clone())).await];
    let work = open_work(&books).await;
    assert_eq!(work.iter().map(|run| run.units.clone()).collect::<Vec<_>>(), [vec![UNIT], vec![UNIT], vec![]]);
    for (run, ids) in work[..2].iter().zip([&of_a, &of_b]) {
        assert_eq!(claim(&books, run.id, &run.due).await, *ids);
        let status = books.ledger.status(Some(&run.due)).await.expect("a status");
        assert_eq!((status.batches, status.items), ([(BatchState::Pending, 1)].into(), 1));
    }
    assert_eq!(work[..2].iter().map(|run| run.id).collect::<Vec<_>>(), runs);
    let of_a_job = PlannedRun::for_job(RunKey { schedule: "report".to_owned(), ..RunKey::manual(today) });
    open(&books, &of_a_job).await;
    assert_eq!(due_units(&books, &of_a_job.due()).await, [], "a job of one's own makes no batch due");
    assert_eq!(open_work(&books).await.iter().map(|run| run.units.len()).sum::<usize>(), 2);
    assert_eq!(due_units(&books, &Due { upto: day(), sources: a.clone() }).await, [], "not yet");
    // what was charged before is asked for in other words than what was not, and what is given up in others again
    let stamp = books.hold(UNIT).await;
    let request = ClaimRequest { due: Due { upto: today, sources: b.clone() }, max_attempts: 2, ..books.request(stamp, 10) };
    for attempts in 1..=2 {
        let Claim::Work(claimed) = books.ledger.claim(&request).await.expect("an answer") else { panic!("it holds the unit") };
        assert_eq!((claimed_ids(&claimed), claimed.batches[0].attempts), (of_b.clone(), attempts));
        books.ledger.release(UNIT, stamp, &of_b, false).await.expect("handed back");
        books.raw.run(&format!("UPDATE settlement_batch SET attempts = {attempts}")).await.expect("all are charged");
    }
    let Claim::Work(claimed) = books.ledger.claim(&request).await.expect("an answer") else { panic!("it holds the unit") };
    assert_eq!((claimed.batches, claimed.quarantined), (vec![], of_b.clone()));
    books.raw.run("UPDATE settlement_batch SET state = 'pending', attempts = 0").await.expect("as they were");
    // and so does the row-lock guard
    books.ledger.adopt_config(1, Guard::RowLock, &operator()).await.expect("adopted");
    let anew = place.open_as(1, Guard::RowLock).await;
    let charge = Charge { due: Due { upto: today, sources: b }, ..anew.charge(holder(), 10, Duration::from_millis(1)) };
    for attempts in 1..=2 {
        let charged = anew.ledger.charge(&charge).await.expect("charged");
        assert_eq!((claimed_ids(&charged), charged.batches[0].attempts), (of_b.clone(), attempts));
        let all = format!("UPDATE settlement_batch SET attempts = {attempts}, retry_at = NULL");
        books.raw.run(&all).await.expect("all are charged");
    }
    let given_up = anew.ledger.charge(&Charge { max_attempts: 2, ..charge }).await.expect("an answer").quarantined;
    assert_eq!(given_up, of_b);
}

async fn what_two_runs_cover_is_due_with_both(place: Place) {
    let books = place.open().await;
    let ids = books.take_in(&batches(1)).await;
    open(&books, &planned("a", day(), Sources::only([SOURCE]))).await;
    for run in open_work(&books).await {
        assert_eq!((run.units.as_slice(), claim(&books, run.id, &run.due).await), (&[UNIT][..], ids.clone()));
    }
}

async fn a_missed_run_makes_nothing_due(place: Place) {
    let books = place.open().await;
    books.take_in(&[batch("A").charge("anna", 1, 0).on(later(1))]).await;
    open(&books, &planned("nightly", later(1), Sources::ALL)).await;
    let due = |books: Books| async move { open_work(&books).await.iter().map(|run| run.units.len()).sum::<usize>() };
    assert_eq!(due(books.clone()).await, 1);
    books.raw.run("UPDATE run SET state = 'missed', missed_slots = 1 WHERE schedule = 'nightly'").await.expect("missed");
    assert_eq!(due(books.clone()).await, 0);
    // nor does it end, or hide what is open before it
    assert_eq!(open_work(&books).await[0].id, books.run);
    assert_eq!(finish(&books, &Due::all(day())).await, 1);
    assert!(history(&books, ALL).await.iter().all(|run| run.finished_at.is_some() == (run.state == "open")));
}

async fn r16_a_late_batch_is_due_again_under_the_newest_run(place: Place) {
    let books = place.open().await;
    books.settled(&batches(1)).await;
    let newest = open(&books, &planned("nightly", later(1), Sources::ALL)).await;
    assert_eq!(finish(&books, &Due::all(later(1))).await, 2);
    let work = open_work(&books).await;
    assert_eq!((work[0].id, work[0].finished, work[0].units.as_slice()), (newest, true, &[][..]));
    // of the day before, whose own run is long over
    let late = books.take_in(&[batch("late").charge("anna", 1_00, 0)]).await;
    let work = open_work(&books).await;
    assert_eq!((work[0].id, work[0].units.as_slice()), (newest, &[UNIT][..]));
    let (stamp, books) = (books.hold(UNIT).await, Books { run: newest, ..books });
    assert_eq!(claimed_ids(&books.claim(stamp, 10).await), late);
    books.settle(stamp, &late).await.expect("settled");
    let settled: Vec<_> = history(&books, ALL).await.iter().map(|run| (run.id, run.batches_settled)).collect();
    assert_eq!(settled[0], (newest, 1));
    assert_eq!(finish(&books, &Due::all(later(1))).await, 0, "its end was noted, and stays as it was");
}

async fn a_run_is_finished_once_and_its_elders_with_it(place: Place) {
    let books = place.open().await;
    let other = open(&books, &planned("a", day(), Sources::only(["a"]))).await;
    let nightly = open(&books, &planned("nightly", later(1), Sources::ALL)).await;
    let tomorrow = open(&books, &planned("nightly", later(2), Sources::ALL)).await;
    assert_eq!(finish(&books, &Due::all(later(1))).await, 2);
    let ended = |history: Vec<RunHistory>| history.into_iter().map(|run| (run.id, run.finished_at)).collect::<Vec<_>>();
    let first = ended(history(&books, ALL).await);
    for (id, finished_at) in &first {
        assert_eq!(finished_at.is_some(), [books.run, nightly].contains(id), "{id}, not {other} or {tomorrow}");
    }
    assert_eq!(finish(&books, &Due::all(later(1))).await, 0);
    assert_eq!(ended(history(&books, ALL).await), first);
}

async fn only_what_can_be_settled_keeps_a_run_from_its_end(place: Place) {
    let books = place.open().await;
    let tomorrow = batch("tomorrow").charge("anna", 1, 0).on(later(1));
    let ids = books.take_in(&[batch("A").charge("anna", 1, 0), batch("B").charge("anna", 1, 0), tomorrow]).await;
    let due = Due::all(day());
    assert_eq!(finish(&books, &due).await, 0, "two are pending");
    let stamp = books.hold(UNIT).await;
    books.claim(stamp, 1).await;
    books.raw.run(&format!("UPDATE settlement_batch SET state = 'quarantined' WHERE id = {}", ids[1])).await.expect("given up");
    assert_eq!(finish(&books, &due).await, 0, "one is in somebody's hands");
    books.settle(stamp, &ids[..1]).await.expect("settled");
    assert_eq!(finish(&books, &due).await, 1, "what waits for a person, or for another day, is not waited for");
}

/// Files arrive while runs are finished, again and again. Who was told that a batch is in before somebody asked for the end of its
/// run is not overlooked; and whatever came too late for one run is due with the next.
async fn r16_no_run_is_finished_over_a_batch_that_came_before(place: Place) {
    let books = place.open().await;
    let begun = Instant::now();
    books.settled(&[batch("first").charge("anna", 1, 0)]).await;
    let (took, mut late) = (begun.elapsed(), 0);
    for round in 0..30 {
        let due = Due::all(later(round));
        open(&books, &planned("nightly", due.upto, Sources::ALL)).await;
        let is_in = Arc::new(AtomicBool::new(false));
        let importing = {
            let (books, is_in) = (books.clone(), is_in.clone());
            tokio::spawn(async move {
                let ids = books.take_in(&[batch(&format!("R{round}")).charge("anna", 1, 0).on(later(round))]).await;
                is_in.store(true, Ordering::SeqCst);
                ids
            })
        };
        // later and later: before the import, in it, after it
        tokio::time::sleep(took * u32::try_from(round).expect("few") / 15).await;
        let finished = loop {
            let (over, came_before) = (importing.is_finished(), is_in.load(Ordering::SeqCst));
            let finished = finish(&books, &due).await;
            assert!(finished == 0 || !came_before, "round {round}: finished over a batch that was in");
            if over || finished > 0 {
                break finished;
            }
        };
        let ids = importing.await.expect("no panic");
        late += u64::from(finished > 0);
        assert_eq!(open_work(&books).await[0].units, [UNIT], "round {round}: a batch nobody would settle");
        let stamp = books.hold(UNIT).await;
        let request = ClaimRequest { due, ..books.request(stamp, 10) };
        let claimed = books.ledger.claim(&request).await.expect("an answer");
        assert!(matches!(&claimed, Claim::Work(work) if claimed_ids(work) == ids), "{claimed:?}");
        books.settle(stamp, &ids).await.expect("settled");
    }
    println!("late for its run: {late} of 30");
    books.assert_books_hold().await;
}

async fn history_is_ordered_filtered_and_counted(place: Place) {
    let books = place.open().await;
    let nightly = open(&books, &planned("nightly", later(1), Sources::ALL)).await;
    // settled under the day's own run: two of the three
    let ids = books.settled(&batches(2)).await;
    books.take_in(&[batch("open").charge("anna", 1, 0)]).await;
    let stamp = books.hold(UNIT).await;
    assert_eq!(books.claim(stamp, 1).await.batches.len(), 1, "in somebody's hands under the same run, and not settled");
    let of_a = open(&books, &planned("a", day(), Sources::only(["a"]))).await;
    let told = |history: Vec<RunHistory>| history.into_iter().map(|run| (run.id, run.batches_settled)).collect::<Vec<_>>();
    let all = [(of_a, 0), (nightly, 0), (books.run, 2)];
    assert_eq!(told(history(&books, ALL).await), all);
    assert_eq!(told(history(&books, RunFilter { limit: 2, ..ALL }).await), all[..2]);
    let only = |name: &str| RunFilter { schedule: Some(name.to_owned()), limit: 100 };
    assert_eq!(told(history(&books, only("nightly")).await), all[1..2]);
    assert_eq!(told(history(&books, only("weekly")).await), []);
    let run = &history(&books, only(RunKey::MANUAL)).await[0];
    assert_eq!((&run.key, run.state.as_str()), (&RunKey::manual(day()), "open"));
    assert_eq!((run.scheduled_for, run.finished_at, run.missed_slots, &run.note), (None, None, 0, &None));
    assert_eq!(books.ledger.run_settled(books.run).await.expect("a count"), ids.len() as u64);
    // a job of one's own is a run too, but whether the night was settled is asked without it
    open(&books, &PlannedRun::for_job(RunKey { schedule: "report".to_owned(), ..RunKey::manual(later(5)) })).await;
    let last = books.ledger.status(None).await.expect("a status").last_run.expect("a run");
    assert_eq!((last.id, history(&books, ALL).await.len()), (of_a, 4));
}
