//! Input that is no settlement file, or no longer one: each is refused with file, line and remedy, and nothing panics.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use chrono::NaiveDate;
use common::{good, profile, read, refused};
use intake::{MAX_RECORD_BYTES, ReadError, sample};
use std::io::{Read, Write};

const HEADER: &str = "batch_id,business_date,kind,merchant,currency,gross,fee,id\n";
const ROW: &str = "b,2026-03-02,charge,m,EUR,5.00,0.10,x\n";

fn csv(rows: &str) -> String {
    format!("{HEADER}{rows}")
}

fn with_gross(gross: &str) -> String {
    csv(&format!("{ROW}{}", ROW.replace("5.00", gross).replace(",x", ",y")))
}

fn date() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, 2).unwrap()
}

/// M11: what could mean two amounts, or none, is an error; nothing is guessed and nothing trimmed.
#[test]
fn m11_ambiguous_amounts_are_refused() {
    let texts = [
        "\"1.234,5\"",
        "\"1,234\"",
        "\"1,234.50\"",
        "1.234.5",
        "1e3",
        "1E3",
        "\"-1.000,00\"",
        " 5",
        "5 ",
        "+5",
        "--5",
        "5-",
        "(5)",
        "NaN",
        "inf",
        "-",
        ".",
        ".5",
        "5.",
        "0x10",
        "٥",
        "1_000",
        "1'000",
        "$5",
        "5 EUR",
        "-.5",
        "\"5\"\"\"",
    ];
    for text in texts {
        refused(with_gross(text), "canonical-csv", 3, "is not an amount (profile canonical-csv expects e.g. 1234.50)");
    }
    refused(with_gross(""), "canonical-csv", 3, "no amount in \"gross\"");
    refused(with_gross(" "), "canonical-csv", 3, "\" \" is not an amount");
    assert_eq!(good(with_gross("007.50"), "canonical-csv").1[1].item.gross_minor, 750);
    assert_eq!(good(with_gross("-5"), "canonical-csv").1[1].item.gross_minor, -500);
}

/// M2: an amount finer than its currency was written with another exponent.
#[test]
fn m2_a_wrong_exponent_is_refused() {
    refused(with_gross("5.001"), "canonical-csv", 3, "5.001 is finer than EUR, which has 2 decimals");
    refused(with_gross("5.01").replace("EUR", "JPY"), "canonical-csv", 2, "finer than JPY, which has 0 decimals");
    assert_eq!(good(with_gross("5.00").replace("EUR,5.00,0.10", "JPY,5.00,"), "canonical-csv").1[1].item.gross_minor, 5);
    assert_eq!(good(with_gross("5.125").replace("EUR", "KWD"), "canonical-csv").1[1].item.gross_minor, 5125);
}

/// M3: beyond 64 bits of minor units, in a line and in a total.
#[test]
fn m3_overflow_is_refused() {
    let largest = "92233720368547758.07";
    assert_eq!(good(csv(&ROW.replace("5.00,0.10", &format!("{largest},"))), "canonical-csv").1[0].item.gross_minor, i64::MAX);
    refused(with_gross("92233720368547758.08"), "canonical-csv", 3, "does not fit into 64 bits");
    refused(with_gross("-92233720368547758.08"), "canonical-csv", 3, "net of the line");
    refused(with_gross(&"9".repeat(28)), "canonical-csv", 3, "does not fit");
    refused(with_gross(&"9".repeat(60)), "canonical-csv", 3, "is not an amount");
    refused(with_gross(largest), "canonical-csv", 2, "batch \"b\": a total of EUR");
    let fees = ROW.replace("5.00,0.10", "-92233720368547758.07,1");
    refused(csv(&fees), "canonical-csv", 2, "the net of the line");
}

#[test]
fn currencies_dates_and_kinds_are_known() {
    for code in ["XXX", "EURO", "€", "XAU", "E R"] {
        refused(csv(&ROW.replace("EUR", code)), "canonical-csv", 2, "is not an ISO 4217 currency");
    }
    refused(csv(&ROW.replace("EUR", "")), "canonical-csv", 2, "no currency");
    assert_eq!(good(csv(&ROW.replace("EUR", "eur")), "canonical-csv").1[0].item.currency.code(), "EUR");
    refused(csv(&ROW.replace("2026-03-02", "02.03.2026")), "canonical-csv", 2, "is not a date");
    refused(csv(&ROW.replace("2026-03-02", "2026-02-30")), "canonical-csv", 2, "is not a date");
    refused(csv(&ROW.replace("2026-03-02", "")), "canonical-csv", 2, "no business date");
    refused(csv(&ROW.replace("charge", "chrage")), "canonical-csv", 2, "unknown kind \"chrage\"");
    refused(csv(&ROW.replace("b,", " ,")), "canonical-csv", 2, "belongs to no batch");
    refused(csv(&ROW.replace(",m,", ", ,")), "canonical-csv", 2, "no merchant");
    refused(csv(&ROW.replace(",x", &format!(",{}", "x".repeat(513)))), "canonical-csv", 2, "513 bytes");
    refused(csv(&format!("{ROW}b,2026-03-02,total,,EUR,5,,\nb,2026-03-02,total,,EUR,5,,\n")), "canonical-csv", 4, "second total");
}

/// M12: a byte order mark, CRLF and a missing last line end say nothing about the content.
#[test]
fn m12_marks_and_line_ends_are_read() {
    let plain = good(csv(ROW), "canonical-csv").0.batches;
    for text in [
        format!("\u{feff}{}", csv(ROW)),
        csv(ROW).replace('\n', "\r\n"),
        csv(ROW).trim_end().to_owned(),
        format!("\u{feff}{}", csv(ROW).replace('\n', "\r\n").trim_end()),
        format!("{}\n\n", csv(ROW)),
    ] {
        assert_eq!(good(&text, "canonical-csv").0.batches, plain, "{text:?}");
    }
    let nacha = sample::nacha(3, 5, date(), 1);
    let plain = good(&nacha, "nacha").0.batches;
    for text in [
        format!("\u{feff}{nacha}"),
        nacha.replace('\n', "\r\n"),
        nacha.trim_end().to_owned(),
        nacha.replace('\n', ""),
        format!("{}\r\n", nacha.replace('\n', "")),
        format!("{nacha}\n\r\n"),
    ] {
        assert_eq!(good(&text, "nacha").0.batches, plain);
    }
}

/// M12: a mark anywhere else means that files were joined.
#[test]
fn m12_a_mark_elsewhere_is_refused() {
    refused(format!("{}\u{feff}{ROW}", csv(ROW)), "canonical-csv", 3, "byte order mark");
    refused(csv(&ROW.replace(",m,", ",m\u{feff},")), "canonical-csv", 2, "byte order mark");
    let line = "{}\n".to_owned() + "\u{feff}{}";
    refused(format!("\u{feff}\u{feff}{}", csv(ROW)), "canonical-csv", 1, "byte order mark");
    assert!(read(line, &profile("canonical-ndjson")).is_err());
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut bytes = csv(ROW).into_bytes();
    bytes.extend(b"b,2026-03-02,charge,caf\xe9,EUR,5.00,,y\n");
    refused(&bytes, "canonical-csv", 3, "byte 24 of the line is not UTF-8");
    refused(csv(&ROW.replace(",m,", ",\0,")), "canonical-csv", 2, "NUL");
    refused(csv(&ROW.replace(",m,", ",m\rn,")), "canonical-csv", 2, "carriage return");
    refused(b"\xff\xfeb\0a\0", "canonical-csv", 1, "UTF-16");
    refused(sample::nacha(1, 1, date(), 1).replace("EXAMPLE BANK", "EXAMPLE B\u{c4}K"), "nacha", 1, "character 50");
    refused("", "canonical-csv", 1, "empty");
    refused("\n\n", "canonical-csv", 2, "no header");
    refused("", "nacha", 1, "empty");
    refused("\n", "nacha", 1, "file control");
}

#[test]
fn the_wrong_profile_is_said_at_once() {
    let (csv, ndjson) = (sample::canonical(1, 3, date(), 1), sample::canonical_ndjson(1, 3, date(), 1));
    let (adyen, nacha) = (sample::settlement_detail(3, 1, 1), sample::nacha(1, 3, date(), 1));
    refused(&ndjson, "adyen-settlement-detail", 1, "choose the profile of this file");
    for other in [&csv, &nacha] {
        refused(other, "adyen-settlement-detail", 1, "has no column \"Type\" (profile adyen-settlement-detail expects it)");
    }
    refused(&adyen, "canonical-csv", 1, "has no column \"kind\"");
    for other in [&csv, &adyen, &ndjson] {
        refused(other, "nacha", 1, "choose the profile of this file");
    }
    for other in [&csv, &adyen] {
        refused(other, "canonical-ndjson", 1, "expects one JSON object a line");
    }
    refused(&nacha, "canonical-ndjson", 1, "expected a JSON object");
}

#[test]
fn a_row_that_was_cut_is_refused() {
    refused(csv("b,2026-03-02,charge,m,EUR,5.0"), "canonical-csv", 2, "the row has 6 fields, the header 8");
    refused(csv(&ROW.replace(",x", ",x,y")), "canonical-csv", 2, "the row has 9 fields");
    let adyen = sample::settlement_detail(30, 1, 1);
    let cut = &adyen[..adyen.len() - 40];
    refused(cut, "adyen-settlement-detail", 33, "fields, the header 25");
    refused("batch_id,batch_id\n", "canonical-csv", 1, "no column \"kind\"");
    refused(format!("{}{ROW}", HEADER.replace(",id", ",id,fee")), "canonical-csv", 1, "\"fee\" twice");
}

#[test]
fn quotes_are_strict() {
    refused(with_gross("\"12\"34"), "canonical-csv", 3, "stray quote");
    refused(with_gross("12\"34\""), "canonical-csv", 3, "stray quote");
    refused(with_gross("\"12\" "), "canonical-csv", 3, "stray quote");
    refused(csv(&format!("{ROW}\"b,2026-03-02\n{ROW}")), "canonical-csv", 3, "never closed");
    assert_eq!(good(with_gross("\"12\""), "canonical-csv").1[1].item.gross_minor, 1200);
}

/// Delivers `head`, then `byte` for ever.
struct Endless {
    head: Vec<u8>,
    byte: u8,
    delivered: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.delivered > 100 * MAX_RECORD_BYTES {
            return Err(std::io::Error::other("nobody stopped reading"));
        }
        let from_head = buffer.len().min(self.head.len());
        buffer[..from_head].copy_from_slice(&self.head[..from_head]);
        self.head.drain(..from_head);
        buffer[from_head..].fill(self.byte);
        self.delivered += buffer.len();
        Ok(buffer.len())
    }
}

/// M5: memory is bounded by the record limit, whatever the file does.
#[test]
fn m5_a_line_without_end_is_refused_early() {
    let quoted = format!("{}\"", csv(ROW));
    for (head, byte, name, line) in [
        (csv(ROW), b'x', "canonical-csv", 3),
        (quoted.clone(), b'x', "canonical-csv", 3),
        (quoted, b'\n', "canonical-csv", 3),
        (csv(ROW), b',', "canonical-csv", 3),
        (csv(ROW), b'"', "canonical-csv", 3),
        (String::new(), b'{', "canonical-ndjson", 1),
        (String::new(), b'1', "nacha", 1),
        (sample::nacha(1, 1, date(), 1), b'9', "nacha", 11),
    ] {
        let mut source = Endless { head: head.into_bytes(), byte, delivered: 0 };
        let error = intake::read(&mut source, "endless", &profile(name), &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.line(), Some(line), "{error}");
        assert!(source.delivered < 20 * MAX_RECORD_BYTES, "{} bytes read for {error}", source.delivered);
    }
    let longest = csv(&ROW.replace(",x", &format!(",{}", "x".repeat(MAX_RECORD_BYTES))));
    refused(longest, "canonical-csv", 2, "longer than 65536 bytes");
}

#[test]
fn damaged_compression_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let zip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let open = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut keep = |_| Ok(());
        intake::read(intake::open(&path).unwrap(), name, &profile("canonical-csv"), &mut keep)
    };
    let text = sample::canonical(3, 2_000, date(), 1);
    let whole = zip(&text);
    let plain = open("plain", text.as_bytes()).unwrap();
    let zipped = open("whole.gz", &whole).unwrap();
    assert_eq!((plain.sha256, plain.batches), (zipped.sha256, zipped.batches), "the hash is of the decompressed bytes");

    let (one, other) = text.split_at(text.len() / 2);
    let members = [zip(one), zip(other)].concat();
    assert_eq!(open("members.gz", &members).unwrap().sha256, plain.sha256);

    let cut = open("cut.gz", &whole[..whole.len() - 5]).unwrap_err();
    assert!(cut.to_string().contains("ends too early") && cut.line().is_some(), "{cut}");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x55;
    let flipped = open("flipped.gz", &flipped).unwrap_err();
    assert!(flipped.line().is_some(), "{flipped}");
    let garbage = open("garbage.gz", &[&whole[..], b"no member begins here"].concat()).unwrap_err();
    assert!(garbage.to_string().contains("damaged"), "{garbage}");
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let missing = intake::open(std::path::Path::new("/no/such/file")).err().unwrap();
    assert!(matches!(missing, ReadError::Io { .. }));
    assert!(missing.to_string().starts_with("/no/such/file: "), "{missing}");
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("disk on fire"))
        }
    }
    let error = intake::read(Broken, "file", &profile("nacha"), &mut |_| Ok(())).unwrap_err();
    assert!(error.to_string().starts_with("file:1: disk on fire"), "{error}");
}

#[test]
fn an_empty_report_is_a_warning() {
    let (summary, _) = good(HEADER, "canonical-csv");
    assert_eq!(summary.warnings, ["the file contains no batch"]);
}
