//! Profiles that make no sense are refused with a sentence.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{CARDS, OWN, PAYOUTS, TABLES, profile_text};
use intake::Profile;

fn canonical() -> String {
    profile_text("canonical-csv")
}

fn wrong(text: &str, says: &str) {
    let error = Profile::parse(text, "mine").expect_err("the profile must be refused").to_string();
    assert!(error.starts_with("profile mine") && error.contains(says), "{says:?} expected: {error}");
}

fn changed(from: &str, to: &str, says: &str) {
    of("canonical-csv", from, to, says);
}

/// Another profile, changed.
fn of(name: &str, from: &str, to: &str, says: &str) {
    let text = profile_text(name);
    assert!(text.contains(from), "{from:?}");
    wrong(&text.replacen(from, to, 1), says);
}

#[test]
fn every_built_in_profile_makes_sense() {
    let names: Vec<_> = Profile::names().collect();
    assert_eq!(names, [CARDS, "canonical-csv", "canonical-ndjson", TABLES, "nacha", PAYOUTS]);
    for name in names {
        assert_eq!(Profile::named(name).unwrap().name, name);
        assert_eq!(Profile::text(name).unwrap(), profile_text(name));
    }
    let error = Profile::text("other").unwrap_err().to_string();
    assert!(error.starts_with("there is no built-in profile other: one of adyen-settlement-detail, canonical-csv"), "{error}");
    assert!(Profile::named("other").is_none());
}

#[test]
fn a_profile_is_loaded_by_name_or_path() {
    assert_eq!(Profile::load("nacha").unwrap().source, "nacha");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, canonical()).unwrap();
    assert_eq!(Profile::load(path.to_str().unwrap()).unwrap().name, "mine");
    let missing = Profile::load("no-such-profile").unwrap_err().to_string();
    assert!(missing.contains("built-in profile (adyen-settlement-detail, canonical-csv, canonical-ndjson"), "{missing}");
}

#[test]
fn unknown_words_are_named_with_their_line() {
    changed("kind = \"charge\"", "kind = \"chrage\"", "unknown variant `chrage`, expected one of `charge`");
    changed("fee_mode", "fee_mood", "unknown field `fee_mood`");
    changed("remittance = \"if_present\"", "remittance = \"sometimes\"", "profile mine:5: unknown variant");
    changed("format = \"csv\"", "format = \"xml\"", "profile mine:2: unknown variant `xml`");
    changed("source = \"canonical\"", "", "missing field `source`");
    wrong("format = ", "profile mine:1: ");
    wrong("", "missing field `format`");
}

#[test]
fn sections_are_complete() {
    let section = |name: &str| {
        let start = canonical().find(&format!("[{name}]")).unwrap();
        let end = canonical()[start + 1..].find("\n[").map_or(canonical().len(), |end| start + 1 + end);
        format!("{}{}", &canonical()[..start], &canonical()[end..])
    };
    for name in ["batch", "business_date", "merchant", "currency", "amounts", "identity"] {
        wrong(&section(name), &format!("[{name}] is missing"));
    }
}

#[test]
fn columns_are_mapped_once() {
    changed("fee = { columns = [\"fee\"] }", "fee = { columns = [\"gross\"] }", "column \"gross\" is mapped twice");
    changed("fee = { columns = [\"fee\"] }", "fee = { columns = [\"currency\"] }", "column \"currency\" is mapped twice");
    changed("columns = [\"batch_id\"]", "columns = [\"batch_id\", \"batch_id\"]", "batch.columns names \"batch_id\" twice");
    changed("columns = [\"batch_id\"]", "columns = [\" \"]", "blank name");
    changed("columns = [\"batch_id\"]", "columns = []", "name at least one column");
    changed("columns = [\"id\"]", "columns = []", "identity.columns is empty");
}

#[test]
fn amounts_are_two_of_three() {
    let fee = "fee = { columns = [\"fee\"] }";
    changed(fee, "", "two of gross, fee and net");
    changed(fee, &format!("{fee}\nnet = {{ columns = [\"net\"] }}"), "two of gross, fee and net");
    changed(fee, "fee = { debit = \"d\" }", "two columns debit and credit");
    changed(fee, "fee = { debit = \"d\", credit = \"d\" }", "two columns debit and credit");
    changed(fee, "fee = { debit = \"d\", credit = \"c\", columns = [\"x\"] }", "two columns debit and credit");
}

#[test]
fn words_refer_to_something() {
    changed("rule = \"same\"", "rule = \"latest\"\ntypes = [\"payout\"]", "business_date.types names \"payout\"");
    changed("rule = \"same\"", "rule = \"same\"\ntypes = [\"charge\"]", "has no meaning");
    changed("column = \"kind\"", "column = \"kind\"\nignore = [\"charge\"]", "names \"charge\", which is given twice");
    changed("type = \"total\"", "type = \"charge\"", "declared.type \"charge\"");
    changed("format = \"%Y-%m-%d\"", "format = \"YYYY-MM-DD\"", "no date format");
    changed("format = \"%Y-%m-%d\"", "format = \"%Q\"", "no date format");
    changed("columns = [\"currency\"]", "default = \"EURO\"", "currency.default");
    changed("columns = [\"currency\"]", "", "neither columns nor a default");
    let check = "[[check]]\nsays = \"x\"\namount = { columns = [\"n\"] }\nequals = \"net\"\n";
    wrong(&format!("{}{check}types = [\"y\"]\n", canonical()), "check.types names \"y\"");
    wrong(&format!("{}{check}when_equal = [\"y\"]\n", canonical()), "must name two columns");
    wrong(&format!("{}{}", canonical(), check.replace("\"net\"", "\"nett\"")), "unknown variant `nett`");
}

#[test]
fn money_is_remitted_somehow() {
    changed("remittance = \"if_present\"", "remittance = \"never\"", "a type is of kind \"remittance\"");
    changed("remittance = \"if_present\"", "remittance = \"declared_net\"", "names no column net");
    changed("remittance = { kind = \"remittance\" }", "", "no type is of kind \"remittance\"");
    let nacha = profile_text("nacha");
    wrong(&nacha.replace("never", "by_line"), "remittance must be \"never\"");
    let ndjson = profile_text("canonical-ndjson").replace("\"if_present\"", "\"declared_net\"");
    Profile::parse(&ndjson, "mine").unwrap();
    wrong(&ndjson.replace("\"withheld\"", "\"charged\""), "then more than the net is paid out");
}

#[test]
fn a_fixed_layout_takes_no_sections() {
    let nacha = profile_text("nacha");
    wrong(&format!("{nacha}\n[batch]\ncolumns = [\"x\"]\n"), "batch belongs to format = \"csv\"");
    wrong(&format!("{nacha}\ndelimiter = \";\"\n"), "delimiter belongs to format = \"csv\"");
}

#[test]
fn numbers_have_one_meaning() {
    let with = |numbers: &str| format!("{}\n[numbers]\n{numbers}\n", canonical());
    wrong(&with("decimal = \";\""), "numbers.decimal ';'");
    wrong(&with("group = \".\""), "numbers.group '.'");
    wrong(&with("group = \"x\""), "numbers.group 'x'");
    changed("source = \"canonical\"", "source = \"canonical\"\ndelimiter = \"a\"", "delimiter 'a'");
    changed("source = \"canonical\"", "source = \"canonical\"\ntolerance_minor = -1", "tolerance_minor is -1");
    changed("source = \"canonical\"", "source = \"two words\"", "without blanks");
}

#[test]
fn a_preamble_speaks_of_the_whole_file() {
    of(TABLES, "rule = \"one_per_file\"", "rule = \"by_row\"", "batch.rule must be \"one_per_file\"");
    of(
        TABLES,
        "rule = \"one_per_file\"",
        "rule = \"sometimes\"",
        "unknown variant `sometimes`, expected `by_row` or `one_per_file`",
    );
    of(
        TABLES,
        "[preamble]\ncolumn = \"ROW_TYPE\"\ntype = \"HEADER\"\n",
        "",
        "batch.table is \"preamble\", but there is no [preamble]",
    );
    of(TABLES, "type = \"HEADER\"\n", "", "preamble needs both column and type");
    of(TABLES, "column = \"ROW_TYPE\"\n", "", "preamble needs both column and type");
    of(TABLES, "table = \"preamble\"\ngross", "table = \"preamble\"\ntype = \"HEADER\"\ngross", "are told by preamble.type");
    of(TABLES, "table = \"preamble\"\ngross", "gross", "declared.type is missing");
    of(TABLES, "rule = \"same\"", "rule = \"latest\"\ntypes = [\"PAYMENT\"]", "the date is in the preamble");
    of(
        TABLES,
        "table = \"preamble\"\ncolumns = [\"SETTLEMENT_CURRENCY\"]",
        "columns = [\"CUR\"]",
        "declared.currency is missing",
    );
    of(TABLES, "table = \"preamble\"", "table = \"postscript\"", "unknown variant `postscript`, expected `rows` or `preamble`");
    let unused = format!("{}\n[preamble]\n", profile_text(PAYOUTS));
    wrong(&unused, "no section has table = \"preamble\"");
    // the totals are in the currency that every row has
    let constant = "default = \"USD\"";
    let text = profile_text(TABLES).replace("table = \"preamble\"\ncolumns = [\"SETTLEMENT_CURRENCY\"]", constant);
    Profile::parse(&text, "mine").unwrap();
}

#[test]
fn a_blank_merchant_is_owed_once() {
    of(PAYOUTS, "blank = \"batch\"", "blank = \"batch\"\ndefault = \"me\"", "both say whom a blank row is owed to");
    of(PAYOUTS, "blank = \"batch\"", "blank = \"nobody\"", "unknown variant `nobody`, expected `error` or `batch`");
    of("two-currencies", "columns = [\"Shop\"]", "columns = [\"Shop\"]\nblank = \"batch\"", "has no meaning for a preamble");
    of(PAYOUTS, "columns = [\"currency\"]", "columns = [\"currency\"]\nblank = \"batch\"", "unknown field `blank`");
    of(PAYOUTS, "columns = [\"gateway_account\"]\n", "", "merchant has neither columns nor a default");
}

#[test]
fn only_names_are_written_in_several_ways() {
    let fold = "fold_case = [\"reporting_category\"]";
    of(PAYOUTS, fold, "fold_case = [\"net\"]", "fold_case names \"net\", which no key reads as a name");
    of(PAYOUTS, fold, "fold_case = [\"automatic_payout_effective_at\"]", "which no key reads as a name");
    of(PAYOUTS, fold, "fold_case = [\"a\", \"a\"]", "fold_case names \"a\" twice");
    of(PAYOUTS, "\ncharge = ", "\nCharge = ", "check.types names \"charge\"");
    of("nordhandel", "umsatz = ", "Umsatz = ", "fold_case names \"Art\", so \"Umsatz\" is never read there: write it in small");
    of("nordhandel", "type = \"summe\"", "type = \"Summe\"", "so \"Summe\" is never read there");
    of(TABLES, "tolerance_minor = 2", "fold_case = [\"ROW_TYPE\"]", "is never read there");
}

#[test]
fn units_are_said_once() {
    let numbers = |keys: &str| format!("{}\n[numbers]\n{keys}\n", canonical());
    wrong(&numbers("unit = \"minor\"\ndecimal = \",\""), "numbers.decimal has no meaning with unit = \"minor\"");
    wrong(&numbers("unit = \"cents\""), "unknown variant `cents`, expected `major` or `minor`");
    wrong(&numbers("minus = \"middle\""), "unknown variant `middle`, expected `leading` or `trailing`");
    wrong(&numbers("exponents = { HUF = 7 }"), "numbers.exponents.HUF is 7: give a number of decimals from 0 to 6");
    wrong(&numbers("exponents = { HUX = 0 }"), "numbers.exponents: \"HUX\" is not an ISO 4217 currency");
    wrong(&numbers("exponents = { HUF = 0, huf = 0 }"), "numbers.exponents names HUF twice");
    Profile::parse(&numbers("unit = \"minor\"\ngroup = \".\""), "mine").unwrap();
    wrong(&format!("encoding = \"utf-16\"\n{}", canonical()), "unknown variant `utf-16`, expected one of `utf-8`, `latin-1`");
    for name in OWN {
        Profile::parse(&profile_text(name), name).unwrap();
    }
}
