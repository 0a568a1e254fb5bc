//! `settled import FILE… --profile NAME|FILE`.
//!
//! The reader runs on a blocking thread and hands chunks to the ledger through a bounded channel: memory stays flat however
//! large the file is, and neither side outruns the other.

use super::login;
use crate::config::Config;
use crate::output::say;
use crate::progress::Progress;
use crate::{exit, output, wire};
use anyhow::Context;
use domain::batch::BatchState;
use domain::summary::{FileSummary, StagedItem};
use intake::profile::ProfileError;
use intake::{Profile, ReadError, Stopped};
use ledger::import::{ImportMode, ImportOutcome, Staged};
use ledger::{Ledger, LedgerError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Chunks between reader and ledger.
const CHUNKS_AHEAD: usize = 8;

/// Take settlement files in
#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// Files, plain or .gz
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// How files are read.
#[derive(Debug, clap::Args)]
pub(super) struct Reading {
    /// How they are read: a built-in profile, or a profile file
    #[arg(long, value_name = "NAME|FILE")]
    profile: String,
}

impl Reading {
    pub(super) fn profile(&self) -> Result<Arc<Profile>, ProfileError> {
        Ok(Arc::new(Profile::load(&self.profile)?))
    }
}

impl Import {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let profile = self.reading.profile()?;
        let ledger = wire::ledger(config).await?;
        let mut all = ImportOutcome::default();
        for file in &self.files {
            let outcome = import_file(ledger.as_ref(), file, &profile, &ImportMode::add(&login()), self.json).await?;
            show(file, &outcome, self.json);
            all.batches.extend(outcome.batches);
            all.items_accepted += outcome.items_accepted;
            all.items_duplicate += outcome.items_duplicate;
            all.warnings.extend(outcome.warnings);
        }
        if self.json {
            output::json(&all)?;
        }
        Ok(exit_code(&all))
    }
}

/// Whether the books wait for a person.
pub(super) fn exit_code(outcome: &ImportOutcome) -> ExitCode {
    let broken = outcome.batches.iter().any(|batch| batch.state == BatchState::Broken);
    ExitCode::from(if broken { exit::BOOKS } else { exit::DONE })
}

/// Takes one file in. Reader and ledger run side by side; the reader's error is the one to tell, because the ledger only sees
/// that the file ended too early.
pub(super) async fn import_file(
    ledger: &dyn Ledger,
    path: &Path,
    profile: &Arc<Profile>,
    mode: &ImportMode,
    quiet: bool,
) -> anyhow::Result<ImportOutcome> {
    let (chunks, staged) = mpsc::channel(CHUNKS_AHEAD);
    let lines = Arc::new(AtomicU64::new(0));
    let reader = tokio::task::spawn_blocking({
        let (path, profile, lines) = (path.to_owned(), Arc::clone(profile), Arc::clone(&lines));
        move || read_file(&path, &profile, &chunks, &lines)
    });
    let watched = watch(lines, quiet);
    let imported = ledger.import(staged, mode).await;
    watched.abort();
    match (reader.await.context("the reader ended unexpectedly")?, imported) {
        (Err(error), Err(LedgerError::ImportAborted)) => Err(error.into()),
        (_, imported) => Ok(imported?),
    }
}

fn read_file(path: &Path, profile: &Profile, chunks: &mpsc::Sender<Staged>, lines: &AtomicU64) -> Result<(), ReadError> {
    let send = |staged| chunks.blocking_send(staged).map_err(|_| Stopped);
    let summary = read(path, profile, &mut |items| {
        lines.fetch_add(items.len() as u64, Ordering::Relaxed);
        send(Staged::Items(items))
    })?;
    // A ledger that has gone away tells its own error.
    let _ = chunks.blocking_send(Staged::End(Box::new(summary)));
    Ok(())
}

/// Reads one file, as an import does and as `settled profile check` shows it.
pub(super) fn read(
    path: &Path,
    profile: &Profile,
    sink: &mut dyn FnMut(Vec<StagedItem>) -> Result<(), Stopped>,
) -> Result<FileSummary, ReadError> {
    intake::read(intake::open(path)?, &path.to_string_lossy(), profile, sink)
}

fn watch(lines: Arc<AtomicU64>, quiet: bool) -> tokio::task::JoinHandle<()> {
    let mut progress = Progress::start("lines read", 0, quiet);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            progress.at(lines.load(Ordering::Relaxed));
        }
    })
}

/// Batches that are listed one by one; of larger files only those that need a look.
pub(super) const LISTED: usize = 20;

/// Warnings always, the rest where it is not told as JSON.
pub(super) fn show(file: &Path, outcome: &ImportOutcome, json: bool) {
    outcome.warnings.iter().for_each(|warning| exit::tell(&format!("warning: {warning}")));
    if json {
        return;
    }
    let there = outcome.batches.iter().filter(|batch| batch.already_there).count();
    say!(
        "{}: {} batches, {} already there; {} items accepted, {} were there before",
        file.display(),
        outcome.batches.len(),
        there,
        outcome.items_accepted,
        outcome.items_duplicate
    );
    let mut table = output::table(["batch", "id of its source", "business date", "state", "items", "note"]);
    let all = outcome.batches.len() <= LISTED;
    for batch in outcome.batches.iter().filter(|batch| all || batch.state == BatchState::Broken) {
        let note = batch
            .break_reason
            .clone()
            .unwrap_or_else(|| if batch.already_there { "already there".into() } else { String::new() });
        table.add_row([
            batch.id.to_string(),
            batch.external_batch_id.clone(),
            batch.business_date.to_string(),
            batch.state.to_string(),
            batch.items.to_string(),
            note,
        ]);
    }
    if !table.is_empty() {
        say!("{table}");
    }
}
