//! What a person is shown before a schedule runs.

use crate::fixture::{date, defined, raw, utc, weekend};
use scheduler::RawSchedule;
use scheduler::preview::{OutOfReach, PreviewMark, preview};

fn marks(raw: &RawSchedule, from: &str, upto: &str) -> Vec<(String, Vec<PreviewMark>)> {
    let shown = preview(&defined(raw), date(from), date(upto), 100).expect("a preview");
    assert!(!shown.more);
    shown.lines.into_iter().map(|line| (line.local.to_string(), line.marks)).collect()
}

fn line(local: &str, marks: Vec<PreviewMark>) -> (String, Vec<PreviewMark>) {
    (local.to_owned(), marks)
}

#[test]
fn days_on_which_clocks_change_are_marked() {
    let nightly = raw("30 2 * * *", "Europe/Berlin");
    assert_eq!(
        marks(&nightly, "2026-03-28", "2026-03-30"),
        [
            line("2026-03-28 02:30:00", vec![]),
            line("2026-03-29 02:30:00", vec![PreviewMark::ClocksChange { minutes: 23 * 60 }, PreviewMark::Moved]),
            line("2026-03-30 02:30:00", vec![]),
        ]
    );
    let skipping = RawSchedule { gap: "skip".to_owned(), ..nightly.clone() };
    assert_eq!(
        marks(&skipping, "2026-03-29", "2026-03-29"),
        [line("2026-03-29 02:30:00", vec![PreviewMark::ClocksChange { minutes: 23 * 60 }, PreviewMark::Skipped])]
    );
    let second = RawSchedule { overlap: "second".to_owned(), ..nightly.clone() };
    for (raw, pass) in [(nightly, PreviewMark::FirstPass), (second, PreviewMark::SecondPass)] {
        let marks = marks(&raw, "2026-10-25", "2026-10-25");
        assert_eq!(marks, [line("2026-10-25 02:30:00", vec![PreviewMark::ClocksChange { minutes: 25 * 60 }, pass])]);
    }
    // midnight is moved, and belongs to its day
    let midnight = raw("0 0 * * *", "America/Havana");
    assert_eq!(
        marks(&midnight, "2026-03-08", "2026-03-08"),
        [line("2026-03-08 00:00:00", vec![PreviewMark::ClocksChange { minutes: 23 * 60 }, PreviewMark::Moved])]
    );
}

#[test]
fn days_without_business_join_a_run() {
    let list = std::env::temp_dir().join(format!("preview-{}.txt", std::process::id()));
    std::fs::write(&list, "2026-04-03 Good Friday\n2026-04-06 Easter Monday\n").expect("a file");
    let nightly = RawSchedule { holidays: Some(list.clone()), ..weekend(raw("30 2 * * *", "UTC")) };
    let shown = marks(&nightly, "2026-04-02", "2026-04-08");
    std::fs::remove_file(list).expect("removed");
    let joins = || PreviewMark::Joins(utc("2026-04-03 02:30"));
    assert_eq!(
        shown,
        [
            line("2026-04-02 02:30:00", vec![]),
            line("2026-04-03 02:30:00", vec![PreviewMark::Holiday("Good Friday".to_owned())]),
            line("2026-04-04 02:30:00", vec![PreviewMark::Weekend, joins()]),
            line("2026-04-05 02:30:00", vec![PreviewMark::Weekend, joins()]),
            line("2026-04-06 02:30:00", vec![PreviewMark::Holiday("Easter Monday".to_owned()), joins()]),
            // a business day, whose night is still before it is over
            line("2026-04-07 02:30:00", vec![joins(), PreviewMark::BeyondHolidays]),
            line("2026-04-08 02:30:00", vec![PreviewMark::BeyondHolidays]),
        ]
    );
}

#[test]
fn a_preview_ends_where_it_was_told_to() {
    let hourly = defined(&raw("0 * * * *", "UTC"));
    let shown = preview(&hourly, date("2026-03-02"), date("2026-03-02"), 24).expect("a preview");
    assert_eq!((shown.lines.len(), shown.more), (24, false));
    assert_eq!(shown.lines[0].at, utc("2026-03-02 00:00"));
    let shown = preview(&hourly, date("2026-03-02"), date("2026-03-03"), 24).expect("a preview");
    assert_eq!((shown.lines.len(), shown.more), (24, true));
    let never = preview(&hourly, date("2026-03-02"), date("+99999-03-02"), 1).expect_err("out of reach");
    assert_eq!(never, OutOfReach(date("+99999-03-02")));
}
