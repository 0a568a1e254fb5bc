//! A list of holidays: one date a line. Needs nothing else.

use chrono::NaiveDate;
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// Dates on which no business is done, with what the list says about them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holidays(BTreeMap<NaiveDate, String>);

/// Why a list of holidays cannot be read: file, line, and what is wrong there.
#[derive(Debug, Error)]
#[error("{place}: {what}")]
pub struct HolidayError {
    place: String,
    what: String,
}

impl Holidays {
    /// Reads a file; see [`Holidays::parse`].
    ///
    /// # Errors
    /// Those of [`Holidays::parse`], and a file that cannot be read.
    pub fn read(file: &Path) -> Result<Holidays, HolidayError> {
        let place = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| HolidayError { place: place.clone(), what: format!("cannot be read: {error}") })?;
        Holidays::parse(&text, &place)
    }

    /// One date a line as `2026-12-25`, and after it, if you like, its name; `#` begins a comment.
    ///
    /// The dates must ascend and none may come twice: a date that does not is nearly always a slip in its year or month, and a
    /// holiday that is missed is a night that runs on the wrong business date.
    ///
    /// # Errors
    /// `file` and line of the first date that cannot be read or does not ascend.
    pub fn parse(text: &str, file: &str) -> Result<Holidays, HolidayError> {
        let mut holidays = BTreeMap::new();
        for (number, line) in (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines()) {
            let wrong = |what: String| HolidayError { place: format!("{file}:{number}"), what };
            let Some((date, name)) = entry(line).map_err(wrong)? else { continue };
            match holidays.last_key_value() {
                Some((last, _)) if *last == date => return Err(wrong(format!("{date} comes twice; remove one of the two"))),
                Some((last, _)) if *last > date => {
                    return Err(wrong(format!("{date} comes after {last}; dates ascend, so one of the two may be a slip")));
                }
                _ => holidays.insert(date, name),
            };
        }
        Ok(Holidays(holidays))
    }

    /// What the list calls `date`, if it is a holiday; may be empty.
    #[must_use]
    pub fn name(&self, date: NaiveDate) -> Option<&str> {
        self.0.get(&date).map(String::as_str)
    }

    /// The last date of the list: after it nobody knows of holidays.
    #[must_use]
    pub fn until(&self) -> Option<NaiveDate> {
        self.0.last_key_value().map(|(date, _)| *date)
    }

    /// In ascending order.
    pub(crate) fn dates(&self) -> impl Iterator<Item = NaiveDate> {
        self.0.keys().copied()
    }
}

/// What a line says, if it says anything.
fn entry(line: &str) -> Result<Option<(NaiveDate, String)>, String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if line.is_empty() {
        return Ok(None);
    }
    let (date, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // NaiveDate also reads "2026-1-2" and years of five digits, which are slips here
    let written = date.len() == 10 && date.starts_with(|first: char| first.is_ascii_digit());
    let parsed = written.then(|| date.parse().ok()).flatten();
    let wrong = || format!("{date:?} is not a date; a line is a date such as 2026-12-25, and then its name");
    parsed.map(|date| Some((date, name.trim().to_owned()))).ok_or_else(wrong)
}
