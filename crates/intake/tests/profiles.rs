//! Profiles that make no sense are refused with a sentence.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::profile_text;
use intake::Profile;

fn canonical() -> String {
    profile_text("canonical-csv")
}

fn wrong(text: &str, says: &str) {
    let error = Profile::parse(text, "mine").expect_err("the profile must be refused").to_string();
    assert!(error.starts_with("profile mine") && error.contains(says), "{says:?} expected: {error}");
}

fn changed(from: &str, to: &str, says: &str) {
    assert!(canonical().contains(from), "{from:?}");
    wrong(&canonical().replacen(from, to, 1), says);
}

#[test]
fn every_built_in_profile_makes_sense() {
    let names: Vec<_> = Profile::names().collect();
    assert_eq!(names, ["adyen-settlement-detail", "canonical-csv", "canonical-ndjson", "nacha"]);
    for name in names {
        assert_eq!(Profile::named(name).unwrap().name, name);
    }
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
