//! One record of 94 characters and its fields, by the positions of the rule book: from 1, both ends included.

use crate::error::Fault;
use chrono::NaiveDate;

/// Characters of a record.
pub(super) const LENGTH: usize = 94;

/// A record of printable ASCII.
pub(super) struct Record<'a> {
    /// Physical line; the number of the record in a file without lines.
    pub(super) line: u64,
    text: &'a str,
}

impl<'a> Record<'a> {
    pub(super) fn new(line: u64, bytes: &'a [u8]) -> Result<Record<'a>, Fault> {
        let printable = |byte: &u8| (b' '..=b'~').contains(byte);
        if let Some(at) = bytes.iter().position(|byte| !printable(byte)) {
            let what = format!("character {} of the record is not printable ASCII", at + 1);
            return Err(Fault::at(line, what, "choose the profile of this file, or transfer it again unchanged"));
        }
        if bytes.len() != LENGTH {
            let what = format!("the record has {} characters (a NACHA record has {LENGTH})", bytes.len());
            return Err(Fault::at(line, what, "choose the profile of this file, or transfer it again unchanged"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Fault::at(line, "the record is no text", "transfer it again"))?;
        Ok(Record { line, text })
    }

    /// The record type.
    pub(super) fn kind(&self) -> char {
        char::from(self.text.as_bytes()[0])
    }

    /// Records that fill the last block.
    pub(super) fn is_padding(&self) -> bool {
        self.text.bytes().all(|byte| byte == b'9')
    }

    /// A field as it stands.
    pub(super) fn text(&self, from: usize, to: usize) -> &'a str {
        &self.text[from - 1..to]
    }

    /// A field of digits only.
    pub(super) fn number(&self, from: usize, to: usize, what: &str) -> Result<u64, Fault> {
        let field = self.digits(from, to, what)?;
        field.parse().map_err(|_| self.fault(format!("the {what} {field:?} is too large"), "correct the file"))
    }

    /// A field of digits only, as text.
    pub(super) fn digits(&self, from: usize, to: usize, what: &str) -> Result<&'a str, Fault> {
        let field = self.text(from, to);
        if field.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(field);
        }
        Err(self.fault(format!("the {what} {field:?} (characters {from}-{to}) is not of digits"), "correct the file"))
    }

    /// A date as YYMMDD, of this century; `None` where the field is blank.
    pub(super) fn date(&self, from: usize, to: usize, what: &str) -> Result<Option<NaiveDate>, Fault> {
        let field = self.text(from, to);
        if field.trim().is_empty() {
            return Ok(None);
        }
        let digits = field.bytes().all(|byte| byte.is_ascii_digit());
        let date = digits.then(|| NaiveDate::parse_from_str(&format!("20{field}"), "%Y%m%d").ok()).flatten();
        date.map(Some).ok_or_else(|| self.fault(format!("the {what} {field:?} is no date (YYMMDD)"), "correct the file"))
    }

    pub(super) fn fault(&self, what: impl Into<String>, remedy: &str) -> Fault {
        Fault::at(self.line, what, remedy)
    }
}
