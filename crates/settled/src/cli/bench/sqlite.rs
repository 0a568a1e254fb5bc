//! Copies of a ledger in an SQLite file: files. Never the configured one.

use super::Copies;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// Ledgers in a temporary folder.
pub(super) struct SqliteCopies {
    folder: PathBuf,
    base: String,
    made: u32,
}

impl SqliteCopies {
    pub(super) fn in_folder(folder: &Path) -> SqliteCopies {
        SqliteCopies { folder: folder.to_owned(), base: url(&folder.join("base.db")), made: 0 }
    }
}

fn url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

impl Copies for SqliteCopies {
    fn base(&self) -> &str {
        &self.base
    }

    fn copy(&mut self) -> anyhow::Result<String> {
        self.made += 1;
        let file = self.folder.join(format!("copy{}.db", self.made));
        // A program that has just ended may have left its last pages in the log.
        for part in ["", "-wal"] {
            let (from, to) =
                (self.folder.join(format!("base.db{part}")), self.folder.join(format!("copy{}.db{part}", self.made)));
            if from.exists() {
                std::fs::copy(from, to).context("the imported ledger cannot be copied")?;
            }
        }
        Ok(url(&file))
    }

    fn drop_copy(&mut self, _url: &str) -> anyhow::Result<()> {
        let file = self.folder.join(format!("copy{}.db", self.made));
        std::fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))
    }
}
