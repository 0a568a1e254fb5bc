//! The bytes of a line as text, in the encoding that a profile names. Needs `error.rs`.
//!
//! No encoding is guessed: a merchant's name read by the wrong one is another merchant. So a byte that is no character is an
//! error, also where the other encodings of one byte a character would have had one for it.

use crate::error::Fault;
use encoding_rs::{ISO_8859_15, WINDOWS_1252};
use serde::Deserialize;
use std::borrow::Cow;

/// Encodings that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub(crate) enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "latin-1")]
    Latin1,
    #[serde(rename = "windows-1252")]
    Windows1252,
    #[serde(rename = "iso-8859-15")]
    Iso8859_15,
}

impl Encoding {
    /// The word that profiles use.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Latin1 => "latin-1",
            Encoding::Windows1252 => "windows-1252",
            Encoding::Iso8859_15 => "iso-8859-15",
        }
    }

    /// A line as text: no byte that is no character, no NUL, no stray byte order mark or carriage return.
    pub(crate) fn text(self, line: u64, bytes: &[u8]) -> Result<Cow<'_, str>, Fault> {
        let text = match self {
            Encoding::Utf8 => Cow::Borrowed(utf8(line, bytes)?),
            Encoding::Latin1 => encoding_rs::mem::decode_latin1(bytes),
            Encoding::Windows1252 => WINDOWS_1252.decode_without_bom_handling(bytes).0,
            Encoding::Iso8859_15 => ISO_8859_15.decode_without_bom_handling(bytes).0,
        };
        if self != Encoding::Utf8 {
            self.no_control(line, &text)?;
        }
        self.no_stray(line, &text)?;
        Ok(text)
    }

    /// What these encodings have no character for, they map to the control characters beyond ASCII, which no file means.
    fn no_control(self, line: u64, text: &str) -> Result<(), Fault> {
        let Some(at) = text.chars().position(|c| ('\u{80}'..='\u{9f}').contains(&c)) else { return Ok(()) };
        let what = format!("byte {} of the line is no character of {}", at + 1, self.name());
        Err(Fault::at(line, what, "give the profile the encoding that the file has"))
    }

    fn no_stray(self, line: u64, text: &str) -> Result<(), Fault> {
        let stray = |c: char| c == '\0' || c == '\r' || c == '\u{feff}';
        let Some(at) = text.find(stray) else { return Ok(()) };
        let what = match text.as_bytes()[at] {
            b'\0' => "a NUL byte",
            b'\r' => "a carriage return inside the line",
            _ => "a byte order mark that is not at the start of the file (were two files joined?)",
        };
        // In the file: every other encoding has one byte for a character that takes more of them here.
        let before = if self == Encoding::Utf8 { at } else { text[..at].chars().count() };
        Err(Fault::at(line, format!("{what} at byte {}", before + 1), "transfer the file again, as one file and unchanged"))
    }
}

fn utf8(line: u64, bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let what = format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1);
        Fault::at(line, what, "export the file as UTF-8, or name its encoding in the profile")
    })
}
