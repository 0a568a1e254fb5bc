//! Instances that are configured differently.

use crate::fixture::{Named, Place, keys, named, occurrence, planner, raw, started};
use chrono::TimeDelta;
use ledger::operate::Operator;
use ledger::schedule::Adopt;
use scheduler::report::{Outcome, Report};

pub const EVERY: &[Named] = tests![
    another_definition_plans_nothing_until_it_is_adopted,
    an_adopted_definition_invents_no_missed_runs,
    a_mark_ahead_of_the_clock_is_told,
    a_reload_takes_effect_at_the_next_ring,
];

fn refused(report: &Report) -> Option<&str> {
    match &report.schedules[..] {
        [row] => match &row.outcome {
            Outcome::Refused { text } => Some(text),
            Outcome::Started | Outcome::Planned { .. } | Outcome::Failed { .. } => None,
        },
        _ => None,
    }
}

async fn another_definition_plans_nothing_until_it_is_adopted(place: Place) {
    let ledger = place.open().await;
    let (old, new) = (named("nightly", &raw("30 2 * * *")), named("nightly", &raw("45 2 * * *")));
    let start = started(&ledger, std::slice::from_ref(&old)).await;
    let due = occurrence(&new, start);
    let (mut by_old, mut by_new) = (planner(&ledger, &[old]), planner(&ledger, std::slice::from_ref(&new)));
    // at once, and not only when something occurs
    assert!(refused(&by_new.look().await.expect("a look")).is_some());
    let report = by_new.look_as_if(due).await.expect("a look");
    let text = refused(&report).expect("a refusal");
    assert!(text.contains("`settled schedule adopt nightly --reason …`") && text.contains("set schedule.nightly as"), "{text}");
    assert_eq!((report.opened(), keys(&ledger, "open").await.len()), (0, 0));

    let operator = Operator { name: "olga".to_owned(), reason: "a quarter of an hour later".to_owned() };
    ledger.adopt_schedule("nightly", Adopt::definition(&new.hash()), &operator).await.expect("adopted");
    let report = by_new.look_as_if(due + TimeDelta::seconds(1)).await.expect("a look");
    assert_eq!((refused(&report), report.opened()), (None, 1));
    assert_eq!(keys(&ledger, "open").await[0].1, "02:45");
    // now it is the other one's turn
    let report = by_old.look_as_if(due + TimeDelta::days(1)).await.expect("a look");
    assert!(refused(&report).is_some());
    assert_eq!(keys(&ledger, "open").await.len(), 1);
}

async fn a_reload_takes_effect_at_the_next_ring(place: Place) {
    let ledger = place.open().await;
    let nightly = named("nightly", &raw("30 2 * * *"));
    let mut planner = planner(&ledger, std::slice::from_ref(&nightly));
    let _ = planner.ring().await;
    planner.replace(vec![nightly, named("evening", &raw("0 18 * * *"))]);
    let _ = planner.ring().await;
    let marks = ledger.marks().await.expect("marks").marks;
    assert_eq!(marks.iter().map(|mark| mark.schedule.as_str()).collect::<Vec<_>>(), ["evening", "nightly"]);
}

/// Once a week becomes every night: the nights before it was adopted never occurred.
async fn an_adopted_definition_invents_no_missed_runs(place: Place) {
    let ledger = place.open().await;
    let weekly = named("nightly", &raw("30 2 * * MON"));
    let due = occurrence(&weekly, started(&ledger, std::slice::from_ref(&weekly)).await);
    let mut by_old = planner(&ledger, std::slice::from_ref(&weekly));
    let friday = due + TimeDelta::days(4) + TimeDelta::hours(8);
    for now in [due, due + TimeDelta::days(2), friday - TimeDelta::minutes(1)] {
        let _ = by_old.look_as_if(now).await.expect("a look");
    }
    let nightly = named("nightly", &scheduler::RawSchedule { catch_up: "all".to_owned(), ..raw("30 2 * * *") });
    let operator = Operator { name: "olga".to_owned(), reason: "every night".to_owned() };
    ledger.adopt_schedule("nightly", Adopt::definition(&nightly.hash()), &operator).await.expect("adopted");
    let mut by_new = planner(&ledger, std::slice::from_ref(&nightly));
    let report = by_new.look_as_if(friday).await.expect("a look");
    assert_eq!((report.opened(), report.missed(), keys(&ledger, "open").await.len()), (0, 0, 1));
    let report = by_new.look_as_if(friday + TimeDelta::days(1)).await.expect("a look");
    assert_eq!((report.opened(), report.missed()), (1, 0), "and from then on it is planned");
}

/// The database's clock stepped forward while somebody planned, and back: nothing would be planned until then, and nobody would know.
async fn a_mark_ahead_of_the_clock_is_told(place: Place) {
    let ledger = place.open().await;
    let nightly = named("nightly", &raw("30 2 * * *"));
    let from = started(&ledger, std::slice::from_ref(&nightly)).await;
    let mut planner = planner(&ledger, std::slice::from_ref(&nightly));
    let report = planner.look_as_if(from - TimeDelta::minutes(3)).await.expect("a look");
    assert_eq!(report.schedules, [], "a clock may be corrected");
    let report = planner.look_as_if(from - TimeDelta::days(1)).await.expect("a look");
    let told = format!("{:?}", report.schedules);
    assert!(told.contains("Failed") && told.contains("settled schedule adopt nightly --from-now"), "{told}");
}
