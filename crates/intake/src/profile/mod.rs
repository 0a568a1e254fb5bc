//! Profiles: what a settlement file format is told by. One TOML file per format, read by [`Profile::parse`].
//!
//! A profile says *where* things stand in a file and what they mean; how they settle is the domain's. The built-in ones are
//! compiled in from `config/profiles`, where the README explains every key. Needs `csv.rs` next to it.

mod check;
pub(crate) mod csv;
mod raw;

use crate::text::Encoding;
use domain::item::FeeMode;
use serde::Deserialize;
use std::path::Path;
use thiserror::Error;

/// How to read one settlement file format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name of the profile, for messages and for the ledger's record of the file.
    pub name: String,
    /// Namespace of batch and item identities: profiles that read the same provider's reports share it.
    pub source: String,
    /// Whose fee the fee of a line is.
    pub fee_mode: FeeMode,
    /// Largest difference, in minor units, that is rounding and not a break.
    pub tolerance_minor: i64,
    /// How a batch comes to be paid out.
    pub remittance: Remittance,
    pub(crate) layout: Layout,
}

/// How a batch comes to be paid out by its source; see [`domain::totals::Remits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remittance {
    /// Not in this file.
    Never,
    /// By remittance lines, which every batch must have.
    ByLine,
    /// By remittance lines, per currency where there are some.
    IfPresent,
    /// By the declared net.
    DeclaredNet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    Csv(Box<csv::CsvLayout>),
    Ndjson,
    Nacha,
}

/// Why a profile cannot be used.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// A sentence about its content.
    #[error("profile {name}{}: {what}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
    Invalid {
        /// Name or path of the profile.
        name: String,
        /// Line in its TOML, where one is known.
        line: Option<usize>,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// Neither a built-in profile nor a file that can be read.
    #[error("profile {name}: {source}: name a file, or a built-in profile ({})", Profile::names().collect::<Vec<_>>().join(", "))]
    NotFound {
        /// What was asked for.
        name: String,
        /// What the system said about a file of that name.
        source: std::io::Error,
    },
    /// No built-in profile.
    #[error("there is no built-in profile {name}: one of {}", Profile::names().collect::<Vec<_>>().join(", "))]
    NotBuiltIn {
        /// What was asked for.
        name: String,
    },
}

/// The word for declared totals in the canonical formats.
pub(crate) const TOTAL: &str = "total";

/// Name and text of every file in `config/profiles`, by name. Compiled in, so that a deployed binary reads the formats it was
/// tested with; listed by `build.rs`, so that a new format is a file and no code.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in_profiles.rs"));

impl Profile {
    /// Reads a profile and checks that it makes sense.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`].
    pub fn parse(toml_text: &str, name: &str) -> Result<Profile, ProfileError> {
        let invalid = |line, what| ProfileError::Invalid { name: name.to_owned(), line, what };
        let raw: raw::RawProfile = toml::from_str(toml_text).map_err(|error| {
            let line = error.span().map(|span| toml_text[..span.start.min(toml_text.len())].lines().count().max(1));
            invalid(line, error.message().replace('\n', " "))
        })?;
        check::profile(raw, name).map_err(|what| invalid(None, what))
    }

    /// A built-in profile.
    #[must_use]
    pub fn named(name: &str) -> Option<Profile> {
        let text = Profile::text(name).ok()?;
        Some(Profile::parse(text, name).expect("a test parses every built-in profile"))
    }

    /// The TOML of a built-in profile, as it was compiled in: a start for one's own.
    ///
    /// # Errors
    /// [`ProfileError::NotBuiltIn`].
    pub fn text(name: &str) -> Result<&'static str, ProfileError> {
        let found = BUILT_IN.iter().find(|(built_in, _)| *built_in == name);
        found.map(|(_, text)| *text).ok_or_else(|| ProfileError::NotBuiltIn { name: name.to_owned() })
    }

    /// Names of the built-in profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A built-in profile, or the one in a file. A profile in a file is named after the file, without its ending.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn load(name_or_path: &str) -> Result<Profile, ProfileError> {
        if let Some(profile) = Profile::named(name_or_path) {
            return Ok(profile);
        }
        let text = std::fs::read_to_string(name_or_path)
            .map_err(|source| ProfileError::NotFound { name: name_or_path.to_owned(), source })?;
        let stem = Path::new(name_or_path).file_stem().map_or(name_or_path.into(), |stem| stem.to_string_lossy());
        Profile::parse(&text, &stem)
    }
    /// How the bytes of its files are read.
    pub(crate) fn encoding(&self) -> Encoding {
        match &self.layout {
            Layout::Csv(layout) => layout.encoding,
            Layout::Ndjson | Layout::Nacha => Encoding::Utf8,
        }
    }
}
