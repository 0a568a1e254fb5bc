//! What people and programs read: tables on a terminal, JSON with `--json`.

use crate::exit;
use comfy_table::{ContentArrangement, Row, Table, presets};
use serde::Serialize;
use std::io::Write;

/// Prints a line. A reader that has gone away (`| head`) is no failure of ours: what it would have read is dropped.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::line(&format!($($text)*)) };
}
pub(crate) use say;

/// See [`say`]. Output that is lost for another reason (a full disk) is a failure, and nobody would see it otherwise.
pub(crate) fn line(text: &str) {
    match writeln!(anstream::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            exit::tell(&format!("error: standard output cannot be written: {error}"));
            std::process::exit(i32::from(exit::FAILED));
        }
        Ok(()) | Err(_) => {}
    }
}

/// Prints one JSON value on one line.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    say!("{}", serde_json::to_string(value)?);
    Ok(())
}

/// A table with these headings.
pub(crate) fn table<const N: usize>(headings: [&str; N]) -> Table {
    let mut table = plain_table(headings);
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table
}

/// A table without lines.
pub(crate) fn plain_table(headings: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(headings);
    table
}

/// Minor units of a currency as a person reads them; of an unknown currency, as they are.
pub(crate) fn amount(minor: i128, currency: &str) -> String {
    let exponent = domain::money::Currency::parse(currency).map_or(0, domain::money::Currency::exponent);
    domain::money::format_minor(minor, exponent)
}
