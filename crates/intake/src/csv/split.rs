//! One CSV record, split strictly as RFC 4180 has it. Needs `error.rs`, `source.rs`.
//!
//! Lenient readers turn `"12"34` into `1234`: in a settlement file that is an amount nobody wrote. Here a quote stands at the
//! start of a field or nowhere, and nothing but a delimiter follows the closing one. Line breaks inside quotes are read.

use crate::error::Fault;
use crate::source::{MAX_RECORD_BYTES, Source, too_long};
use std::io::Read;

/// A record; its memory is used again for the next one.
#[derive(Default)]
pub(super) struct Record {
    /// First physical line, from 1.
    pub(super) line: u64,
    text: String,
    /// End of each field in `text`.
    ends: Vec<usize>,
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside quotes: a second one is a quote, a delimiter ends the field.
    QuoteInQuoted,
}

impl Record {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Writes these fields in small letters, ASCII only: what other letters become depends on the version of a table.
    pub(super) fn fold_case(&mut self, columns: &[usize]) {
        for column in columns.iter().filter(|column| **column < self.ends.len()) {
            let start = if *column == 0 { 0 } else { self.ends[column - 1] };
            self.text[start..self.ends[*column]].make_ascii_lowercase();
        }
    }

    /// Reads the next record; `false` at the end of the file. Lines without anything are passed over.
    pub(super) fn read(&mut self, source: &mut Source<impl Read>, delimiter: char) -> Result<bool, Fault> {
        self.text.clear();
        self.ends.clear();
        self.bytes = 0;
        loop {
            match source.line_text()? {
                None => return Ok(false),
                Some((_, line)) if line.is_empty() => {}
                Some((number, line)) => {
                    self.line = number;
                    if self.push_line(State::FieldStart, number, &line, delimiter)? == State::Plain {
                        return Ok(true);
                    }
                    return self.read_quoted(source, delimiter);
                }
            }
        }
    }

    /// The lines after one that ended inside quotes.
    fn read_quoted(&mut self, source: &mut Source<impl Read>, delimiter: char) -> Result<bool, Fault> {
        while let Some((number, line)) = source.line_text()? {
            self.text.push('\n');
            if self.push_line(State::Quoted, number, &line, delimiter)? == State::Plain {
                return Ok(true);
            }
        }
        Err(Fault::at(self.line, "a quote opened in this record is never closed", "correct the file, or transfer it again"))
    }

    /// Ends in `Quoted` (the record goes on) or `Plain` (it is complete).
    fn push_line(&mut self, mut state: State, number: u64, line: &str, delimiter: char) -> Result<State, Fault> {
        self.bytes += line.len() + 1;
        if self.bytes > MAX_RECORD_BYTES {
            return Err(too_long(self.line));
        }
        for (at, c) in line.char_indices() {
            let stray = || {
                let remedy = "quote the whole field and double the quotes inside it";
                Fault::at(number, format!("a stray quote around byte {} of the line", at + 1), remedy)
            };
            state = match (state, c) {
                (State::Quoted, '"') => State::QuoteInQuoted,
                (State::Quoted, c) => {
                    self.text.push(c);
                    State::Quoted
                }
                (State::FieldStart, '"') => State::Quoted,
                (State::QuoteInQuoted, '"') => {
                    self.text.push('"');
                    State::Quoted
                }
                (State::Plain, '"') => return Err(stray()),
                (_, c) if c == delimiter => {
                    self.ends.push(self.text.len());
                    State::FieldStart
                }
                (State::QuoteInQuoted, _) => return Err(stray()),
                (State::FieldStart | State::Plain, c) => {
                    self.text.push(c);
                    State::Plain
                }
            };
        }
        if state == State::Quoted {
            return Ok(State::Quoted);
        }
        self.ends.push(self.text.len());
        Ok(State::Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Encoding;
    use proptest::prelude::*;

    fn ours(text: &str, delimiter: char) -> Option<Vec<Vec<String>>> {
        let mut source = Source::new(text.as_bytes(), Encoding::Utf8);
        let (mut record, mut records) = (Record::default(), Vec::new());
        while record.read(&mut source, delimiter).ok()? {
            records.push(record.iter().map(str::to_owned).collect());
        }
        Some(records)
    }

    /// The csv crate, which is lenient where we are strict.
    fn theirs(text: &str, delimiter: char) -> Vec<Vec<String>> {
        let delimiter = u8::try_from(delimiter).unwrap_or(b',');
        let mut builder = csv::ReaderBuilder::new();
        let reader = builder.has_headers(false).flexible(true).delimiter(delimiter).from_reader(text.as_bytes());
        reader.into_records().map(|record| record.expect("text").iter().map(str::to_owned).collect()).collect()
    }

    proptest! {
        /// Whatever we read, the csv crate reads the same.
        #[test]
        fn what_is_read_agrees_with_the_csv_crate(text in "[a;,\"\n ]{0,40}", delimiter in prop::sample::select(vec![',', ';'])) {
            if let Some(records) = ours(&text, delimiter) {
                prop_assert_eq!(records, theirs(&text, delimiter));
            }
        }

        /// Whatever the csv crate writes, we read back.
        #[test]
        fn what_the_csv_crate_writes_is_read(
            fields in prop::collection::vec(prop::collection::vec("[a-z,\"\n ]{0,8}", 2..5), 1..5)
        ) {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            for row in &fields {
                writer.write_record(row).expect("memory");
            }
            let text = String::from_utf8(writer.into_inner().expect("memory")).expect("text");
            prop_assert_eq!(ours(&text, ','), Some(fields));
        }
    }
}
