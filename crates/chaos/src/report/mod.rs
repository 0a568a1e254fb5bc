//! One page about drills: the verdicts, and of each drill what was looked at, a timeline, tables and plots.
//!
//! The page is one file that asks nothing of anybody: it can be mailed, kept as an artefact, printed, and read on a phone. [`lanes`]
//! says what happened, and only `draw` knows how that looks.

mod axis;
mod draw;
pub mod lanes;
mod leases;
mod machine;
mod page;
mod place;
mod plot;
mod signs;
#[cfg(test)]
mod tests;

use crate::DrillError;
use crate::record::Record;
use chrono::{DateTime, Utc};
pub use machine::Machine;
use std::path::{Path, PathBuf};

/// What all drills of one report have in common.
#[derive(Debug, Clone)]
pub struct Run {
    /// Of this program.
    pub version: String,
    /// When they were run.
    pub date: DateTime<Utc>,
    /// On what.
    pub machine: Machine,
}

impl Run {
    /// Now, here, by this version.
    #[must_use]
    pub fn here() -> Run {
        Run { version: env!("CARGO_PKG_VERSION").to_owned(), date: Utc::now(), machine: Machine::this() }
    }
}

/// Writes `report.html` for people and `report.json` for programs into the folder, which is created; returns the path of the page.
///
/// # Errors
/// The folder or a file cannot be written; the error names it.
pub fn write(folder: &Path, run: &Run, records: &[Record]) -> Result<PathBuf, DrillError> {
    std::fs::create_dir_all(folder).map_err(DrillError::io(format!("creating the folder {}", folder.display())))?;
    let write = |name: &str, text: Vec<u8>| {
        let file = folder.join(name);
        std::fs::write(&file, text).map_err(DrillError::io(format!("writing the report {}", file.display())))?;
        Ok::<_, DrillError>(file)
    };
    write("report.json", serde_json::to_vec_pretty(records)?)?;
    write("report.html", html(run, records).into_bytes())
}

/// The page.
#[must_use]
pub fn html(run: &Run, records: &[Record]) -> String {
    page::page(run, records)
}
