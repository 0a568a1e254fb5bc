//! Where a drill is told: servers, instances, what is looked at, and the timeline.

use crate::drill::Options;
use crate::event::{Event, Mark, Timeline};
use crate::history::{self, Line};
use crate::instance::Instance;
use crate::record::{Check, Kind, Plot, Record, Table};
use crate::verdict::{self, Healed, Judgement};
use crate::{DrillError, books::Books};
use lab::postgres::{Durability, Postgres, PostgresUrl};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Servers that several drills can share, started when one asks for them.
#[derive(Default)]
pub struct Servers {
    postgres: Mutex<Option<Postgres>>,
    databases: AtomicU32,
}

impl Servers {
    /// None yet.
    #[must_use]
    pub fn none() -> Servers {
        Servers::default()
    }

    /// An empty database of its own.
    fn database(&self) -> Result<PostgresUrl, DrillError> {
        let mut server = self.postgres.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match server.as_ref() {
            Some(running) => running,
            None => server.insert(Postgres::start(Durability::Off)?),
        };
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        Ok(running.create_database(&format!("drill_{number}"))?)
    }
}

/// One drill's.
pub struct Stage {
    options: Options,
    servers: Arc<Servers>,
    timeline: Arc<Timeline>,
    kept: Mutex<Kept>,
    folder: TempDir,
}

/// What the drill has shown so far.
#[derive(Default)]
struct Kept {
    checks: Vec<Check>,
    tables: Vec<Table>,
    plots: Vec<Plot>,
    /// Of every instance that was started.
    histories: Vec<Written>,
    ledgers: usize,
}

/// Where an instance writes its history.
struct Written {
    name: String,
    ledger: usize,
    file: PathBuf,
}

impl Stage {
    pub(crate) fn set(options: &Options, servers: &Arc<Servers>, timeline: Arc<Timeline>) -> Result<Stage, DrillError> {
        let folder = tempfile::Builder::new().prefix("settled-drill-").tempdir();
        let folder = folder.map_err(DrillError::io("creating a folder for the drill"))?;
        Ok(Stage { options: options.clone(), servers: Arc::clone(servers), timeline, kept: Mutex::default(), folder })
    }

    /// Ends it: what was shown, with the histories of the instances.
    pub(crate) fn strike(self) -> Record {
        let kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        let on_axis = |mut line: Line| {
            line.at_us = self.timeline.since_begin_us(line.at_us);
            line
        };
        // one that was killed before it wrote anything has none
        let lines = |file: &Path| history::read(file).unwrap_or_default().into_iter().map(on_axis).collect();
        let histories = kept.histories.iter().map(|written| (written.name.clone(), lines(&written.file))).collect();
        Record { checks: kept.checks, tables: kept.tables, plots: kept.plots, histories, ..Record::default() }
    }

    /// Something happens now.
    pub fn tell(&self, who: &str, mark: Mark, text: impl Into<String>) {
        self.timeline.tell(who, mark, text);
    }

    /// What was told so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.timeline.events()
    }

    /// A protection: in this arm `must` is so, or the drill is broken.
    pub fn must_hold(&self, arm: &str, must: &str, seen: impl Into<String>, ok: bool) {
        self.check(arm, Kind::Holds, must, seen.into(), ok);
    }

    /// A control arm: without the protection `must` happens, or the drill proves nothing.
    pub fn must_break(&self, arm: &str, must: &str, seen: impl Into<String>, ok: bool) {
        self.check(arm, Kind::Control, must, seen.into(), ok);
    }

    /// The protection had something to stop, or the drill proves nothing.
    pub fn must_bite(&self, arm: &str, must: &str, seen: impl Into<String>, ok: bool) {
        self.check(arm, Kind::Bites, must, seen.into(), ok);
    }

    fn check(&self, arm: &str, kind: Kind, must: &str, seen: String, ok: bool) {
        self.kept().checks.push(Check { arm: arm.to_owned(), kind, must: must.to_owned(), seen, ok });
    }

    /// Figures in rows.
    pub fn table(&self, table: Table) {
        self.kept().tables.push(table);
    }

    /// Figures to draw.
    pub fn plot(&self, plot: Plot) {
        self.kept().plots.push(plot);
    }

    /// Chance, the same for the same seed and purpose.
    #[must_use]
    pub fn chance(&self, purpose: u64) -> StdRng {
        StdRng::seed_from_u64(self.options.seed ^ purpose.rotate_left(32))
    }

    /// How drills are run this time.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A path in the drill's folder, which goes with it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An empty database on the PostgreSQL that the drills share. One that is to be hurt is started by the drill itself.
    ///
    /// # Errors
    /// PostgreSQL is not there, or does not start.
    pub fn database(&self) -> Result<PostgresUrl, DrillError> {
        self.servers.database()
    }

    /// A ledger that instances are to settle, empty.
    #[must_use]
    pub fn books(&self, database_url: &str) -> Books<'_> {
        let mut kept = self.kept();
        kept.ledgers += 1;
        Books::new(self, kept.ledgers, database_url)
    }

    /// This program.
    #[must_use]
    pub fn program(&self) -> Command {
        let mut command = Command::new(&self.options.program);
        command.current_dir(self.folder.path());
        command
    }

    /// A process of this program that plays a part in an experiment: see [`crate::actors`].
    ///
    /// # Errors
    /// It does not start.
    pub fn actor(&self, name: &str, part: &impl Serialize) -> Result<Instance, DrillError> {
        let mut command = self.program();
        command.args(["drill", "act"]).arg(serde_json::to_string(part)?);
        self.start(name, &mut command)
    }

    /// Starts a process whose log is part of the timeline.
    pub(crate) fn start(&self, name: &str, command: &mut Command) -> Result<Instance, DrillError> {
        Instance::start(name, command, Arc::clone(&self.timeline))
    }

    /// Where the instance of that name is to write its history; read at the end of the drill.
    pub(crate) fn history_of(&self, name: &str, ledger: usize) -> PathBuf {
        let mut kept = self.kept();
        let file = self.path(&format!("{name}-{}.history", kept.histories.len()));
        kept.histories.push(Written { name: name.to_owned(), ledger, file: file.clone() });
        file
    }

    /// What the instances of these books have written down so far, in order of time.
    ///
    /// # Errors
    /// A history that cannot be read.
    pub fn history(&self, books: &Books<'_>) -> Result<Vec<Line>, DrillError> {
        let mine = |written: &&Written| written.ledger == books.ledger() && written.file.exists();
        let files: Vec<PathBuf> = self.kept().histories.iter().filter(mine).map(|written| written.file.clone()).collect();
        let mut all = Vec::new();
        for file in files {
            all.extend(history::read(&file)?);
        }
        all.sort_by_key(|line| line.at_us);
        Ok(all)
    }

    /// Judges what the instances of these books wrote down, by the books: what is called for at the end of an arm, once all of them
    /// have ended. Each rule of [`crate::verdict`] becomes a [`Stage::must_hold`]; the number of refused writes is returned, for a
    /// [`Stage::must_bite`] where there had to be some:
    ///
    /// ```text
    /// let refused = stage.judge("fence", &books).await?;
    /// stage.must_bite("fence", "late writes are refused", refused.to_string(), refused > 0);
    /// ```
    ///
    /// Of books that several arms share the instances are judged together; so every arm has its own: see [`Stage::books`].
    ///
    /// # Errors
    /// The books or a history cannot be read.
    pub async fn judge(&self, arm: &str, books: &Books<'_>) -> Result<u64, DrillError> {
        let judgement = self.judgement(books, None).await?;
        self.must_hold_all(arm, &judgement);
        Ok(judgement.refused)
    }

    /// The same without a check, for a control arm, which wants a rule broken: `judgement.breaks(verdict::fences::SUPERSEDED)`; and for
    /// an arm that was healed at some time.
    ///
    /// # Errors
    /// As [`Stage::judge`].
    pub async fn judgement(&self, books: &Books<'_>, healed: Option<Healed>) -> Result<Judgement, DrillError> {
        verdict::judge(&self.history(books)?, books.open().await?.as_ref(), healed, books.lock_service()).await
    }

    /// A check of every rule.
    pub fn must_hold_all(&self, arm: &str, judgement: &Judgement) {
        for finding in &judgement.findings {
            self.must_hold(arm, finding.rule, finding.seen.clone(), finding.ok);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks again and again until `look` finds something.
///
/// # Errors
/// Its own, or that nothing was found within `limit`.
pub async fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>, DrillError>,
) -> Result<T, DrillError> {
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(DrillError::Story(format!("waited {} s in vain until {what}", limit.as_secs())));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
