//! A provider that nobody knows is one file of TOML: `profiles/nordhandel.toml`, and no code.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{NORDHANDEL_HEADER, good, latin1, nordhandel, profile, profile_text, read, refused};
use domain::item::ItemKind;
use intake::Profile;

const OWN: &str = "nordhandel";

/// One row of it.
fn row(currency: &str, amount: &str) -> Vec<u8> {
    latin1(&format!("{NORDHANDEL_HEADER}Z-1;02.03.2026;Umsatz;Kiosk;{currency};{amount};;B1;\r\n"))
}

fn gross(currency: &str, amount: &str) -> i64 {
    good(row(currency, amount), OWN).1[0].item.gross_minor
}

#[test]
fn a_file_of_an_unknown_provider_foots() {
    let (summary, items) = good(latin1(&nordhandel()), OWN);
    let [one, other] = &summary.batches[..] else { panic!("two batches expected") };
    assert_eq!((one.external_batch_id.as_str(), other.external_batch_id.as_str()), ("z-1", "z-2"));
    assert_eq!((one.breaks.len(), other.breaks.len()), (0, 0), "{:?} {:?}", one.breaks, other.breaks);
    let totals: Vec<_> = one.totals.iter().map(|t| (t.currency.code(), t.gross_minor, t.fee_minor, t.remittance_minor)).collect();
    assert_eq!(totals, [("EUR", 123_200, 1_244, 121_956), ("HUF", 1_200_000, 12_000, 1_188_000)]);
    let line = |at: usize| {
        let item = &items[at].item;
        (item.line_no, item.kind, item.merchant.as_str(), item.gross_minor, item.fee_minor)
    };
    assert_eq!(line(0), (2, ItemKind::Charge, "Bäckerei Süß", 123_450, 1_234));
    assert_eq!(line(2), (4, ItemKind::Refund, "Bäckerei Süß", -1_250, 0));
    assert_eq!(line(4), (7, ItemKind::Remittance, "Bäckerei Süß", -121_956, 0));
    assert_eq!(items[2].item.dedupe_key, "B3");
}

/// M11: the minus stands behind, the comma before the cents; whatever could mean something else is refused, with its line.
#[test]
fn m11_amounts_are_read_in_one_way_only() {
    assert_eq!((gross("EUR", "12,50-"), gross("EUR", "12,50"), gross("EUR", "0,00-")), (-1_250, 1_250, 0));
    assert_eq!((gross("EUR", "1.234,50-"), gross("EUR", "1234,5")), (-123_450, 123_450));
    let wrong =
        ["-12,50", "12.50", "12.50-", "1.23,50", "12,50--", "12,50 -", "- 12,50", "-", "12,-", "(12,50)", "+12,50", "-12,50-"];
    for amount in wrong {
        refused(row("EUR", amount), OWN, 2, "is not an amount (profile nordhandel expects e.g. 1234,50 or 1234,50-)");
    }
    // a dot before three digits is a group here, and half a group is nothing
    assert_eq!(gross("EUR", "1.234"), 123_400);
    refused(row("EUR", "1.2345"), OWN, 2, "is not an amount");
}

/// M2: this source counts forints in whole ones, though ISO 4217 gives them two decimals; the ledger counts as ISO 4217 does.
#[test]
fn m2_a_source_has_exponents_of_its_own() {
    assert_eq!((gross("HUF", "12.000"), gross("EUR", "12.000"), gross("JPY", "12")), (1_200_000, 1_200_000, 12));
    refused(row("HUF", "12,50"), OWN, 2, "12.50 is finer than HUF, which has 0 decimals in this profile");
    refused(row("JPY", "12,50"), OWN, 2, "12.50 is finer than JPY, which has 0 decimals: ");
    refused(row("EUR", "12,505"), OWN, 2, "12.505 is finer than EUR, which has 2 decimals: ");
    // where a profile rounds, it rounds to what its source can pay
    let rounds = profile_text(OWN).replace("minus = ", "round = true\nminus = ");
    let (_, items) = read(row("HUF", "12,50"), &Profile::parse(&rounds, OWN).unwrap()).unwrap();
    assert_eq!((items[0].item.gross_minor, items[0].item.residual_micro), (1_200, 500_000));
}

/// M12: the bytes are those of the encoding that the profile names, and nothing is guessed.
#[test]
fn m12_the_encoding_is_the_profiles() {
    let text = |encoding: &str| profile_text(OWN).replace("\"latin-1\"", &format!("\"{encoding}\""));
    let in_other = |encoding: &str, bytes: &[u8]| read(bytes, &Profile::parse(&text(encoding), OWN).unwrap());
    let bytes = latin1(&nordhandel());
    let summary = good(&bytes, OWN).0;
    for encoding in ["windows-1252", "iso-8859-15"] {
        assert_eq!(in_other(encoding, &bytes).unwrap().0.batches, summary.batches, "alike where all agree: {encoding}");
    }
    assert_eq!(in_other("utf-8", nordhandel().as_bytes()).unwrap().0.batches, summary.batches);
    let error = in_other("utf-8", &bytes).unwrap_err().to_string();
    assert!(
        error.starts_with("file:1: byte 21 of the line is not UTF-8: choose the profile of this file, which names its encoding"),
        "{error}"
    );
    // the euro sign is where Latin-1 has a control character, which no file means
    let euro = |byte: u8| {
        [latin1(NORDHANDEL_HEADER), b"Z-1;02.03.2026;Umsatz;Caf\xe9 ".to_vec(), vec![byte], b";EUR;1,00;;B1;\n".to_vec()].concat()
    };
    refused(euro(0x80), OWN, 2, "byte 28 of the line is no character of latin-1");
    let merchant = |encoding: &str, byte: u8| in_other(encoding, &euro(byte)).map(|(_, items)| items[0].item.merchant.clone());
    assert_eq!(merchant("windows-1252", 0x80).unwrap(), "Café €");
    assert_eq!(merchant("iso-8859-15", 0xa4).unwrap(), "Café €");
    assert_eq!(merchant("latin-1", 0xa4).unwrap(), "Café ¤");
    assert!(merchant("windows-1252", 0x81).unwrap_err().to_string().contains("is no character of windows-1252"));
    // counted as the file has them: an é takes two bytes here and one there
    refused(euro(0), OWN, 2, "a NUL byte at byte 28");
    refused(euro(b'\r'), OWN, 2, "a carriage return inside the line at byte 28");
    let marked = [b"\xef\xbb\xbf".to_vec(), bytes].concat();
    refused(marked, OWN, 1, "the file begins with the mark of UTF-8 (the profile says latin-1)");
}

#[test]
fn one_word_in_two_cases_is_one_word() {
    let (summary, _) = good(latin1(&nordhandel()), OWN);
    let same = nordhandel().replace("z-1;", "Z-1;").replace("UMSATZ", "umsatz");
    assert_eq!(good(latin1(&same), OWN).0.batches, summary.batches);
    refused(latin1(&nordhandel().replace("UMSATZ", "Umsätze")), OWN, 3, "unknown Art \"umsätze\"");
    assert_eq!(profile(OWN).source, "nordhandel");
}
