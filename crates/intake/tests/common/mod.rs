//! What every test of this crate reads files with.
#![allow(dead_code, reason = "each test file uses its part")]

use domain::summary::{FileSummary, StagedItem};
use intake::{Profile, ReadError, Stopped, sample};

pub(crate) const CARDS: &str = "adyen-settlement-detail";
pub(crate) const PAYOUTS: &str = "stripe-payout-reconciliation";
pub(crate) const TABLES: &str = "dlocal-settlement";

/// Providers that do not exist, whose profiles are beside these tests.
pub(crate) const OWN: [&str; 2] = ["nordhandel", "two-currencies"];

/// A built-in profile, or one of [`OWN`].
pub(crate) fn profile(name: &str) -> Profile {
    Profile::named(name).unwrap_or_else(|| Profile::parse(&profile_text(name), name).expect("a profile"))
}

/// The TOML of such a profile.
pub(crate) fn profile_text(name: &str) -> String {
    let folder = if OWN.contains(&name) { "tests/profiles" } else { "../../config/profiles" };
    let path = format!("{}/{folder}/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a profile")
}

/// A report of two tables as its provider names the column of its ids.
pub(crate) fn two_tables(rows: u32) -> String {
    sample::two_tables(rows, "DLOCAL_TRANSACTION_ID", 7)
}

/// Text in Latin-1, which is the first 256 characters.
pub(crate) fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).expect("a character of Latin-1")).collect()
}

pub(crate) const NORDHANDEL_HEADER: &str = "Zahlung;Valuta;Art;Händler;Währung;Betrag;Gebühr;Beleg;Text\r\n";

/// A file of a provider that does not exist: two payments, one of them in two currencies.
pub(crate) fn nordhandel() -> String {
    let rows = [
        "Z-1;02.03.2026;Umsatz;;EUR;1.234,50;12,34-;B1;Kaffee",
        "Z-1;02.03.2026;UMSATZ;Bäckerei Süß;EUR;10,00;0,10-;B2;",
        "z-1;02.03.2026;Gutschrift;;eur;12,50-;;B3;\"zurück; beschädigt\"",
        "Z-1;02.03.2026;Umsatz;;HUF;12.000;120-;B4;",
        "Z-1;02.03.2026;hinweis;;;;;;Übertrag",
        "Z-1;02.03.2026;Auszahlung;;EUR;1.219,56;;;Überweisung",
        "Z-1;02.03.2026;Auszahlung;;HUF;11.880;;;Überweisung",
        "Z-1;02.03.2026;Summe;;EUR;1.232,00;12,44-;4;",
        "Z-1;02.03.2026;Summe;;HUF;12.000;120-;2;",
        "Z-2;02.03.2026;Umsatz;Kiosk;EUR;5,00;;B5;",
        "Z-2;02.03.2026;Auszahlung;Kiosk;EUR;5,00;;;Überweisung",
    ];
    format!("{NORDHANDEL_HEADER}{}\r\n", rows.join("\r\n"))
}

/// A statement in two currencies and its rows.
pub(crate) const TWO_CURRENCIES: &str = "\
Statement,Day,Shop,Cur,Rows,Fees,Paid,,
S-9,2026-03-02,kiosk,EUR,2,-30,1470,,
S-9,2026-03-02,kiosk,ISK,1,,125000,,
What,Id,Currency,Amount,Fee
sale,a,EUR,1000,-20
sale,,EUR,500,-10
sale,b,ISK,125000,
";

/// A small valid file for every profile.
pub(crate) fn valid(name: &str) -> Vec<u8> {
    let date = chrono::NaiveDate::from_ymd_opt(2026, 3, 2).expect("a date");
    match name {
        "canonical-csv" => sample::canonical(3, 6, date, 5).into_bytes(),
        "canonical-ndjson" => sample::canonical_ndjson(3, 6, date, 5).into_bytes(),
        CARDS => sample::settlement_detail(6, 2, 5).into_bytes(),
        PAYOUTS => sample::payout_reconciliation(8, 335, 5).into_bytes(),
        TABLES => two_tables(6).into_bytes(),
        "nordhandel" => latin1(&nordhandel()),
        "two-currencies" => TWO_CURRENCIES.as_bytes().to_vec(),
        "nacha" => sample::nacha(3, 4, date, 5).into_bytes(),
        other => panic!("no file for profile {other}"),
    }
}

/// Reads `bytes` as `file` and keeps every line.
pub(crate) fn read(bytes: impl AsRef<[u8]>, profile: &Profile) -> Result<(FileSummary, Vec<StagedItem>), ReadError> {
    let mut items = Vec::new();
    let mut keep = |chunk: Vec<StagedItem>| -> Result<(), Stopped> {
        items.extend(chunk);
        Ok(())
    };
    let summary = intake::read(bytes.as_ref(), "file", profile, &mut keep)?;
    Ok((summary, items))
}

/// Reads by a profile of that name; the file must be readable.
pub(crate) fn good(bytes: impl AsRef<[u8]>, profile_name: &str) -> (FileSummary, Vec<StagedItem>) {
    read(bytes, &profile(profile_name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads by a profile of that name; the file must be refused, at this line, with a message that contains `says`.
pub(crate) fn refused(bytes: impl AsRef<[u8]>, profile_name: &str, line: u64, says: &str) {
    let error = read(bytes, &profile(profile_name)).map(|(summary, _)| summary).expect_err("the file must be refused");
    let text = error.to_string();
    assert!(text.starts_with(&format!("file:{line}: ")), "line {line} expected: {text}");
    assert!(text.contains(says), "{says:?} expected: {text}");
    assert!(text.matches(": ").count() >= 2, "a remedy is expected: {text}");
}

/// Of the only batch of a file: why it is broken.
pub(crate) fn breaks(bytes: impl AsRef<[u8]>, profile_name: &str) -> Vec<String> {
    let (summary, _) = good(bytes, profile_name);
    let [batch] = &summary.batches[..] else { panic!("one batch expected") };
    batch.breaks.clone()
}

/// A file with the first line that contains `marker` changed.
pub(crate) fn with_line(text: &str, marker: &str, change: impl Fn(&str) -> String) -> String {
    let line = text.lines().find(|line| line.contains(marker)).unwrap_or_else(|| panic!("no line with {marker:?}"));
    text.replacen(line, &change(line), 1)
}
