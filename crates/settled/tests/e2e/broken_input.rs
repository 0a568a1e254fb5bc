//! Broken input through the whole program: an error that names file, line and remedy, exit code 2, and not one row.

use crate::world::{World, on_both};
use lab::trials::Suite;

/// What is wrong, the profile, the content, and what the error must name.
type Case = (&'static str, &'static str, Vec<u8>, &'static str);

const HEAD: &str = "batch_id,business_date,kind,merchant,currency,gross,fee,id\n";

fn row(tail: &str) -> Vec<u8> {
    format!("{HEAD}B1,2026-01-05,charge,shop,EUR,10.00,0.00,t1\n{tail}").into_bytes()
}

fn cases() -> Vec<Case> {
    let non_utf8 = [row("B1,2026-01-05,charge,caf"), vec![0xE9], b",EUR,1.00,0.00,t2\n".to_vec()].concat();
    let endless = [row(""), vec![b'x'; 300_000]].concat();
    vec![
        ("wrong profile", "nacha", row(""), "broken.in:1:"),
        ("wrong profile the other way", "canonical-csv", intake::sample::nacha(1, 2, day(), 1).into_bytes(), "broken.in:1:"),
        ("truncated row", "canonical-csv", row("B1,2026-01-05,charge,shop"), "broken.in:3:"),
        ("ambiguous amount", "canonical-csv", row("B1,2026-01-05,charge,shop,EUR,\"1.234,5\",0.00,t2\n"), "broken.in:3:"),
        ("BOM in the middle", "canonical-csv", row("\u{feff}B1,2026-01-05,charge,shop,EUR,1.00,0.00,t2\n"), "broken.in:3:"),
        ("NUL byte", "canonical-csv", row("B1,2026-01-05,charge,sh\0op,EUR,1.00,0.00,t2\n"), "broken.in:3:"),
        ("not UTF-8", "canonical-csv", non_utf8, "broken.in:3:"),
        ("a line that never ends", "canonical-csv", endless, "broken.in:3:"),
        ("a year nobody means", "canonical-csv", row("B1,+12026-01-05,charge,shop,EUR,1.00,0.00,t2\n"), "broken.in:3:"),
        ("a year before all", "canonical-csv", row("B1,0000-01-01,charge,shop,EUR,1.00,0.00,t2\n"), "broken.in:3:"),
        ("unknown currency", "canonical-csv", row("B1,2026-01-05,charge,shop,XXQ,1.00,0.00,t2\n"), "broken.in:3:"),
        ("overflow", "canonical-csv", row("B1,2026-01-05,charge,shop,EUR,99999999999999999999.00,0.00,t2\n"), "broken.in:3:"),
        ("truncated NACHA", "nacha", truncated_nacha(), "broken.in:"),
    ]
}

fn day() -> chrono::NaiveDate {
    chrono::NaiveDate::from_ymd_opt(2026, 1, 5).expect("a date")
}

fn truncated_nacha() -> Vec<u8> {
    let whole = intake::sample::nacha(2, 5, day(), 1);
    whole.as_bytes()[..whole.len() / 2].to_vec()
}

pub(crate) fn add(suite: Suite) -> Suite {
    on_both(suite, "broken input writes not one row", |world, _| {
        for case in cases() {
            refused(world, &case);
        }
    })
}

fn refused(world: &World, (what, profile, content, place): &Case) {
    let file = world.file("broken.in", content);
    let (code, out, err) = world.settled(&["import", file.to_str().expect("UTF-8"), "--profile", profile, "--json"]);
    assert_eq!(code, 2, "{what}: {out}{err}");
    assert!(err.contains(place), "{what}: no {place:?} in {err}");
    let status = world.json(&["status", "--json"]);
    assert_eq!((&status["batches"], &status["items"]), (&serde_json::json!({}), &0.into()), "{what}: something was written");
}
