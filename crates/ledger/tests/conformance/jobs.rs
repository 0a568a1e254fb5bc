//! One's own jobs: a unit for each name, and an end that only its newest holder can note.

use crate::fixture::{Books, Named, Place, UNIT, batches, changed, day, holder, operator, stamp};
use domain::fence::Stamp;
use domain::ids::{HolderId, RunId};
use domain::run::RunKey;
use domain::unit::Unit;
use ledger::job::JobEnd;
use ledger::schedule::{PlannedRun, Sources};
use ledger::{Guard, Operation, Rejection};
use std::collections::BTreeSet;
use std::time::Duration;

pub const EVERY: &[Named] = tests![
    r3_a_name_has_one_unit_whoever_asks,
    a_name_is_its_bytes,
    a_new_job_is_of_the_newest_generation,
    no_job_is_new_behind_a_raised_generation,
    a_job_is_done_once_per_run,
    r1_a_superseded_holder_finishes_nothing,
    a_newer_holder_is_told_that_it_is_done,
    a_run_of_jobs_is_no_work_and_ends_with_its_job,
    an_unknown_holder_has_lost_its_claim,
    adopting_a_source_takes_jobs_too,
    adopting_a_configuration_takes_jobs_too,
    fences_of_jobs_have_their_names,
    refused_jobs_leave_the_books_as_they_are,
];
pub const POSTGRES: &[Named] = tests![r1_finishing_waits_for_the_takeover_in_flight];

const JOB: &str = "nightly-report";
const FIRST: Unit = Unit(1_000_000);

/// The job's unit and a holder of it.
async fn held(books: &Books) -> (Unit, Stamp) {
    let unit = books.ledger.job_unit(JOB).await.expect("a unit");
    (unit, books.hold(unit).await)
}

async fn finish(books: &Books, unit: Unit, mine: Stamp) -> JobEnd {
    books.ledger.finish_job(JOB, books.run, unit, mine).await.expect("an answer")
}

async fn done(books: &Books) -> Option<Stamp> {
    books.ledger.job_done(JOB, books.run).await.expect("an answer")
}

async fn r3_a_name_has_one_unit_whoever_asks(place: Place) {
    let books = place.open().await;
    let instances = [books.ledger.clone(), ledger::open(&place.options(1, Guard::Lease)).await.expect("another instance")];
    let ask = |n: usize, name: String| {
        let ledger = instances[n % 2].clone();
        tokio::spawn(async move { (name.clone(), ledger.job_unit(&name).await.expect("a unit")) })
    };
    // twenty at once for each of two names, and twenty names
    let names = |n: usize| [JOB.to_owned(), "other".to_owned(), format!("job {n}")];
    let tasks: Vec<_> = (0..20).flat_map(|n| names(n).map(|name| ask(n, name))).collect();
    let mut given = BTreeSet::new();
    for task in tasks {
        given.insert(task.await.expect("no panic"));
    }
    let units: BTreeSet<_> = given.iter().map(|(_, unit)| *unit).collect();
    assert_eq!((given.len(), units.len()), (22, 22), "one unit a name, one name a unit: {given:?}");
    assert_eq!(units.first(), Some(&FIRST));
    assert_eq!(books.raw.count("unit_fence WHERE unit >= 1000000").await, 22);
    for (name, unit) in given {
        assert_eq!(books.ledger.job_unit(&name).await.expect("a unit"), unit, "for ever");
    }
}

async fn a_name_is_its_bytes(place: Place) {
    let books = place.open().await;
    let mut units = BTreeSet::new();
    for name in ["report", "Report", "report ", "r\u{e9}port", "re\u{301}port"] {
        units.insert(books.ledger.job_unit(name).await.expect("a unit"));
    }
    assert_eq!(units.len(), 5);
}

async fn a_new_job_is_of_the_newest_generation(place: Place) {
    let books = place.open().await;
    let old = stamp(books.ledger.generation("ledger").await.expect("the first"), i64::MAX, holder());
    books.ledger.adopt_source("ledger", &operator()).await.expect("adopted");
    let unit = books.ledger.job_unit(JOB).await.expect("a unit");
    let nobody = stamp(2, 0, HolderId::NOBODY);
    assert_eq!(books.ledger.fence(unit).await.expect("a fence"), nobody);
    assert_eq!(books.ledger.register(unit, old).await.expect("an answer"), nobody);
    let new = books.hold(unit).await;
    assert_eq!((new.fence.generation, books.ledger.fence(unit).await.expect("a fence")), (2, new));
}

/// Names are given while the generation is raised: none of their rows is left behind for an old holder.
async fn no_job_is_new_behind_a_raised_generation(place: Place) {
    let books = place.open().await;
    books.ledger.generation("ledger").await.expect("the first");
    for round in 0..10 {
        let naming: Vec<_> = (0..4)
            .map(|n| {
                let ledger = books.ledger.clone();
                tokio::spawn(async move { ledger.job_unit(&format!("{round} {n}")).await.expect("a unit") })
            })
            .collect();
        let raised = books.ledger.adopt_source("ledger", &operator()).await.expect("adopted");
        for task in naming {
            let unit = task.await.expect("no panic");
            assert_eq!(books.ledger.fence(unit).await.expect("a fence").fence.generation, raised, "round {round}");
        }
    }
}

async fn a_job_is_done_once_per_run(place: Place) {
    let books = place.open().await;
    let (unit, mine) = held(&books).await;
    assert_eq!(done(&books).await, None);
    assert_eq!(finish(&books, unit, mine).await, JobEnd::Done);
    assert_eq!(done(&books).await, Some(mine));
    let before = books.raw.tables().await;
    assert_eq!(finish(&books, unit, mine).await, JobEnd::Done, "the reply to the first was lost");
    assert_eq!(before, books.raw.tables().await);
    // another run, another job
    let key = RunKey { slot: "02:00".to_owned(), ..RunKey::manual(day()) };
    let other: RunId = books.ledger.open_run(&PlannedRun::by_hand(key), holder()).await.expect("a run");
    assert_eq!(books.ledger.job_done(JOB, other).await.expect("an answer"), None);
    assert_eq!(books.ledger.job_done("other", books.run).await.expect("an answer"), None);
    assert_eq!(books.ledger.finish_job(JOB, other, unit, mine).await.expect("an answer"), JobEnd::Done);
    assert_eq!(books.raw.count("job_run").await, 2);
}

async fn r1_a_superseded_holder_finishes_nothing(place: Place) {
    let books = place.open().await;
    let (unit, old) = held(&books).await;
    let new = books.hold(unit).await;
    let before = books.raw.tables().await;
    assert_eq!(finish(&books, unit, old).await, JobEnd::Fenced { stored: new });
    assert_eq!(changed(&before, &books.raw.tables().await), ["fence_rejection".to_owned()].into());
    let kept = &books.ledger.rejections(10).await.expect("a list")[..];
    let [kept] = kept else { panic!("{kept:?}") };
    assert_eq!((kept.operation.as_str(), kept.unit, kept.stamp, kept.newer), ("job", unit, old, new));
    assert_eq!(done(&books).await, None);
    assert_eq!(finish(&books, unit, new).await, JobEnd::Done);
    // done or not: it is told that it lost
    assert_eq!(finish(&books, unit, old).await, JobEnd::Fenced { stored: new });
    assert_eq!(done(&books).await, Some(new));
}

async fn a_newer_holder_is_told_that_it_is_done(place: Place) {
    let books = place.open().await;
    let (unit, first) = held(&books).await;
    assert_eq!(finish(&books, unit, first).await, JobEnd::Done);
    let second = books.hold(unit).await;
    let before = books.raw.tables().await;
    assert_eq!(finish(&books, unit, second).await, JobEnd::AlreadyDone);
    // the first had done it before it lost the job: its lost reply is still a success
    assert_eq!(finish(&books, unit, first).await, JobEnd::Done);
    assert_eq!(before, books.raw.tables().await);
}

/// It has no sources: nothing to settle, and nobody who settles would note its end.
async fn a_run_of_jobs_is_no_work_and_ends_with_its_job(place: Place) {
    let books = place.open().await;
    let of_jobs = PlannedRun::for_job(RunKey { slot: "02:00".to_owned(), ..RunKey::manual(day()) });
    let run = books.ledger.open_run(&of_jobs, holder()).await.expect("a run");
    // beside it a set that has sources, and all of them
    let key = RunKey { schedule: "some".to_owned(), ..RunKey::manual(day()) };
    let some = PlannedRun { sources: Sources::only(["shop"]), ..PlannedRun::by_hand(key) };
    let some = books.ledger.open_run(&some, holder()).await.expect("a run");
    let work = books.ledger.open_work().await.expect("work");
    assert_eq!(work.iter().map(|run| run.id).collect::<Vec<_>>(), [some, books.run]);
    let (unit, old) = held(&books).await;
    let new = books.hold(unit).await;
    let finish = async |run, mine| books.ledger.finish_job(JOB, run, unit, mine).await.expect("an answer");
    let ended = async || books.raw.count("run WHERE finished_at IS NOT NULL").await;
    assert!(matches!(finish(run, old).await, JobEnd::Fenced { .. }));
    assert_eq!((finish(books.run, new).await, ended().await), (JobEnd::Done, 0), "what is to be settled does not end with a job");
    assert_eq!((finish(run, new).await, ended().await), (JobEnd::Done, 1));
    let before = books.raw.tables().await;
    assert_eq!(finish(run, books.hold(unit).await).await, JobEnd::AlreadyDone);
    assert_eq!(changed(&before, &books.raw.tables().await), ["fence_counter".to_owned(), "unit_fence".to_owned()].into());
}

async fn an_unknown_holder_has_lost_its_claim(place: Place) {
    let books = place.open().await;
    let (unit, known) = held(&books).await;
    let unknown = stamp(known.fence.generation, known.fence.token + 5, holder());
    let before = books.raw.tables().await;
    assert_eq!(finish(&books, unit, unknown).await, JobEnd::ClaimLost);
    assert_eq!(before, books.raw.tables().await);
}

async fn adopting_a_source_takes_jobs_too(place: Place) {
    let books = place.open().await;
    let (unit, old) = held(&books).await;
    let generation = books.ledger.adopt_source("ledger", &operator()).await.expect("adopted");
    assert_taken(&books, unit, old, generation).await;
}

async fn adopting_a_configuration_takes_jobs_too(place: Place) {
    let books = place.open().await;
    let (unit, old) = held(&books).await;
    books.ledger.adopt_config(2, Guard::Lease, &operator()).await.expect("adopted");
    let anew = place.open_as(2, Guard::Lease).await;
    assert_taken(&anew, unit, old, old.fence.generation + 1).await;
    assert_eq!(anew.ledger.job_unit(JOB).await.expect("a unit"), unit, "its unit is not one of those that are cut");
}

async fn assert_taken(books: &Books, unit: Unit, old: Stamp, generation: i64) {
    let nobody = stamp(generation, 0, HolderId::NOBODY);
    assert_eq!(books.ledger.register(unit, old).await.expect("an answer"), nobody);
    assert_eq!(finish(books, unit, old).await, JobEnd::Fenced { stored: nobody });
    let new = books.hold(unit).await;
    assert_eq!(new.fence.generation, generation);
    assert_eq!(finish(books, unit, new).await, JobEnd::Done);
}

async fn fences_of_jobs_have_their_names(place: Place) {
    let books = place.open_as(2, Guard::Lease).await;
    let (unit, mine) = held(&books).await;
    books.ledger.adopt_config(1, Guard::Lease, &operator()).await.expect("adopted");
    let anew = place.open().await;
    let fences = anew.ledger.fences().await.expect("fences");
    let told: Vec<_> = fences.iter().map(|row| (row.unit, row.job.as_deref())).collect();
    assert_eq!(told, [(UNIT, None), (unit, Some(JOB))], "a unit that is none any more is not shown");
    assert!(fences[1].stamp.fence > mine.fence && fences[1].registered_at.is_some());
}

/// The oracle looks at fences of units: jobs are not its business, and do not get into it.
async fn refused_jobs_leave_the_books_as_they_are(place: Place) {
    let books = place.open().await;
    books.settled(&batches(3)).await;
    let (unit, old) = held(&books).await;
    let new = books.hold(unit).await;
    assert_eq!(finish(&books, unit, new).await, JobEnd::Done);
    assert_eq!(finish(&books, unit, old).await, JobEnd::Fenced { stored: new });
    let refused = Rejection { operation: Operation::Job, unit, batch: None, stamp: old, stored: new };
    books.ledger.record_rejections(&[refused]).await.expect("kept");
    assert_eq!(books.ledger.status(None).await.expect("a status").fence_rejections, 2);
    books.assert_books_hold().await;
}

/// Fails without the lock on the fence: what the newer holder has not committed yet would not be seen, and the old one would
/// finish behind its back.
async fn r1_finishing_waits_for_the_takeover_in_flight(place: Place) {
    let books = place.open().await;
    let (unit, old) = held(&books).await;
    let raw = sqlx::PgPool::connect(&place.url).await.expect("the same database");
    let mut taking_over = raw.begin().await.expect("a transaction");
    let register = "UPDATE unit_fence SET token = token + 1 WHERE unit = $1";
    sqlx::query(register).bind(unit.0).execute(&mut *taking_over).await.expect("not committed");
    let finishing = {
        let books = books.clone();
        tokio::spawn(async move { finish(&books, unit, old).await })
    };
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!finishing.is_finished(), "finished while a newer holder was registering");
    taking_over.commit().await.expect("taken over");
    assert!(matches!(finishing.await.expect("no panic"), JobEnd::Fenced { .. }));
    assert_eq!(done(&books).await, None);
}
