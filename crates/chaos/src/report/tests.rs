//! The page as a reader gets it, and lanes as they are derived.

use super::lanes::{Lane, Lanes, Point, Span, State, merged};
use super::{Machine, Run, html, write};
use crate::event::{Event, Mark};
use crate::history::{Line, Of, Op, Phase};
use crate::record::{Check, Kind, Plot, Record, Series, Shape, Table, Verdict};
use chrono::DateTime;
use domain::fence::Fence;
use domain::ids::HolderId;
use uuid::Uuid;

fn event(at_ms: u64, who: &str, mark: Mark, text: &str) -> Event {
    Event { at_us: at_ms * 1_000, who: who.to_owned(), mark, text: text.to_owned() }
}

fn frozen_holder() -> Vec<Event> {
    vec![
        event(0, "director", Mark::Note, "begins"),
        event(100, "A", Mark::Start, "starts"),
        event(300, "A", Mark::Holds, "registered, unit 0, fence 0.1"),
        event(900, "A", Mark::Freeze, "frozen"),
        event(1_000, "B", Mark::Start, "starts"),
        event(3_000, "B", Mark::Holds, "registered, unit 0, fence 0.2"),
        event(3_200, "B", Mark::Write, "settles batch 1"),
        event(4_000, "A", Mark::Wake, "wakes"),
        event(4_010, "A", Mark::Refused, "fenced: a newer holder"),
        event(4_020, "A", Mark::Lost, "not held any more"),
        event(4_400, "A", Mark::End, "ended"),
        event(5_000, "B", Mark::Kill, "killed"),
    ]
}

fn record(timeline: Vec<Event>) -> Record {
    let check = |kind, arm: &str| Check { arm: arm.to_owned(), kind, must: "be so".to_owned(), seen: "1".to_owned(), ok: true };
    Record {
        name: "frozen-holder".to_owned(),
        about: "a holder is frozen".to_owned(),
        seed: 7,
        verdict: Some(Verdict::Holds),
        took_ms: 5_250,
        checks: vec![check(Kind::Holds, "fence"), check(Kind::Bites, "fence"), check(Kind::Control, "no fence")],
        timeline,
        ..Record::default()
    }
}

fn run() -> Run {
    let machine = Machine { cores: 2, memory_mib: 4_096, kernel: "6.1.0".to_owned() };
    Run { version: "0.1.0".to_owned(), date: DateTime::from_timestamp(1_780_000_000, 0).expect("an instant"), machine }
}

fn lane<'a>(lanes: &'a Lanes, who: &str) -> &'a Lane {
    lanes.lanes.iter().find(|lane| lane.who == who).expect("it has a lane")
}

fn spans(lane: &Lane, state: State) -> Vec<(u64, u64)> {
    lane.spans.iter().filter(|span| span.state == state).map(|span| (span.from_us / 1_000, span.to_us / 1_000)).collect()
}

#[test]
fn spans_are_from_the_mark_that_begins_them_to_the_one_that_ends_them() {
    let lanes = Lanes::of(&record(frozen_holder()));
    assert_eq!(lanes.end_us, 5_000_000);
    assert_eq!(lanes.lanes.iter().map(|lane| lane.who.as_str()).collect::<Vec<_>>(), ["A", "B", "director"]);
    let (a, b) = (lane(&lanes, "A"), lane(&lanes, "B"));
    assert_eq!(spans(a, State::Held), [(300, 4_020)], "held until its holder knew that it was lost, frozen or not");
    assert_eq!(spans(a, State::Frozen), [(900, 4_000)]);
    assert_eq!(spans(a, State::Up), [(100, 4_400)]);
    assert_eq!(spans(a, State::Down), [], "it ended by itself and was not started again");
    assert_eq!(spans(b, State::Held), [(3_000, 5_000)], "a kill ends it");
    assert_eq!(spans(b, State::Down), [(5_000, 5_000)], "killed to the end");
    let marks: Vec<Mark> = a.points.iter().map(|point| point.mark).collect();
    assert_eq!(marks, [Mark::Start, Mark::Refused, Mark::Lost, Mark::End]);
}

#[test]
fn faults_are_healed_and_servers_come_back() {
    let timeline = vec![
        event(0, "redis", Mark::Start, ""),
        event(100, "redis", Mark::Kill, ""),
        event(150, "redis", Mark::Kill, "ended: signal 9"),
        event(300, "redis", Mark::Start, ""),
        event(400, "etcd", Mark::Fault, ""),
        event(600, "etcd", Mark::Heal, ""),
        event(700, "etcd", Mark::Fault, ""),
        event(900, "director", Mark::Note, ""),
    ];
    let lanes = Lanes::of(&record(timeline));
    assert_eq!(spans(lane(&lanes, "redis"), State::Down), [(100, 300)]);
    assert_eq!(spans(lane(&lanes, "redis"), State::Up), [(0, 100), (300, 900)]);
    assert_eq!(spans(lane(&lanes, "etcd"), State::Fault), [(400, 600), (700, 900)], "never healed: to the end");
}

fn line(at_ms: u64, call: u64, op: Op, phase: Phase, of: Of) -> Line {
    Line { at_us: at_ms * 1_000, holder: HolderId(Uuid::from_u128(1)), call, op, phase, of }
}

#[test]
fn a_history_knows_each_grant() {
    let grant = |number| Of { nonce: Some(Uuid::from_u128(number)), ..Of::default() };
    let fence = |token| Of { unit: Some(3), fence: Some(Fence { generation: 0, token }), ..Of::default() };
    let lines = vec![
        line(310, 0, Op::Acquire, Phase::Invoke, Of { lease: Some("unit-3".to_owned()), ..Of::default() }),
        line(320, 0, Op::Acquire, Phase::Ok, grant(1)),
        line(330, 1, Op::Register, Phase::Ok, fence(17)),
        line(340, 2, Op::Settle, Phase::Ok, Of { batches: vec![5], ..fence(17) }),
        line(350, 3, Op::Release, Phase::Invoke, grant(1)),
        line(360, 3, Op::Release, Phase::Ok, Of::default()),
        line(400, 4, Op::Acquire, Phase::Ok, grant(2)),
        line(500, 5, Op::Acquire, Phase::Fail, Of::default()),
        line(600, 6, Op::Renew, Phase::Fail, grant(2)),
        line(700, 7, Op::Acquire, Phase::Ok, grant(3)),
    ];
    let record = Record { histories: vec![("A".to_owned(), lines)], ..record(frozen_holder()) };
    let lanes = Lanes::of(&record);
    let a = lane(&lanes, "A");
    assert_eq!(spans(a, State::Held), [(320, 360), (400, 600), (700, 4_400)], "the last one ends with its process");
    let first = a.spans.iter().find(|span| span.state == State::Held).expect("a lease");
    assert_eq!(first.text, "lease held, unit-3; registered, unit 3, fence 0.17 → released");
    let writes: Vec<&Point> = a.points.iter().filter(|point| point.mark == Mark::Write).collect();
    assert_eq!((writes.len(), writes[0].text.as_str()), (1, "settled, batch 5, unit 3, fence 0.17"));
    assert_eq!(spans(lane(&lanes, "B"), State::Held), [(3_000, 5_000)], "who wrote nothing down has its marks");
}

#[test]
fn dense_points_are_merged_and_none_is_lost() {
    let points: Vec<Point> = (0..100)
        .map(|at| Point { mark: Mark::Write, at_us: at * 1_000, until_us: at * 1_000, count: 1, text: format!("write {at}") })
        .collect();
    let merged = merged(&points, 10_000);
    assert_eq!(merged.len(), 10);
    assert!(merged.iter().all(|point| point.count == 10 && point.text.lines().count() == 6 && point.text.ends_with('…')));
    assert_eq!((merged[1].at_us, merged[1].until_us), (10_000, 19_000));
}

#[test]
fn a_refusal_is_told_by_sign_word_and_hover() {
    let page = html(&run(), &[record(frozen_holder())]);
    let from = page.find(r#"<g class="refused" data-mark="refused">"#).expect("the refusal");
    let group = page[from..].split("</g>").next().expect("an end");
    assert!(group.contains("<title>4.010 s, A: fenced: a newer holder</title>"), "{group}");
    assert!(group.contains(r##"<use href="#sign-refused""##) && group.contains(">refused</text>"), "{group}");
}

#[test]
fn whatever_is_told_is_text() {
    let hostile = r#"</title><script>alert("1")</script><img src=http://example.com/x onerror=x>"#;
    let mut record = record(vec![event(1, hostile, Mark::Refused, hostile), event(2, "A", Mark::Damage, hostile)]);
    (record.name, record.about, record.error) = (hostile.to_owned(), hostile.to_owned(), Some(hostile.to_owned()));
    record.checks[0].seen = hostile.to_owned();
    let mut table = Table::new(hostile, [hostile]);
    table.row([hostile.to_owned()]);
    record.tables.push(table);
    let series = vec![Series { name: hostile.to_owned(), points: vec![(1.0, 2.0)] }];
    for shape in [Shape::Bars, Shape::Lines, Shape::LogLines] {
        let hostile = hostile.to_owned();
        record.plots.push(Plot { title: hostile.clone(), x: hostile.clone(), y: hostile, shape, series: series.clone() });
    }
    let page = html(&run(), &[record]);
    assert!(!page.contains("<script") && !page.contains("<img"), "it was not escaped");
    assert!(page.contains("&lt;script&gt;"), "and it is there");
    whole(&page);
}

#[test]
fn every_drill_is_there_and_what_it_does_not_have_is_not() {
    let mut second = record(Vec::new());
    (second.name, second.checks, second.verdict) = ("second".to_owned(), Vec::new(), None);
    second.error = Some("etcd is not there".to_owned());
    let page = html(&run(), &[record(frozen_holder()), second]);
    for name in ["frozen-holder", "second"] {
        assert_eq!(page.matches(&format!(">{name}<")).count(), 1, "{name} in the table of verdicts");
        assert_eq!(page.matches(&format!(">{name} <")).count(), 1, "{name} as a heading");
    }
    assert!(page.contains("1 of 1") && page.contains("5.2 s") && page.contains("etcd is not there"));
    assert!(page.contains("2 cores, 4096 MiB, Linux 6.1.0") && page.contains("2026-05-28 20:26 UTC"));
    assert_eq!(page.matches(r#"<figure class="timeline">"#).count(), 1, "only one has a timeline");
    assert_eq!(page.matches(r#"<div class="plots">"#).count() + page.matches(r#"<div class="scroll""#).count(), 0);
    whole(&page);
}

/// Every element that is opened is closed, in order; and the page asks for nothing.
fn whole(page: &str) {
    let body = &page[page.find("</style>").expect("a style")..];
    let mut open: Vec<&str> = Vec::new();
    for tag in body.trim_start_matches("</style>").split('<').skip(1) {
        let tag = tag.split('>').next().expect("something");
        let name = tag.split([' ', '/', '\n']).find(|word| !word.is_empty()).expect("a name");
        match tag {
            tag if tag.starts_with('/') => {
                // head and html are opened before
                if !["head", "html"].contains(&name) {
                    assert_eq!(open.pop(), Some(name), "closed out of order");
                }
            }
            tag if tag.ends_with('/') => {}
            _ => open.push(name),
        }
        for asks in ["src=", "srcset=", "data=", "href=\"h", "xlink:", "action="] {
            let quoted = tag.split('"').step_by(2).collect::<String>();
            let asks_in = if asks.contains('"') { tag } else { &quoted };
            assert!(!asks_in.contains(asks), "<{tag}>");
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    let style = &page[page.find("<style>").expect("a style")..page.find("</style>").expect("its end")];
    assert!(
        !style.contains("@import") && !style.contains("http") && style.matches("url(").count() == style.matches("url(#").count()
    );
    assert!(page.contains(r#"<html lang="en">"#) && page.contains("width=device-width"));
}

#[test]
fn both_files_are_written_into_a_new_folder_and_an_error_names_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let below = folder.path().join("new/er");
    let page = write(&below, &run(), &[record(frozen_holder())]).expect("it can be written");
    assert!(std::fs::read_to_string(page).expect("the page").starts_with("<!DOCTYPE html>"));
    let json = std::fs::read_to_string(below.join("report.json")).expect("the records");
    let records: Vec<Record> = serde_json::from_str(&json).expect("records");
    assert_eq!(records[0].timeline, frozen_holder());
    let error = write(&below.join("report.json"), &run(), &[]).expect_err("a file is no folder").to_string();
    assert!(error.contains("report.json"), "{error}");
}

#[test]
fn a_span_says_how_it_began_and_ended() {
    let lanes = Lanes::of(&record(frozen_holder()));
    let frozen = |span: &&Span| span.state == State::Frozen;
    assert_eq!(lane(&lanes, "A").spans.iter().find(frozen).map(|span| span.text.as_str()), Some("frozen → wakes"));
}
