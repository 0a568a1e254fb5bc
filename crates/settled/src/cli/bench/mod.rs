//! `settled bench`: settled batches a second, per number of instances and of batches a transaction, as ratios in one run.
//!
//! Everything is measured on copies of one imported ledger, with real worker processes. On PostgreSQL a pgbench loop of the
//! same single-batch transaction stands beside it. Figures of different machines, or of different moments of one shared
//! machine, do not compare; the ratios of one run do.

mod postgres;
mod sqlite;

use crate::config::{Config, ConfigError};
use crate::output::{self, say};
use anyhow::{Context, bail};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Measure settling on this machine
#[derive(Debug, clap::Args)]
pub(super) struct Bench {
    /// Invented batches to settle
    #[arg(long, default_value_t = 2_000)]
    batches: u32,
    /// Items of each
    #[arg(long, default_value_t = 50)]
    items: u32,
    /// Settle this file instead
    #[arg(long, value_name = "FILE", requires = "profile")]
    file: Option<PathBuf>,
    /// How the file is read
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// Numbers of worker processes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3])]
    instances: Vec<u32>,
    /// Numbers of batches in a transaction
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    k: Vec<u32>,
    /// Folder of createdb, dropdb and pgbench, where they are not on the PATH
    #[arg(long, value_name = "FOLDER")]
    pg_bin: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// One measurement.
#[derive(Debug, Serialize)]
struct Arm {
    what: &'static str,
    instances: u32,
    batches_per_transaction: u32,
    batches: u64,
    seconds: f64,
    batches_per_second: f64,
    /// To the pgbench loop with as many clients; without one, to the first arm.
    ratio: f64,
}

/// What `run --json` prints.
#[derive(Debug, Deserialize)]
struct Did {
    batches_settled: u64,
    duration_ms: u64,
}

/// Where copies of the imported ledger come from.
trait Copies {
    /// The URL of the ledger to import into.
    fn base(&self) -> &str;
    /// A copy, as a URL.
    fn copy(&mut self) -> anyhow::Result<String>;
    /// It is not needed any more.
    fn drop_copy(&mut self, url: &str) -> anyhow::Result<()>;
}

impl Bench {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let folder = tempfile::tempdir()?;
        let tools = postgres::Tools::in_folder(self.pg_bin.as_deref());
        let is_postgres = config.database.url.starts_with("postgres");
        let mut copies: Box<dyn Copies> = if is_postgres {
            Box::new(postgres::PostgresCopies::of(config, &tools).await?)
        } else {
            Box::new(sqlite::SqliteCopies::in_folder(folder.path()))
        };
        self.import(copies.base(), folder.path())?;
        let mut arms = Vec::new();
        for instances in &self.instances {
            let baseline =
                if is_postgres { self.loop_of(*instances, copies.as_mut(), config, &tools, &mut arms).await? } else { None };
            for k in &self.k {
                let arm = measure(copies.as_mut(), *instances, *k)?;
                let reference = baseline.or(arms.first().map(|arm: &Arm| arm.batches_per_second));
                arms.push(arm.beside(reference));
            }
        }
        if self.json {
            output::json(&arms)?
        } else {
            show(&arms)
        }
        Ok(ExitCode::SUCCESS)
    }

    fn import(&self, url: &str, folder: &Path) -> anyhow::Result<()> {
        let (file, profile) = match (&self.file, &self.profile) {
            (Some(file), Some(profile)) => (file.clone(), profile.clone()),
            _ => {
                let file = folder.join("bench.csv");
                let day = NaiveDate::from_ymd_opt(2026, 1, 5).context("a date")?;
                std::fs::write(&file, intake::sample::canonical(self.batches, self.items, day, 3))?;
                (file, "canonical-csv".to_owned())
            }
        };
        let mut import = this_program(url)?;
        import.arg("import").arg(file).args(["--profile", &profile, "--json"]).stdout(Stdio::null());
        let status = import.status()?;
        // 3: some batches of a real file may be broken; the others are measured.
        if status.success() || status.code() == Some(3) { Ok(()) } else { bail!("the import ended with {status}") }
    }

    /// The pgbench loop, as an arm of its own; returns its rate.
    async fn loop_of(
        &self,
        clients: u32,
        copies: &mut dyn Copies,
        config: &Config,
        tools: &postgres::Tools,
        arms: &mut Vec<Arm>,
    ) -> anyhow::Result<Option<f64>> {
        let url = copies.copy()?;
        let measured = postgres::pgbench_loop(&url, config, tools, clients).await;
        copies.drop_copy(&url)?;
        let Some((batches, seconds)) = measured? else {
            return Ok(None);
        };
        let arm = Arm { ratio: 1.0, ..arm("pgbench loop", clients, 1, batches, seconds) };
        let rate = arm.batches_per_second;
        arms.push(arm);
        Ok(Some(rate))
    }
}

/// This program on another ledger, with the rest of the configuration as it is.
fn this_program(url: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env("SETTLED__DATABASE__URL", url).stdin(Stdio::null());
    Ok(command)
}

/// The slowest instance's own time counts: starting a process is not settling.
fn measure(copies: &mut dyn Copies, instances: u32, k: u32) -> anyhow::Result<Arm> {
    let url = copies.copy()?;
    let start = |_| {
        let mut run = this_program(&url)?;
        run.args(["run", "--json", "--business-date", "9999-01-01", "--allow-future"]);
        run.env("SETTLED__WORKER__BATCHES_PER_TRANSACTION", k.to_string());
        Ok(run.stdout(Stdio::piped()).spawn()?)
    };
    let running = (0..instances).map(start).collect::<anyhow::Result<Vec<_>>>()?;
    let (mut batches, mut slowest_ms) = (0, 0);
    for instance in running {
        let output = instance.wait_with_output()?;
        let did: Did =
            serde_json::from_slice(&output.stdout).with_context(|| format!("an instance ended with {}", output.status))?;
        batches += did.batches_settled;
        slowest_ms = slowest_ms.max(did.duration_ms);
    }
    copies.drop_copy(&url)?;
    Ok(arm("settled", instances, k, batches, std::time::Duration::from_millis(slowest_ms).as_secs_f64()))
}

#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "a rate, not money")]
fn arm(what: &'static str, instances: u32, k: u32, batches: u64, seconds: f64) -> Arm {
    let batches_per_second = batches as f64 / seconds.max(0.001);
    Arm { what, instances, batches_per_transaction: k, batches, seconds, batches_per_second, ratio: 1.0 }
}

impl Arm {
    #[expect(clippy::float_arithmetic, reason = "a ratio, not money")]
    fn beside(self, reference: Option<f64>) -> Arm {
        Arm { ratio: self.batches_per_second / reference.unwrap_or(self.batches_per_second), ..self }
    }
}

fn show(arms: &[Arm]) {
    let mut table = output::table(["what", "instances", "batches a transaction", "batches/s", "ratio"]);
    for arm in arms {
        table.add_row([
            arm.what.to_owned(),
            arm.instances.to_string(),
            arm.batches_per_transaction.to_string(),
            format!("{:.0}", arm.batches_per_second),
            format!("{:.2}", arm.ratio),
        ]);
    }
    say!("{table}");
    match arms.first().filter(|arm| arm.what == "pgbench loop") {
        Some(_) => say!("ratio: to the pgbench loop of the same single-batch transaction with as many clients, in this run"),
        None => say!("ratio: to one instance with one batch a transaction, in this run"),
    }
}

/// A ledger that is filled with invented batches must be nobody's.
fn refuse_used(batches: u64) -> Result<(), ConfigError> {
    if batches == 0 {
        return Ok(());
    }
    Err(ConfigError(format!(
        "the ledger of database.url has {batches} batches; bench fills a ledger with invented ones: name an empty database"
    )))
}
