//! A ledger, and how the instances of a drill are set up to settle it.

use crate::DrillError;
use crate::instance::Instance;
use crate::stage::Stage;
use crate::verdict::LockService;
use crate::without::{self, Without};
use chrono::NaiveDate;
use domain::batch::BatchState;
use ledger::{Ledger, OpenOptions};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// The time to live of leases in drills: short, so that nobody waits for a takeover.
pub const TTL: Duration = Duration::from_millis(2_000);

/// The business date of what is taken in.
pub const FIRST_DAY: NaiveDate = NaiveDate::from_ymd_opt(2026, 1, 5).expect("a day");

/// A ledger with settings. A changed copy is the same ledger, settled with other settings.
#[derive(Clone)]
pub struct Books<'a> {
    stage: &'a Stage,
    /// Which of the drill's ledgers it is, whatever way leads to it.
    ledger: usize,
    url: String,
    /// To look at it, once it was looked at.
    opened: Arc<OnceCell<Arc<dyn Ledger>>>,
    settings: Vec<(String, String)>,
    /// Of its lock service as well, if it promises as much.
    replaced: bool,
}

impl<'a> Books<'a> {
    pub(crate) fn new(stage: &'a Stage, ledger: usize, url: &str) -> Books<'a> {
        let books = Books { stage, ledger, url: url.to_owned(), opened: Arc::default(), settings: Vec::new(), replaced: false };
        // one batch a transaction and few units: whoever is hit has more to do
        books
            .with("lease.ttl_ms", TTL.as_millis())
            .with("worker.partitions", 2)
            .with("worker.batches_per_transaction", 1)
            .with("log.format", "json")
            .with("log.level", "info")
    }

    /// The same ledger, settled with this key of the configuration set so: `lease.ttl_ms`.
    #[must_use]
    pub fn with(&self, key: &str, value: impl ToString) -> Books<'a> {
        let mut books = self.clone();
        books.settings.push((key.to_owned(), value.to_string()));
        books
    }

    /// The same ledger, whose lock service is replaced by another in the course of the drill: a new etcd is no restart of the old one,
    /// so the two have no common order.
    #[must_use]
    pub fn with_lock_service_replaced(&self) -> Books<'a> {
        Books { replaced: true, ..self.clone() }
    }

    /// What the lock service of these settings promises.
    pub(crate) fn lock_service(&self) -> LockService {
        let of = |key: &str, default| {
            let mut set = self.settings.iter().rev().filter(|(set, _)| set == key);
            set.next().map_or(default, |(_, value)| value.as_str())
        };
        let keeps_order =
            matches!(of("lease.backend", "database"), "etcd" | "database") && of("worker.guard", "lease") == "lease";
        if keeps_order && !self.replaced { LockService::KeepsOrder } else { LockService::Forgets }
    }

    /// The same ledger by another way, for instance through a proxy.
    #[must_use]
    pub fn by_way_of(&self, url: &str) -> Books<'a> {
        Books { url: url.to_owned(), opened: Arc::default(), ..self.clone() }
    }

    pub(crate) fn ledger(&self) -> usize {
        self.ledger
    }

    /// Where the ledger is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The program with these arguments, on this ledger, with these settings.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.stage.program();
        command.args(arguments).env("SETTLED__DATABASE__URL", &self.url);
        for (key, value) in &self.settings {
            command.env(format!("SETTLED__{}", key.replace('.', "__").to_uppercase()), value);
        }
        command
    }

    /// Starts an instance that runs until it has nothing to do: `["run", "--json"]`, and keeps its history.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self, name: &str, arguments: &[&str]) -> Result<Instance, DrillError> {
        self.start_command(name, &mut self.command(arguments))
    }

    /// Starts an instance that lacks a protection, and is a `run --json` in all else. Arguments are those of `run`: `["--signal-at", …]`.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_without(&self, what: Without, name: &str, arguments: &[&str]) -> Result<Instance, DrillError> {
        let act = ["drill", "act-run", "--without", what.as_str(), "--json"];
        self.with("environment", without::ENVIRONMENT).start(name, &[&act, arguments].concat())
    }

    /// The same with a command that was changed.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_command(&self, name: &str, command: &mut Command) -> Result<Instance, DrillError> {
        command.env("SETTLED__CHAOS__HISTORY", self.stage.history_of(name, self.ledger));
        self.stage.start(name, command)
    }

    /// Runs the program to its end: what it printed. Blocks.
    ///
    /// # Errors
    /// It does not start, or does not end well.
    pub fn settled(&self, arguments: &[&str]) -> Result<String, DrillError> {
        let output = self.command(arguments).output().map_err(DrillError::io("starting this program"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if !output.status.success() {
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            return Err(DrillError::Story(format!("settled {} ended with {}: {out}{err}", arguments.join(" "), output.status)));
        }
        Ok(text(&output.stdout))
    }

    /// Takes in so many invented batches of so many items, all due.
    ///
    /// # Errors
    /// The program's.
    pub fn take_in(&self, batches: u32, items: u32) -> Result<(), DrillError> {
        self.take_in_of(FIRST_DAY, batches, items)
    }

    /// The same, of this business date: each has batches of its own.
    ///
    /// # Errors
    /// The program's.
    pub fn take_in_of(&self, day: NaiveDate, batches: u32, items: u32) -> Result<(), DrillError> {
        let file = self.stage.path(&format!("settlement-{day}.csv"));
        std::fs::write(&file, intake::sample::canonical(batches, items, day, 11)).map_err(DrillError::io("writing a sample"))?;
        self.settled(&["import", &file.to_string_lossy(), "--profile", "canonical-csv"]).map(drop)
    }

    /// The ledger, to look at it. There must be one: see [`Books::take_in`].
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn open(&self) -> Result<Arc<dyn Ledger>, DrillError> {
        let open = async || ledger::connect(&OpenOptions::existing(&self.url)).await;
        Ok(Arc::clone(self.opened.get_or_try_init(open).await?))
    }

    /// How many batches are settled.
    ///
    /// # Errors
    /// The ledger's.
    pub async fn settled_batches(&self) -> Result<u64, DrillError> {
        let status = self.open().await?.status(None).await?;
        Ok(status.batches.get(&BatchState::Settled).copied().unwrap_or(0))
    }
}
