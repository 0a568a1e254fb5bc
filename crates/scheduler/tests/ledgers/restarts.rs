//! Instances that come and go: what occurred while nobody was there.

use crate::fixture::{Named, Place, keys, named, nightly, occurrence, occurring, planner, raw, rows, set, started};
use chrono::TimeDelta;
use scheduler::RawSchedule;
use scheduler::plan::plan;
use scheduler::report::Outcome;

pub const EVERY: &[Named] = tests![
    nothing_before_the_first_start_is_due,
    s4_restarts_more_often_than_the_interval,
    s5_two_weeks_off,
    s6_killed_before_and_replaced_after,
    m16_what_a_run_covers_is_in_its_row,
    a_missed_weekend_is_opened_by_its_next_day,
];

async fn nothing_before_the_first_start_is_due(place: Place) {
    let ledger = place.open().await;
    let every_second = [named("seconds", &raw("* * * * * *"))];
    let mut first = planner(&ledger, &every_second);
    let report = first.look().await.expect("a look");
    assert_eq!(report.schedules.iter().map(|row| &row.outcome).collect::<Vec<_>>(), [&Outcome::Started]);
    let mark = ledger.marks().await.expect("marks").marks.remove(0).at;
    assert!(mark >= report.now && rows(&ledger).await.is_empty());
    // another one that starts finds the mark
    let report = planner(&ledger, &every_second).look_as_if(mark + TimeDelta::seconds(3)).await.expect("a look");
    assert_eq!(report.opened(), 3);
}

async fn s4_restarts_more_often_than_the_interval(place: Place) {
    let ledger = place.open().await;
    let hourly = named("hourly", &raw("0 * * * *"));
    let start = started(&ledger, std::slice::from_ref(&hourly)).await;
    for restart in 1..=40 {
        let now = start + TimeDelta::minutes(7 * restart);
        let report = planner(&ledger, std::slice::from_ref(&hourly)).look_as_if(now).await.expect("a look");
        assert_eq!(report.missed(), 0);
    }
    let expected = occurring(&hourly, start, start + TimeDelta::minutes(280));
    assert!(expected.len() >= 4);
    assert_eq!(keys(&ledger, "open").await, expected);
}

async fn s5_two_weeks_off(place: Place) {
    let ledger = place.open().await;
    let policies = ["none", "latest", "all"].map(|policy| {
        let raw = RawSchedule { catch_up: policy.to_owned(), catch_up_max: 4, catch_up_window_h: 96, ..raw("30 2 * * *") };
        named(policy, &raw)
    });
    started(&ledger, &policies).await;
    let marks = ledger.marks().await.expect("marks").marks;
    let back = marks[0].at + TimeDelta::days(14);
    let _ = planner(&ledger, &policies).look_as_if(back).await.expect("a look");
    let all = rows(&ledger).await;
    for definition in &policies {
        let mark = marks.iter().find(|mark| mark.schedule == definition.name()).expect("a mark").at;
        let planned = plan(definition, mark, back);
        let kept = all.iter().filter(|row| row.key.schedule == definition.name());
        let found: Vec<_> = kept.map(|row| (row.key.clone(), row.state.as_str(), row.missed_slots)).collect();
        let missed = planned.missed.iter().map(|row| (row.run.key.clone(), "missed", i32::try_from(row.slots).expect("few")));
        let runs = planned.runs.iter().map(|run| (run.key.clone(), "open", 0));
        assert_eq!(found, missed.chain(runs).collect::<Vec<_>>(), "{}", definition.name());
        // what the plan says is tested where plans are; here only that it is not empty
        let runs = match definition.name() {
            "none" => 0,
            "latest" => 1,
            _ => 4,
        };
        assert_eq!((planned.runs.len(), planned.missed.len()), (runs, 5), "{}", definition.name());
    }
    // and it is over: the next look has nothing to catch up with
    let report = planner(&ledger, &policies).look_as_if(back + TimeDelta::seconds(1)).await.expect("a look");
    assert_eq!((report.opened(), report.missed()), (0, 0));
}

async fn s6_killed_before_and_replaced_after(place: Place) {
    let ledger = place.open().await;
    let nightly = [nightly()];
    let start = started(&ledger, &nightly).await;
    let due = occurrence(&nightly[0], start);
    let mut killed = planner(&ledger, &nightly);
    assert_eq!(killed.look_as_if(due - TimeDelta::seconds(3)).await.expect("a look").opened(), 0);
    drop(killed);
    let report = planner(&place.open().await, &nightly).look_as_if(due + TimeDelta::seconds(1)).await.expect("a look");
    assert_eq!((report.opened(), report.missed()), (1, 0));
    assert_eq!(rows(&ledger).await[0].scheduled_for, Some(due));
}

/// The row says when the business date began and ended, in instants: other zone data changes nothing of it.
async fn m16_what_a_run_covers_is_in_its_row(place: Place) {
    let ledger = place.open().await;
    let nightly = [nightly()];
    let start = started(&ledger, &nightly).await;
    let due = occurrence(&nightly[0], start);
    let _ = planner(&ledger, &nightly).look_as_if(due).await.expect("a look");
    let row = rows(&ledger).await.remove(0);
    let covers = nightly[0].days().covers(row.key.business_date);
    assert!(covers.until <= due && due < covers.until + TimeDelta::hours(4));
    // no function of the ledger shows them; on SQLite the same values are bound in the same order
    if let Some(database) = place.postgres() {
        let kept = "SELECT extract(epoch FROM covers_from)::bigint || ' ' || extract(epoch FROM covers_until)::bigint FROM run";
        let expected = format!("{} {}", covers.from.timestamp(), covers.until.timestamp());
        assert_eq!(database.query(kept).expect("a row"), expected);
    }
}

/// Missed on Saturday, and run on Sunday under the same key.
async fn a_missed_weekend_is_opened_by_its_next_day(place: Place) {
    let ledger = place.open().await;
    let weekend = vec!["sat".to_owned(), "sun".to_owned()];
    let raw = RawSchedule { weekend, catch_up: "none".to_owned(), ..raw("30 2 * * *") };
    let definition = named("nightly", &raw);
    let start = started(&ledger, std::slice::from_ref(&definition)).await;
    let mut nights = definition.occurrences(start + TimeDelta::days(3), start + TimeDelta::days(20));
    let saturday = nights.find(|night| definition.days().calendar.is_weekend(night.local.date())).expect("a weekend");
    let sunday = nights.next().expect("the night after");
    assert_eq!(saturday.key(&definition), sunday.key(&definition));
    let mut planner = planner(&ledger, std::slice::from_ref(&definition));
    let _ = planner.look_as_if(saturday.at - TimeDelta::hours(1)).await.expect("a look");
    let before = set(keys(&ledger, "missed").await);
    let _ = planner.look_as_if(saturday.at + TimeDelta::hours(1)).await.expect("a look");
    let key = (saturday.business_date, saturday.slot());
    assert_eq!(set(keys(&ledger, "missed").await).difference(&before).collect::<Vec<_>>(), [&key]);
    let report = planner.look_as_if(sunday.at + TimeDelta::seconds(10)).await.expect("a look");
    assert_eq!(report.opened(), 1);
    assert_eq!(keys(&ledger, "open").await, [key]);
    assert_eq!(set(keys(&ledger, "missed").await), before);
}
