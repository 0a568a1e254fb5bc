//! What every test of this crate reads files with.
#![allow(dead_code, reason = "each test file uses its part")]

use domain::summary::{FileSummary, StagedItem};
use intake::{Profile, ReadError, Stopped};

pub(crate) fn profile(name: &str) -> Profile {
    Profile::named(name).expect("a built-in profile")
}

/// The TOML of a built-in profile.
pub(crate) fn profile_text(name: &str) -> String {
    let path = format!("{}/../../config/profiles/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a built-in profile")
}

/// Reads `bytes` as `file` and keeps every line.
pub(crate) fn read(bytes: impl AsRef<[u8]>, profile: &Profile) -> Result<(FileSummary, Vec<StagedItem>), ReadError> {
    let mut items = Vec::new();
    let mut keep = |chunk: Vec<StagedItem>| -> Result<(), Stopped> {
        items.extend(chunk);
        Ok(())
    };
    let summary = intake::read(bytes.as_ref(), "file", profile, &mut keep)?;
    Ok((summary, items))
}

/// Reads by a built-in profile; the file must be readable.
pub(crate) fn good(bytes: impl AsRef<[u8]>, profile_name: &str) -> (FileSummary, Vec<StagedItem>) {
    read(bytes, &profile(profile_name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads by a built-in profile; the file must be refused, at this line, with a message that contains `says`.
pub(crate) fn refused(bytes: impl AsRef<[u8]>, profile_name: &str, line: u64, says: &str) {
    let error = read(bytes, &profile(profile_name)).map(|(summary, _)| summary).expect_err("the file must be refused");
    let text = error.to_string();
    assert!(text.starts_with(&format!("file:{line}: ")), "line {line} expected: {text}");
    assert!(text.contains(says), "{says:?} expected: {text}");
    assert!(text.matches(": ").count() >= 2, "a remedy is expected: {text}");
}
