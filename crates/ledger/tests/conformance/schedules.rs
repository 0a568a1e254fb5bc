//! Marks of schedules: every occurrence is planned once, however many plan it, and none is forgotten.

use crate::fixture::{Books, Named, Place, changed, holder, operator};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, TimeZone, Utc};
use domain::ids::HolderId;
use domain::run::RunKey;
use ledger::schedule::{Adopt, Advance, Advanced, MissedRun, PlannedRun, Sources};
use ledger::{Guard, Ledger, LedgerError};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

pub const EVERY: &[Named] = tests![
    the_databases_clock_is_told,
    a_schedule_starts_now_and_once,
    s8_of_twenty_planners_one_plans,
    s8_an_occurrence_that_is_there_is_left_as_it_is,
    another_definition_is_refused,
    a_schedule_that_never_started_is_not_planned,
    m6_a_plan_that_fails_inside_leaves_nothing,
    s5_what_was_missed_is_a_row,
    a_missed_run_that_is_planned_after_all_is_missed_no_more,
    a_missed_run_that_a_person_opens_is_missed_no_more,
    what_one_row_counts_stays_when_its_newest_is_run,
    schedules_at_a_glance,
    an_open_run_is_never_missed,
    the_mark_never_goes_back,
    another_definition_is_adopted_and_the_mark_stays,
    an_older_run_that_is_opened_late_ends_too,
    a_mark_ahead_of_the_clock_comes_back,
    a_run_of_a_day_far_ahead_is_no_gate,
];
pub const POSTGRES: &[Named] = tests![r14_a_frozen_planner_holds_up_no_other_for_long];

const SCHEDULE: &str = "nightly";
const DEFINITION: &str = "at two";
const PATIENCE: Duration = Duration::from_secs(60);

/// Two at night, in March.
fn at(day: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 3, day, 2, 0, 0).single().expect("a time")
}

/// The run of that night.
fn night(day: u32) -> PlannedRun {
    let business_date = NaiveDate::from_ymd_opt(2026, 3, day).expect("a date") - Days::new(1);
    PlannedRun {
        key: RunKey { schedule: SCHEDULE.to_owned(), business_date, slot: format!("2026-03-{day:02}T02:00") },
        scheduled_for: Some(at(day)),
        covers: Some((at(day - 1), at(day))),
        sources: Sources::ALL,
        note: None,
    }
}

fn missed(day: u32, slots: u32) -> MissedRun {
    MissedRun { run: night(day), slots, since: at(day - (slots - 1)) }
}

/// Starts the schedule; where its mark is.
async fn started(books: &Books) -> DateTime<Utc> {
    books.ledger.start_schedule(SCHEDULE, DEFINITION).await.expect("started");
    mark(books).await
}

async fn mark(books: &Books) -> DateTime<Utc> {
    books.ledger.marks().await.expect("marks").marks[0].at
}

/// A day's worth of plan: what is given, from the mark on.
fn plan(from: DateTime<Utc>, runs: &[u32], missed: &[MissedRun]) -> Advance {
    Advance {
        schedule: SCHEDULE.to_owned(),
        definition: DEFINITION.to_owned(),
        from,
        to: from + TimeDelta::days(1),
        runs: runs.iter().map(|day| night(*day)).collect(),
        missed: missed.to_vec(),
    }
}

async fn advance(books: &Books, advance: &Advance) -> Advanced {
    books.ledger.advance(advance, holder()).await.expect("an answer")
}

/// The schedule's runs by key: business date, state, how many it stands for.
async fn runs(books: &Books) -> Vec<String> {
    let runs = format!(
        "SELECT business_date || ' ' || state || ' ' || missed_slots FROM run WHERE schedule = '{SCHEDULE}' ORDER BY business_date"
    );
    books.raw.texts(&runs).await
}

async fn the_databases_clock_is_told(place: Place) {
    let books = place.open().await;
    let clock = match place.is_postgres() {
        true => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
        false => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    };
    let before = books.raw.number(clock).await;
    let marks = books.ledger.marks().await.expect("an answer without any schedule");
    let after = books.raw.number(clock).await;
    assert_eq!(marks.marks, []);
    let told = marks.now.timestamp_millis();
    assert!((before - 1..=after + 1).contains(&told), "{before} {told} {after}");
}

async fn a_schedule_starts_now_and_once(place: Place) {
    let books = place.open().await;
    let before = books.ledger.marks().await.expect("the time").now;
    let mark = started(&books).await;
    let marks = books.ledger.marks().await.expect("marks");
    assert!(before <= mark && mark <= marks.now, "{before} {mark} {}", marks.now);
    books.ledger.start_schedule(SCHEDULE, "another").await.expect("an answer");
    books.ledger.start_schedule("hourly", "another").await.expect("started");
    let marks = books.ledger.marks().await.expect("marks").marks;
    let told: Vec<_> = marks.iter().map(|mark| (mark.schedule.as_str(), mark.definition.as_str())).collect();
    assert_eq!(told, [("hourly", "another"), (SCHEDULE, DEFINITION)]);
    assert_eq!(marks[1].at, mark, "what is started is not started again");
}

/// Four instances and five tasks of each, all with the same plan.
async fn s8_of_twenty_planners_one_plans(place: Place) {
    let books = place.open().await;
    let plan = plan(started(&books).await, &[8, 9], &[missed(7, 3)]);
    let mut instances: Vec<Arc<dyn Ledger>> = Vec::new();
    for _ in 0..4 {
        instances.push(ledger::open(&place.options(1, Guard::Lease)).await.expect("an instance"));
    }
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let (ledger, plan, planner) = (instances[n % 4].clone(), plan.clone(), holder());
            tokio::spawn(async move { (planner, ledger.advance(&plan, planner).await.expect("an answer")) })
        })
        .collect();
    let mut planners = Vec::new();
    for task in tasks {
        match task.await.expect("no panic") {
            (planner, Advanced::Done { opened: 2, missed: 1 }) => planners.push(planner),
            (_, Advanced::Behind) => {}
            (_, other) => panic!("{other:?}"),
        }
    }
    assert_eq!(planners.len(), 1, "{planners:?}");
    assert_eq!(runs(&books).await, ["2026-03-06 missed 3", "2026-03-07 open 0", "2026-03-08 open 0"]);
    let by = books.raw.texts(&format!("SELECT DISTINCT CAST(opened_by AS TEXT) FROM run WHERE schedule = '{SCHEDULE}'")).await;
    assert_eq!(by, [planners[0].to_string()]);
    assert_eq!(mark(&books).await, plan.to);
}

/// A person was faster than the schedule: the key is the occurrence, whoever opens it.
async fn s8_an_occurrence_that_is_there_is_left_as_it_is(place: Place) {
    let books = place.open().await;
    let mark = started(&books).await;
    let person = holder();
    let id = books.ledger.open_run(&night(8), person).await.expect("a run");
    let before = books.raw.texts("SELECT CAST(opened_by AS TEXT) || opened_at FROM run ORDER BY id").await;
    assert_eq!(advance(&books, &plan(mark, &[8, 9], &[])).await, Advanced::Done { opened: 1, missed: 0 });
    let after = books.raw.texts("SELECT CAST(opened_by AS TEXT) || opened_at FROM run ORDER BY id").await;
    assert_eq!(before, after[..2]);
    assert_eq!(books.ledger.open_run(&night(8), holder()).await.expect("a run"), id);
}

async fn another_definition_is_refused(place: Place) {
    let books = place.open().await;
    let mine = Advance { definition: "at three".to_owned(), ..plan(started(&books).await, &[8], &[missed(7, 1)]) };
    let before = books.raw.tables().await;
    assert_eq!(advance(&books, &mine).await, Advanced::Refused { stored: DEFINITION.to_owned() });
    assert_eq!(before, books.raw.tables().await);
}

async fn a_schedule_that_never_started_is_not_planned(place: Place) {
    let books = place.open().await;
    let before = books.raw.tables().await;
    assert_eq!(advance(&books, &plan(at(7), &[8], &[])).await, Advanced::Behind);
    assert_eq!(before, books.raw.tables().await);
}

/// The last row of the plan is refused by the table; the mark and the rows before it must not stay.
async fn m6_a_plan_that_fails_inside_leaves_nothing(place: Place) {
    let books = place.open().await;
    let mark = started(&books).await;
    let mut broken = plan(mark, &[8, 9], &[missed(6, 1), missed(7, 1)]);
    broken.missed[1].run.covers = Some((at(7), at(6)));
    let before = books.raw.tables().await;
    let error = books.ledger.advance(&broken, holder()).await.expect_err("half-open backwards");
    assert!(matches!(error, LedgerError::Database(_)), "{error:?}");
    assert_eq!(before, books.raw.tables().await);
    let mended = plan(mark, &[8, 9], &[missed(6, 1), missed(7, 1)]);
    assert_eq!(advance(&books, &mended).await, Advanced::Done { opened: 2, missed: 2 });
}

async fn s5_what_was_missed_is_a_row(place: Place) {
    let books = place.open().await;
    let plan = plan(started(&books).await, &[], &[missed(6, 1), missed(20, 14)]);
    assert_eq!(advance(&books, &plan).await, Advanced::Done { opened: 0, missed: 2 });
    let history = books.ledger.history(&ledger::schedule::RunFilter { schedule: Some(SCHEDULE.into()), limit: 9 }).await;
    let told: Vec<_> =
        history.expect("a history").into_iter().map(|run| (run.state, run.missed_slots, run.missed_since)).collect();
    assert_eq!(told, [("missed".to_owned(), 14, Some(at(7))), ("missed".to_owned(), 1, Some(at(6)))]);
    let last = books.ledger.status(None).await.expect("a status").last_run.expect("a run");
    assert_eq!(last.id, books.run, "what was missed was not run");
}

async fn a_missed_run_that_is_planned_after_all_is_missed_no_more(place: Place) {
    let books = place.open().await;
    let mark = started(&books).await;
    let first = plan(mark, &[], &[missed(8, 1)]);
    assert_eq!(advance(&books, &first).await, Advanced::Done { opened: 0, missed: 1 });
    assert_eq!(advance(&books, &plan(first.to, &[8], &[])).await, Advanced::Done { opened: 1, missed: 0 });
    assert_eq!(runs(&books).await, ["2026-03-07 open 0"]);
    assert_eq!(books.raw.count("run WHERE missed_since IS NOT NULL").await, 1, "that it was missed once is still seen");
    assert_eq!(state(&books).await, (Some(at(8)), 0));
}

/// Who opens it by hand does not say when it was due: that stays.
async fn a_missed_run_that_a_person_opens_is_missed_no_more(place: Place) {
    let books = place.open().await;
    let mut noted = missed(8, 1);
    noted.run.note = Some("the clocks went forward".to_owned());
    assert_eq!(advance(&books, &plan(started(&books).await, &[], &[noted])).await, Advanced::Done { opened: 0, missed: 1 });
    let person = holder();
    let id = books.ledger.open_run(&PlannedRun::by_hand(night(8).key), person).await.expect("a run");
    let opened = books.ledger.history(&ledger::schedule::RunFilter { schedule: Some(SCHEDULE.into()), limit: 9 }).await;
    let [opened] = &opened.expect("a history")[..] else { panic!("one row of that key") };
    assert_eq!((opened.id, opened.state.as_str(), opened.missed_slots, opened.missed_since), (id, "open", 0, Some(at(8))));
    assert_eq!((opened.scheduled_for, opened.opened_by), (Some(at(8)), person));
    assert_eq!(opened.note.as_deref(), Some("the clocks went forward"));
}

/// When its newest open run was due, and how many are missed.
async fn state(books: &Books) -> (Option<DateTime<Utc>>, i64) {
    let states = books.ledger.schedule_states().await.expect("states");
    states.iter().find(|state| state.schedule == SCHEDULE).map(|state| (state.last_run, state.missed)).expect("a state")
}

/// The row of many has a key of its own: the newest of them is another one.
async fn what_one_row_counts_stays_when_its_newest_is_run(place: Place) {
    let books = place.open().await;
    let mut many = missed(8, 7);
    many.run.key.slot.insert_str(0, "until ");
    assert_eq!(advance(&books, &plan(started(&books).await, &[], &[many])).await, Advanced::Done { opened: 0, missed: 1 });
    books.ledger.open_run(&night(8), holder()).await.expect("a run");
    assert_eq!(state(&books).await, (Some(at(8)), 7));
    assert_eq!(runs(&books).await.len(), 2);
}

async fn schedules_at_a_glance(place: Place) {
    let books = place.open().await;
    assert_eq!(books.ledger.schedule_states().await.expect("states"), [], "a run by hand has no time it was due");
    let plan = plan(started(&books).await, &[9, 10], &[missed(6, 2), missed(7, 1)]);
    assert_eq!(advance(&books, &plan).await, Advanced::Done { opened: 2, missed: 2 });
    let mut other = night(3);
    other.key.schedule = "weekly".to_owned();
    books.ledger.open_run(&other, holder()).await.expect("a run");
    let by_hand = RunKey { schedule: "only-by-hand".to_owned(), ..RunKey::manual(other.key.business_date) };
    books.ledger.open_run(&PlannedRun::by_hand(by_hand), holder()).await.expect("a run");
    let states = books.ledger.schedule_states().await.expect("states");
    let told: Vec<_> = states.iter().map(|state| (state.schedule.as_str(), state.last_run, state.missed)).collect();
    assert_eq!(told, [(SCHEDULE, Some(at(10)), 3), ("weekly", Some(at(3)), 0)]);
}

async fn an_open_run_is_never_missed(place: Place) {
    let books = place.open().await;
    let first = plan(started(&books).await, &[8], &[]);
    assert_eq!(advance(&books, &first).await, Advanced::Done { opened: 1, missed: 0 });
    assert_eq!(advance(&books, &plan(first.to, &[], &[missed(8, 5)])).await, Advanced::Done { opened: 0, missed: 0 });
    assert_eq!(runs(&books).await, ["2026-03-07 open 0"]);
}

async fn the_mark_never_goes_back(place: Place) {
    let books = place.open().await;
    let from = started(&books).await;
    let back = Advance { to: from - TimeDelta::milliseconds(1), ..plan(from, &[8], &[]) };
    let stale = plan(from - TimeDelta::days(1), &[8], &[]);
    let before = books.raw.tables().await;
    for advanced in [&back, &stale] {
        assert_eq!(advance(&books, advanced).await, Advanced::Behind);
    }
    assert_eq!(before, books.raw.tables().await);
    let nothing = Advance { to: from, ..plan(from, &[], &[]) };
    assert_eq!(advance(&books, &nothing).await, Advanced::Done { opened: 0, missed: 0 });
    assert_eq!(mark(&books).await, from);
}

async fn another_definition_is_adopted_and_the_mark_stays(place: Place) {
    let books = place.open().await;
    let mark = started(&books).await;
    books.ledger.adopt_schedule(SCHEDULE, Adopt::definition("at three"), &operator()).await.expect("adopted");
    books.ledger.adopt_schedule("new", Adopt::definition("hourly"), &operator()).await.expect("adopted");
    let marks = books.ledger.marks().await.expect("marks");
    assert_eq!((marks.marks[1].at, marks.marks[1].definition.as_str()), (mark, "at three"));
    assert!(mark <= marks.marks[0].at && marks.marks[0].at <= marks.now, "one that is new begins now");
    let audited = books.raw.texts("SELECT operator || ', ' || action || ', ' || subject || ', ' || reason FROM audit_log").await;
    assert_eq!(audited, ["olga, schedule adopt, nightly, a test", "olga, schedule adopt, new, a test"]);
    let old = plan(mark, &[8], &[]);
    assert_eq!(advance(&books, &old).await, Advanced::Refused { stored: "at three".to_owned() });
    let new = Advance { definition: "at three".to_owned(), ..old };
    assert_eq!(advance(&books, &new).await, Advanced::Done { opened: 1, missed: 0 });
}

/// A clock that stepped forward while somebody planned leaves it: nothing would be planned until then.
async fn a_mark_ahead_of_the_clock_comes_back(place: Place) {
    let books = place.open().await;
    let from = started(&books).await;
    let ahead = Advance { to: from + TimeDelta::days(365), ..plan(from, &[], &[]) };
    let _ = advance(&books, &ahead).await;
    let adopt = Adopt { definition: DEFINITION, from_now: true };
    books.ledger.adopt_schedule(SCHEDULE, adopt, &operator()).await.expect("adopted");
    let marks = books.ledger.marks().await.expect("marks");
    assert!(marks.marks[0].at <= marks.now, "{marks:?}");
}

/// `--allow-future` is a word about one run: what arrives for those days is not settled by everybody else at once.
async fn a_run_of_a_day_far_ahead_is_no_gate(place: Place) {
    let books = place.open().await;
    let day = NaiveDate::from_ymd_opt(2199, 1, 1).expect("a date");
    let far = books.ledger.open_run(&PlannedRun::by_hand(RunKey::manual(day)), holder()).await.expect("a run");
    let work = books.ledger.open_work().await.expect("an answer");
    assert_eq!(work.iter().map(|run| run.id).collect::<Vec<_>>(), [books.run], "and not {far}");
}

/// It is not the newest, and nobody would look at it again.
async fn an_older_run_that_is_opened_late_ends_too(place: Place) {
    let books = place.open().await;
    let newest = async || books.ledger.open_work().await.expect("an answer").remove(0);
    assert_eq!(books.ledger.finish(&newest().await.due).await.expect("an answer"), 1);
    assert!(newest().await.finished);
    // the fixture's own run is of the 2nd of March
    books.ledger.open_run(&night(2), holder()).await.expect("a run");
    assert!((newest().await.id, newest().await.finished) == (books.run, false), "{:?}", newest().await);
    assert_eq!(books.ledger.finish(&newest().await.due).await.expect("an answer"), 1);
    assert!(newest().await.finished);
}

/// R14, R8: an instance that is frozen (or cut off) while it plans has the mark locked. The server ends its session, and another
/// plans; what the frozen one had written by then is not there, and when it wakes it is told.
async fn r14_a_frozen_planner_holds_up_no_other_for_long(place: Place) {
    let books = place.open().await;
    let frozen = ledger::open(&place.options(1, Guard::Lease)).await.expect("another instance");
    let plan = plan(started(&books).await, &[8, 9], &[]);
    let before = books.raw.tables().await;
    // a row of the plan that is not committed holds it up with the mark in hand
    let raw = sqlx::PgPool::connect(&place.url).await.expect("the same database");
    let mut held_up = raw.begin().await.expect("a transaction");
    let row = "INSERT INTO run (schedule, business_date, slot, opened_by) VALUES ($1, $2, $3, $4)";
    let (row, RunKey { schedule, business_date, slot }) = (sqlx::query(row), &plan.runs[0].key);
    let row = row.bind(schedule).bind(business_date).bind(slot).bind(HolderId::NOBODY.0);
    row.execute(&mut *held_up).await.expect("not committed");
    let mut advancing = frozen.advance(&plan, HolderId::NOBODY);
    let begun = Instant::now();
    let waiting =
        "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO run%'";
    while books.raw.count(waiting).await == 0 {
        let ready = poll_fn(|context| Poll::Ready(advancing.as_mut().poll(context).is_ready())).await;
        assert!(!ready && begun.elapsed() < PATIENCE, "it never came to that row");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // a client that is not polled any more is a frozen one
    held_up.rollback().await.expect("gone");
    let begun = Instant::now();
    assert_eq!(advance(&books, &plan).await, Advanced::Done { opened: 2, missed: 0 });
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    let after = books.raw.tables().await;
    let error = advancing.await.expect_err("its session is gone");
    assert!(error.is_unavailable(), "{error:?}");
    assert_eq!(after, books.raw.tables().await);
    assert_eq!(changed(&before, &after), ["run".to_owned(), "schedule_mark".to_owned()].into());
}
