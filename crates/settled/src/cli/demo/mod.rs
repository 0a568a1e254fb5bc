//! `settled demo`: two real worker processes, one of them frozen between its last look at its lease and its write.
//!
//! No server, no configuration: a SQLite ledger in a temporary folder. What is told is read from the log of the two processes
//! and from the ledger, not known beforehand.

mod instance;
mod story;

use crate::cli::{import::import_file, login, verify};
use crate::config::Config;
use crate::output::say;
use crate::{exit, wire};
use anyhow::Context;
use chrono::NaiveDate;
use instance::{Done, event, start};
use intake::Profile;
use ledger::Ledger;
use ledger::import::ImportMode;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use story::Story;

/// The time to live of a lease here: short, so that nobody waits for the takeover.
const TTL: Duration = Duration::from_millis(2_000);
/// A night of a mid-sized merchant: so many batches, so many lines in each.
const BATCHES: u32 = 48;
const ROWS: u32 = 250;

/// See a frozen instance's late write refused, in half a minute, without any set-up
#[derive(Debug, clap::Args)]
pub(super) struct Demo {
    /// Keep the ledger in this folder, to look at it afterwards
    #[arg(long, value_name = "FOLDER")]
    keep: Option<std::path::PathBuf>,
}

impl Demo {
    pub(super) async fn run(&self) -> anyhow::Result<ExitCode> {
        let temporary = tempfile::tempdir().context("a temporary folder cannot be made")?;
        let folder = match &self.keep {
            Some(folder) => {
                std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
                folder.as_path()
            }
            None => temporary.path(),
        };
        let config = config(folder);
        anyhow::ensure!(!folder.join("demo.db").exists(), "{} already holds a demo; name another folder", folder.display());
        let ledger = wire::ledger(&config).await?;
        let story = Story::begin();
        take_in_sample(ledger.as_ref(), folder, &story).await?;
        let refused = freeze_and_wake(ledger.as_ref(), &config, &story).await?;
        let ok = self.judge(ledger.as_ref(), refused).await?;
        if let Some(folder) = &self.keep {
            say!("kept: SETTLED__DATABASE__URL=sqlite:{} settled status", folder.join("demo.db").display());
        }
        Ok(ExitCode::from(if ok { exit::DONE } else { exit::BOOKS }))
    }

    /// The ledger has the last word.
    async fn judge(&self, ledger: &dyn Ledger, refused: u64) -> anyhow::Result<bool> {
        let report = ledger.verify().await?;
        let kept = ledger.status(None).await?.fence_rejections;
        say!("");
        if report.ok {
            say!(
                "verify: {} checks hold, {} journal entries, debits and credits are equal",
                report.checks.len(),
                report.journal_entries
            );
        } else {
            verify::show(&report);
        }
        say!("{refused} late writes refused by the ledger, {kept} on its record; nothing was settled twice, nothing was lost");
        Ok(report.ok && refused > 0 && kept >= refused)
    }
}

fn config(folder: &Path) -> Config {
    let mut config = Config::default();
    config.database.url = format!("sqlite:{}", folder.join("demo.db").display());
    config.lease.ttl_ms = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
    // Few units, and few batches a transaction: so that there is something left to take over.
    config.worker.partitions = 4;
    config.worker.batches_per_transaction = 4;
    config
}

async fn take_in_sample(ledger: &dyn Ledger, folder: &Path, story: &Story) -> anyhow::Result<()> {
    let file = folder.join("settlement.csv");
    let mut text = std::io::BufWriter::new(std::fs::File::create(&file)?);
    let day = NaiveDate::from_ymd_opt(2026, 1, 5).context("a date")?;
    intake::sample::write_canonical(&mut text, BATCHES, ROWS, day, 7)?;
    drop(text);
    let profile = Profile::load("canonical-csv")?;
    let outcome = import_file(ledger, &file, &Arc::new(profile), &ImportMode::add(&login()), true).await?;
    story.tell("ledger", &format!("took in {} lines in {} batches", outcome.items_accepted, outcome.batches.len()));
    Ok(())
}

/// Returns how many late writes of the frozen instance were refused.
async fn freeze_and_wake(ledger: &dyn Ledger, config: &Config, story: &Story) -> anyhow::Result<u64> {
    let mut a = start("A", config, Some("BeforeSettleTx=stop"))?;
    a.wait_frozen().await?;
    let held = event(&a, |event| event.says("signalling this process")).await?;
    let (unit, fence) = (held.unit(), held.fence());
    story.tell("A", &format!("holds unit {unit} under fence {fence}; has just seen that its lease is good, is about to write"));
    story.freeze("A", "frozen between that look and the write (SIGSTOP): its renewals stop with it");
    let mut b = start("B", config, None)?;
    story.tell("B", "starts, settles what is free, and waits for the rest");
    let takeover = event(&b, |event| event.says("registered") && event.unit() == unit).await?;
    story.tell("B", &format!("A's lease is over: takes unit {unit}, fence {} is the newest now", takeover.text("fence")));
    let done: Done = b.end_well().await?;
    story.tell("B", &format!("settled {} batches, {} lines; leaves", done.batches_settled, done.items));
    a.wake()?;
    story.wake("A", "wakes up (SIGCONT) behind its last look at the lease, and writes");
    let late: Done = a.end_well().await?;
    for refusal in ledger.rejections(1).await? {
        let (late, newer) = (refusal.stamp.fence, refusal.newer.fence);
        story.refused("ledger", &format!("refuses A's write under fence {late}: {newer} is newer"));
    }
    story.tell(
        "A",
        &format!(
            "takes the refusal for what it is: {} batches settled, {} late writes refused",
            late.batches_settled, late.fenced
        ),
    );
    Ok(late.fenced)
}
