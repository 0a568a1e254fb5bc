//! config/profiles/README.md explains every key of a profile and every word that one may have, and its skeleton works.
//!
//! What there is to explain is asked of the reader itself: a key or a word that does not exist is refused with those that do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::read;
use intake::Profile;
use std::collections::BTreeSet;

const NOTHING: &str = "zzz";

fn guide() -> String {
    std::fs::read_to_string(format!("{}/../../config/profiles/README.md", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// What may stand where this profile has an unknown field, or variant; nothing where it is refused for something else.
fn expected(what: &str, toml: &str) -> Vec<String> {
    let error = Profile::parse(toml, "guide").unwrap_err().to_string();
    let known = error.split_once(&format!("unknown {what} `{NOTHING}`, expected "));
    known.map_or_else(Vec::new, |(_, known)| code_spans(known))
}

fn code_spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A key, where it stands, and the words that it may have.
#[derive(Debug)]
struct Key {
    /// The headings of TOML that lead there, as `types` or `amounts.gross`; blank at the top.
    section: String,
    name: String,
    words: Vec<String>,
}

/// Every key below a section, which these headings open, and those below them.
fn keys(section: &str, headings: &str, found: &mut Vec<Key>) {
    for name in expected("field", &format!("{headings}\n{NOTHING} = 1\n")) {
        let words = expected("variant", &format!("{headings}\n{name} = \"{NOTHING}\"\n"));
        found.push(Key { section: section.to_owned(), name: name.clone(), words });
        let path = if section.is_empty() { name } else { format!("{section}.{name}") };
        // a section, a list of them, or sections under names of the user's; within a list, of the entry that was opened last
        let within = if headings.starts_with("[[") { format!("{headings}\n") } else { String::new() };
        let headings =
            [format!("[{path}]"), format!("[[{path}]]"), format!("[{path}.any]")].map(|deeper| within.clone() + &deeper);
        let before = found.len();
        for deeper in headings {
            if found.len() == before {
                keys(&path, &deeper, found);
            }
        }
    }
}

fn all_keys() -> Vec<Key> {
    let mut found = Vec::new();
    keys("", "", &mut found);
    found
}

/// The rows of the table of keys: the code spans of the first cell, and those of the whole row.
fn rows() -> Vec<(Vec<String>, Vec<String>)> {
    let guide = guide();
    let table = guide.split("## Keys of a CSV profile").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| (code_spans(row.split(" | ").next().unwrap()), code_spans(row))).collect()
}

#[test]
fn the_reader_says_what_there_is() {
    let found: BTreeSet<String> = all_keys().iter().map(|key| format!("{} {}", key.section, key.name)).collect();
    // of each depth one that must be there, or the others could be missed
    for key in [
        " source",
        "batch rule",
        "check says",
        "check.amount debit",
        "amounts.fee negate",
        "types.values negate",
        "preamble type",
    ] {
        assert!(found.contains(key), "{key:?} is not among {found:?}");
    }
    assert!(found.len() >= 60, "{found:?}");
}

#[test]
fn every_key_is_explained() {
    let rows = rows();
    let explained = |key: &Key| {
        // an amount of a check is one as any other
        let top = if key.section == "check.amount" { "amounts" } else { key.section.split('.').next().unwrap() };
        rows.iter().any(|(first, all)| {
            let headings: Vec<_> = first.iter().filter(|span| span.starts_with('[')).collect();
            let here = if top.is_empty() {
                // a section is explained by the rows of its keys
                headings.is_empty() || headings.iter().any(|heading| heading.trim_matches(['[', ']']) == key.name)
            } else {
                headings.iter().any(|heading| heading.trim_matches(['[', ']']).split('.').next() == Some(top))
            };
            let section = top.is_empty() && !headings.is_empty();
            let direct = key.section == top || key.section == "types.values";
            let spans = if direct { first } else { all };
            here && (section || spans.iter().any(|span| words(span).any(|word| word == key.name)))
        })
    };
    let missing: Vec<_> =
        all_keys().into_iter().filter(|key| !explained(key)).map(|key| format!("[{}] {}", key.section, key.name)).collect();
    assert!(missing.is_empty(), "not explained: {missing:?}");
}

#[test]
fn every_word_is_explained() {
    let spans: BTreeSet<String> = rows().into_iter().flat_map(|(_, all)| all).collect();
    let explained = |word: &str| spans.contains(&format!("\"{word}\""));
    for key in all_keys() {
        for word in &key.words {
            assert!(explained(word), "[{}] {} may be {word:?}, which no row says", key.section, key.name);
        }
    }
}

fn words(span: &str) -> impl Iterator<Item = &str> {
    span.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn block(language: &str) -> String {
    let guide = guide();
    guide.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned()
}

/// What a newcomer copies is a profile, reads the file that it is shown with, and finds it wrong when it is.
#[test]
fn the_skeleton_reads_its_file() {
    let profile = Profile::parse(&block("toml"), "skeleton").unwrap();
    let file = block("csv");
    let (summary, items) = read(&file, &profile).unwrap();
    let batch = &summary.batches[0];
    assert_eq!((batch.external_batch_id.as_str(), batch.business_date.to_string().as_str()), ("P-1", "2026-01-05"));
    assert_eq!((batch.breaks.len(), items.len()), (0, 4), "{:?}", batch.breaks);
    assert_eq!((batch.totals[0].net_minor, batch.totals[0].remittance_minor), (2_995, 2_995));
    let (summary, _) = read(file.replace(";25,00;", ";26,00;"), &profile).unwrap();
    assert_eq!(summary.batches[0].breaks.len(), 2, "{:?}", summary.batches[0].breaks);
}
