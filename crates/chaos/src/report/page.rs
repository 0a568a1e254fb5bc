//! The page: what was run, the verdicts, and every drill.

use super::lanes::Lanes;
use super::{Run, draw, plot, signs};
use crate::event::{Event, Mark};
use crate::record::{Check, Kind, Record, Table, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// All of it, one document.
pub(super) fn page(run: &Run, records: &[Record]) -> String {
    let title = "Drills of settled";
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (signs::definitions())
                header { h1 { (title) } (what_was_run(run, records)) }
                main {
                    (verdicts(records))
                    @for (at, record) in records.iter().enumerate() { (drill(at, record)) }
                }
            }
        }
    };
    page.into_string()
}

fn what_was_run(run: &Run, records: &[Record]) -> Markup {
    let mut seeds: Vec<u64> = records.iter().map(|record| record.seed).collect();
    seeds.dedup();
    let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let facts = [
        ("version", run.version.clone()),
        ("date", run.date.format("%Y-%m-%d %H:%M UTC").to_string()),
        ("seed", seeds),
        ("machine", run.machine.to_string()),
    ];
    html! {
        p.lead {
            "Experiments with real processes and servers. Each has a control arm, in which a protection is missing and the damage must appear: "
            "a drill that cannot fail proves nothing."
        }
        dl.facts {
            @for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) { div { dt { (name) } dd { (value) } } }
        }
    }
}

fn verdicts(records: &[Record]) -> Markup {
    html! {
        section aria-labelledby="verdicts" {
            h2 id="verdicts" { "Verdicts" }
            table.verdicts {
                thead { tr { th scope="col" { "drill" } th scope="col" { "verdict" } th.num scope="col" { "controls red" } th.num scope="col" { "took" } } }
                // a body each: on a phone only a whole row has room for the sentence
                @for (at, record) in records.iter().enumerate() {
                    tbody {
                        tr {
                            th scope="row" { a href={ "#drill-" (at + 1) } { (record.name) } }
                            td { (word(record)) }
                            td.num { (controls(record)) }
                            td.num { (took(record)) }
                        }
                        tr { td.about colspan="4" { (record.about) } }
                    }
                }
            }
        }
    }
}

/// The verdict as a word with its colour.
fn word(record: &Record) -> Markup {
    let (class, word) = match (&record.error, record.verdict) {
        (None, Some(Verdict::Holds)) => ("good", Verdict::Holds.to_string()),
        (None, Some(Verdict::DidNotBite)) => ("doubt", Verdict::DidNotBite.to_string()),
        (None, Some(Verdict::Broken)) => ("bad", Verdict::Broken.to_string()),
        (Some(_), _) => ("bad", "not told to its end".to_owned()),
        (None, None) => ("doubt", "no verdict".to_owned()),
    };
    html! { span class={ "word " (class) } { (word) } }
}

fn controls(record: &Record) -> String {
    let controls = record.checks.iter().filter(|check| check.kind == Kind::Control);
    let (all, red) = controls.fold((0, 0), |(all, red), check| (all + 1, red + u32::from(check.ok)));
    if all == 0 { "none".to_owned() } else { format!("{red} of {all}") }
}

fn took(record: &Record) -> String {
    format!("{}.{} s", record.took_ms / 1_000, record.took_ms / 100 % 10)
}

fn drill(at: usize, record: &Record) -> Markup {
    html! {
        section.drill aria-labelledby={ "drill-" (at + 1) } {
            h2 id={ "drill-" (at + 1) } { (record.name) " " (word(record)) }
            p.lead { (record.about) }
            @if let Some(error) = &record.error { p.error { strong { "Not told to its end: " } (error) } }
            (checks(&record.checks))
            (timeline(record))
            @for table in &record.tables { (figures(table)) }
            @if !record.plots.is_empty() { div.plots { @for plot in &record.plots { (plot::figure(plot)) } } }
        }
    }
}

/// The control arm beside the protected one.
fn checks(checks: &[Check]) -> Markup {
    let is_control = |arm: &str| checks.iter().any(|check| check.arm == arm && check.kind == Kind::Control);
    let (without, with): (Vec<&Check>, Vec<&Check>) = checks.iter().partition(|check| is_control(&check.arm));
    html! {
        @if !checks.is_empty() {
            div.arms {
                (arm("Without the protection", &without))
                (arm("With the protection", &with))
            }
        }
    }
}

fn arm(caption: &str, checks: &[&Check]) -> Markup {
    html! {
        @if !checks.is_empty() {
            table.checks {
                caption { (caption) }
                thead { tr { th scope="col" { "arm" } th scope="col" { "what must be so, and what was seen" } th scope="col" { "so?" } } }
                tbody {
                    @for check in checks {
                        tr {
                            td { (check.arm) span.about { (check.kind.to_string()) } }
                            td { (check.must) span.about { "seen: " (check.seen) } }
                            td { @if check.ok { span.word.good { "ok" } } @else { span.word.bad { "NO" } } }
                        }
                    }
                }
            }
        }
    }
}

fn timeline(record: &Record) -> Markup {
    if record.timeline.is_empty() {
        return html! {};
    }
    let lanes = Lanes::of(record);
    let about =
        format!("Timeline of {}: one lane for each of {}. The events are in the table below.", record.name, names(&lanes));
    html! {
        figure.timeline {
            figcaption { "What happened" }
            (draw::timeline(&lanes, &about))
            (signs::legend(&lanes))
            details { summary { "The " (record.timeline.len()) " events" } (events(&record.timeline)) }
        }
    }
}

fn names(lanes: &Lanes) -> String {
    lanes.lanes.iter().map(|lane| lane.who.as_str()).collect::<Vec<_>>().join(", ")
}

fn events(events: &[Event]) -> Markup {
    html! {
        table.events {
            thead { tr { th.num scope="col" { "s" } th scope="col" { "who" } th scope="col" { "what happened" } } }
            tbody {
                @for event in events {
                    tr class={ "is-" (draw::name(event.mark)) } {
                        td.num { (super::axis::seconds(event.at_us)) }
                        td { (event.who) }
                        td { @if event.mark != Mark::Note { (signs::sign(event.mark)) } (event.text) }
                    }
                }
            }
        }
    }
}

fn figures(table: &Table) -> Markup {
    // a number, with a unit at most
    let letters = |cell: &str| cell.chars().filter(|letter| letter.is_alphabetic()).count();
    let figure =
        |cell: &String| cell.starts_with(|first: char| first.is_ascii_digit() || "+-−".contains(first)) && letters(cell) < 4;
    let of_figures = |at: usize| table.rows.iter().filter_map(|row| row.get(at)).all(|cell| cell.is_empty() || figure(cell));
    let class = |at: usize| of_figures(at).then_some("num");
    html! {
        div.scroll role="region" tabindex="0" aria-label=(table.title) {
            table {
                caption { (table.title) }
                thead { tr { @for (at, column) in table.columns.iter().enumerate() { th scope="col" class=[class(at)] { (column) } } } }
                tbody { @for row in &table.rows { tr { @for (at, cell) in row.iter().enumerate() { td class=[class(at)] { (cell) } } } } }
            }
        }
    }
}
