//! Many instances at once, whose clocks need not agree.

use crate::fixture::{Named, Place, holder, keys, named, nightly, occurrence, planner, raw, rows, started};
use chrono::{DateTime, TimeDelta, Utc};
use ledger::Ledger;
use scheduler::definition::Definition;
use std::sync::Arc;

pub const EVERY: &[Named] =
    tests![s7_a_thousand_schedules_in_one_second, s8_many_planners_are_one, s8_clocks_that_differ_by_three_minutes];

/// A look of one instance among others; what it opened.
async fn look(ledger: Arc<dyn Ledger>, definitions: Vec<Definition>, now: DateTime<Utc>) -> u64 {
    let mut planner = scheduler::planner::Planner::new(ledger, holder(), definitions);
    planner.look_as_if(now).await.expect("a look").opened()
}

/// S7: by three instances, and each is planned once.
async fn s7_a_thousand_schedules_in_one_second(place: Place) {
    let ledger = place.open().await;
    let definitions: Vec<_> = (0..1_000).map(|n| named(&format!("s{n:04}"), &raw("30 2 * * *"))).collect();
    let start = started(&ledger, &definitions).await;
    let due = occurrence(&definitions[0], start);
    let mut looks = Vec::new();
    for _ in 0..3 {
        let ledger = place.open().await;
        looks.push(tokio::spawn(look(ledger, definitions.clone(), due + TimeDelta::milliseconds(1))));
    }
    let mut opened = Vec::new();
    for look in looks {
        opened.push(look.await.expect("an instance"));
    }
    assert_eq!(opened.iter().sum::<u64>(), 1_000, "{opened:?}");
    let rows = rows(&ledger).await;
    assert_eq!(rows.len(), 1_000);
    assert!(rows.iter().all(|row| row.scheduled_for == Some(due) && row.state == "open"));
}

/// S8: they see one occurrence at the same moment.
async fn s8_many_planners_are_one(place: Place) {
    let ledger = place.open().await;
    let nightly = [nightly()];
    let start = started(&ledger, &nightly).await;
    let due = occurrence(&nightly[0], start);
    let looks: Vec<_> = (0..12).map(|_| tokio::spawn(look(Arc::clone(&ledger), nightly.to_vec(), due))).collect();
    let mut opened = 0;
    for look in looks {
        opened += look.await.expect("an instance");
    }
    assert_eq!((opened, keys(&ledger, "open").await.len()), (1, 1));
}

/// S8: whichever is first, and however often they look.
async fn s8_clocks_that_differ_by_three_minutes(place: Place) {
    let ledger = place.open().await;
    let nightly = [nightly()];
    let start = started(&ledger, &nightly).await;
    let due = occurrence(&nightly[0], start);
    let (mut ahead, mut behind) = (planner(&ledger, &nightly), planner(&ledger, &nightly));
    let skew = TimeDelta::minutes(3);
    let mut opened = 0;
    for minute in -5..=5 {
        let true_now = due + TimeDelta::minutes(minute);
        let marked = ledger.marks().await.expect("marks").marks[0].at;
        opened += ahead.look_as_if(true_now + skew).await.expect("a look").opened();
        opened += behind.look_as_if(true_now - skew).await.expect("a look").opened();
        assert!(ledger.marks().await.expect("marks").marks[0].at >= marked, "the mark went back");
    }
    assert_eq!(opened, 1);
    assert_eq!(rows(&ledger).await[0].scheduled_for, Some(due));
}
