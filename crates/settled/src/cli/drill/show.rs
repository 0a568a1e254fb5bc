//! What a person sees of a drill.

use crate::output::{plain_table, say};
use anstyle::{AnsiColor, Style};
use chaos::record::{Check, Table};
use chaos::{Drill, Event, Mark, Record};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const ICE: Style = AnsiColor::Cyan.on_default().bold();
const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();

pub(super) fn list(drills: &[Drill]) {
    let mut table = plain_table(["drill", "what it shows", "needs"]);
    for drill in drills {
        table.add_row([drill.name, drill.about, drill.needs]);
    }
    say!("{table}");
}

pub(super) fn begin(drill: &Drill, seed: u64) {
    say!("");
    say!("== {} (seed {seed}): {}", drill.name, drill.about);
    say!("{:>8}  {:<10} what happens (* frozen or awake, X refused, ! fault or damage)", "time", "who");
}

pub(super) fn event(event: &Event) {
    let (sign, style) = match event.mark {
        Mark::Freeze | Mark::Wake => ("*", ICE),
        Mark::Refused => ("X", GOOD),
        Mark::Kill | Mark::Fault | Mark::Damage => ("!", BAD),
        Mark::Note | Mark::Start | Mark::End | Mark::Releases => (" ", DIM),
        Mark::Holds | Mark::Lost | Mark::Heal | Mark::Write => (" ", PLAIN),
    };
    let (s, ms) = (event.at_us / 1_000_000, event.at_us / 1_000 % 1_000);
    say!("{s:>4}.{ms:03} s  {:<10} {style}{sign} {}{style:#}", event.who, event.text);
}

pub(super) fn record(record: &Record) {
    for table in &record.tables {
        say!("");
        figures(table);
    }
    say!("");
    for check in &record.checks {
        line(check);
    }
    let (style, word) = word(record);
    say!("{style}{}: {word}{style:#} ({}.{} s)", record.name, record.took_ms / 1_000, record.took_ms / 100 % 10);
}

fn figures(table: &Table) {
    let mut drawn = plain_table(&table.columns);
    for row in &table.rows {
        drawn.add_row(row);
    }
    say!("{}", table.title);
    say!("{drawn}");
}

fn line(check: &Check) {
    let (style, sign) = if check.ok { (GOOD, "ok") } else { (BAD, "NO") };
    let kind = check.kind.to_string();
    say!("  {style}{sign}{style:#} {kind:<8} {}: {} [{}]", check.arm, check.must, check.seen);
}

pub(super) fn summary(records: &[Record]) {
    if records.len() < 2 {
        return;
    }
    say!("");
    for record in records {
        let (style, word) = word(record);
        say!("{:<24} {style}{word}{style:#}", record.name);
    }
}

fn word(record: &Record) -> (Style, String) {
    (if record.holds() { GOOD } else { BAD }, record.word())
}
