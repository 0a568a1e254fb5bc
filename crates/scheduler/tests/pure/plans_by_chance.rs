//! What holds of every plan: nothing is planned twice, nothing is forgotten, and the mark never goes back.

use crate::fixture::{defined, raw, utc};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use scheduler::RawSchedule;
use scheduler::definition::Definition;
use scheduler::plan::{Plan, plan};
use std::collections::BTreeSet;

type Keys = BTreeSet<(chrono::NaiveDate, String)>;

fn keys(definition: &Definition, after: DateTime<Utc>, until: DateTime<Utc>) -> Keys {
    definition.occurrences(after, until).map(|found| (found.business_date, found.slot())).collect()
}

/// Schedules from hourly to monthly, in zones and at times of the year where clocks change.
fn schedules() -> impl Strategy<Value = RawSchedule> {
    let crons = prop_oneof![
        Just("0 * * * *"),
        Just("*/20 0-4 * * *"),
        Just("30 2 * * *"),
        Just("0 0 * * *"),
        Just("0 18 * * MON-FRI"),
        Just("15 1 L * *"),
    ];
    let zones = prop_oneof![
        Just("Europe/Dublin"),
        Just("America/Havana"),
        Just("Antarctica/Troll"),
        Just("Australia/Lord_Howe"),
        Just("America/Sao_Paulo")
    ];
    let word = |words: &'static [&'static str]| proptest::sample::select(words);
    let rules = (word(&["after", "skip"]), word(&["first", "second"]), word(&["following", "preceding", "modified-following"]));
    let catch_up = (word(&["none", "latest", "all"]), 1_u32..12, 1_u32..200, 1_u32..3_600);
    let days = (word(&["24:00", "18:00", "00:30", "02:30"]), any::<bool>());
    (crons, zones, rules, catch_up, days).prop_map(|(cron, zone, (gap, overlap, roll), catch_up, (cut_off, weekend))| {
        RawSchedule {
            gap: gap.to_owned(),
            overlap: overlap.to_owned(),
            roll: roll.to_owned(),
            cut_off: cut_off.to_owned(),
            weekend: if weekend { vec!["sat".to_owned(), "sun".to_owned()] } else { vec![] },
            catch_up: catch_up.0.to_owned(),
            catch_up_max: catch_up.1,
            catch_up_window_h: catch_up.2,
            on_time_s: catch_up.3,
            ..raw(cron, zone)
        }
    })
}

/// A mark and a later now; both changes of the year are near some of them.
fn windows() -> impl Strategy<Value = (DateTime<Utc>, DateTime<Utc>)> {
    let starts =
        prop_oneof![Just("2026-03-20 00:00"), Just("2026-10-20 00:00"), Just("2026-03-05 00:00"), Just("2019-02-10 00:00")];
    (starts, 0_i64..14 * 86_400_000, 0_i64..20 * 86_400_000).prop_map(|(start, after_ms, length_ms)| {
        let mark = utc(start) + TimeDelta::milliseconds(after_ms);
        (mark, mark + TimeDelta::milliseconds(length_ms))
    })
}

/// The keys of the rows of a plan, and for how many more its first row stands.
fn rows(definition: &Definition, planned: &Plan) -> (Vec<(chrono::NaiveDate, String)>, usize) {
    let max = usize::try_from(definition.catch_up().max).expect("small");
    // there is a row that counts only where there are as many others as there may be
    let counting = usize::from(planned.missed.len() > max);
    let missed = planned.missed.iter().skip(counting);
    assert!(missed.clone().all(|row| row.slots == 1));
    let keys = planned.runs.iter().chain(missed.map(|row| &row.run)).map(|run| (run.key.business_date, run.key.slot.clone()));
    (keys.collect(), planned.missed.iter().take(counting).map(|row| usize::try_from(row.slots).expect("small")).sum())
}

proptest! {

    /// S5: every key of the window runs, or is missed, or is counted, once.
    #[test]
    fn s5_a_plan_is_a_partition(raw in schedules(), (mark, now) in windows()) {
        let definition = defined(&raw);
        let planned = plan(&definition, mark, now);
        let all = keys(&definition, mark, now);
        let (rows, counted) = rows(&definition, &planned);
        let distinct: Keys = rows.iter().cloned().collect();
        prop_assert_eq!(distinct.len(), rows.len(), "a key twice");
        prop_assert!(distinct.is_subset(&all));
        // what an earlier plan decided is not counted again
        let earlier = keys(&definition, mark - TimeDelta::days(10), mark);
        prop_assert_eq!(counted, all.iter().filter(|key| !distinct.contains(key) && !earlier.contains(key)).count());
        prop_assert_eq!(planned.mark, now);
    }

    /// S5: what runs is what the policy says, and what is on time.
    #[test]
    fn s5_a_plan_runs_what_its_policy_says(raw in schedules(), (mark, now) in windows()) {
        let definition = defined(&raw);
        let catch_up = definition.catch_up();
        let planned = plan(&definition, mark, now);
        let on_time = keys(&definition, mark.max(now - definition.on_time() - TimeDelta::nanoseconds(1)), now);
        let runs: Keys = planned.runs.iter().map(|run| (run.key.business_date, run.key.slot.clone())).collect();
        prop_assert!(on_time.is_subset(&runs));
        let late = runs.len() - on_time.len();
        let any_late = keys(&definition, mark, now).len() > on_time.len();
        match raw.catch_up.as_str() {
            "none" => prop_assert_eq!(late, 0),
            "latest" => prop_assert_eq!(late, usize::from(any_late && on_time.is_empty())),
            _ => {
                let recent = keys(&definition, mark.max(now - catch_up.window - TimeDelta::nanoseconds(1)), now);
                let most = usize::try_from(catch_up.max).expect("small");
                prop_assert_eq!(late, recent.difference(&on_time).count().min(most));
            }
        }
    }

    /// However often it is planned on the way, the same keys are planned: no more, and none is lost.
    #[test]
    fn s4_many_small_windows_are_one_large(
        raw in schedules(),
        (mark, now) in windows(),
        cuts in proptest::collection::vec(0_i64..1_000_000, 0..20),
    ) {
        // everything runs, so that the policy decides nothing
        let raw = RawSchedule { catch_up: "all".to_owned(), catch_up_max: 1_000, catch_up_window_h: 8_784, ..raw };
        let definition = defined(&raw);
        let mut nows: Vec<_> = cuts.iter().map(|cut| mark + (now - mark) / 1_000_000 * i32::try_from(*cut).expect("small")).collect();
        nows.sort_unstable();
        nows.push(now);
        let (mut at, mut runs) = (mark, Keys::new());
        for now in nows {
            let planned = plan(&definition, at, now);
            prop_assert!(planned.missed.is_empty() && planned.mark >= at);
            runs.extend(planned.runs.into_iter().map(|run| (run.key.business_date, run.key.slot)));
            at = planned.mark;
        }
        let whole = plan(&definition, mark, now).runs.into_iter().map(|run| (run.key.business_date, run.key.slot));
        prop_assert_eq!(&runs, &whole.collect::<Keys>());
        prop_assert_eq!(runs, keys(&definition, mark, now));
    }

    /// S8: the mark never goes back, whatever a clock says.
    #[test]
    fn s8_the_mark_never_goes_back(raw in schedules(), (mark, _) in windows(), skew_ms in -400_000_000_i64..400_000_000) {
        let now = mark + TimeDelta::milliseconds(skew_ms);
        let planned = plan(&defined(&raw), mark, now);
        prop_assert_eq!(planned.mark, mark.max(now));
        prop_assert!(skew_ms > 0 || planned.is_empty());
    }
}
