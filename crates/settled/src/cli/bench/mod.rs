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
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

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
                let arm = on_copy(copies.as_mut(), async |url| measure(url, *instances, *k)).await?;
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
        let measured = on_copy(copies, async |url| postgres::pgbench_loop(url, config, tools, clients).await).await?;
        let Some((batches, seconds)) = measured else {
            return Ok(None);
        };
        let arm = Arm { ratio: 1.0, ..arm("pgbench loop", clients, 1, batches, seconds) };
        let rate = arm.batches_per_second;
        arms.push(arm);
        Ok(Some(rate))
    }
}

/// Measures on a copy, which is dropped whatever comes of it.
async fn on_copy<T>(copies: &mut dyn Copies, measure: impl AsyncFnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let url = copies.copy()?;
    let measured = measure(&url).await;
    let dropped = copies.drop_copy(&url);
    let measured = measured?;
    dropped.map(|()| measured)
}

/// This program on another ledger, with the rest of the configuration as it is.
fn this_program(url: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env("SETTLED__DATABASE__URL", url).stdin(Stdio::null());
    Ok(command)
}

/// The slowest instance's own time counts: starting a process is not settling.
fn measure(url: &str, instances: u32, k: u32) -> anyhow::Result<Arm> {
    let start = |_| {
        let mut run = this_program(url)?;
        run.args(["run", "--json", "--business-date", "2199-12-31", "--allow-future"]);
        run.env("SETTLED__WORKER__BATCHES_PER_TRANSACTION", k.to_string());
        Ok(Running(run.stdout(Stdio::piped()).spawn()?))
    };
    let running = (0..instances).map(start).collect::<anyhow::Result<Vec<_>>>()?;
    let (mut batches, mut slowest_ms) = (0, 0);
    for instance in running {
        let did = instance.did()?;
        batches += did.batches_settled;
        slowest_ms = slowest_ms.max(did.duration_ms);
    }
    Ok(arm("settled", instances, k, batches, std::time::Duration::from_millis(slowest_ms).as_secs_f64()))
}

/// A worker process. Dropping it ends it: when one fails, its siblings must not settle on alone.
struct Running(Child);

impl Running {
    /// Waits for its end.
    fn did(mut self) -> anyhow::Result<Did> {
        let mut printed = String::new();
        self.0.stdout.take().context("its output")?.read_to_string(&mut printed)?;
        let status = self.0.wait()?;
        serde_json::from_str(&printed).with_context(|| format!("an instance ended with {status}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // one that has ended is as good
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counted {
        made: u32,
        dropped: u32,
    }

    impl Copies for Counted {
        fn base(&self) -> &'static str {
            "sqlite:nowhere"
        }

        fn copy(&mut self) -> anyhow::Result<String> {
            self.made += 1;
            Ok("sqlite:nowhere".to_owned())
        }

        fn drop_copy(&mut self, _url: &str) -> anyhow::Result<()> {
            self.dropped += 1;
            Ok(())
        }
    }

    /// The program that is started here is this test, which settles nothing.
    #[tokio::test]
    async fn a_copy_is_dropped_when_an_instance_fails() {
        let mut copies = Counted::default();
        let failed = on_copy(&mut copies, async |url| measure(url, 2, 1)).await;
        let told = failed.map(|arm| arm.batches).expect_err("no report").to_string();
        assert!(told.starts_with("an instance ended with "), "{told}");
        assert_eq!((copies.made, copies.dropped), (1, 1));
    }

    #[test]
    fn a_dropped_instance_is_gone() {
        let running = Running(Command::new("sleep").arg("600").spawn().expect("sleep starts"));
        let process = Path::new("/proc").join(running.0.id().to_string());
        assert!(process.exists());
        drop(running);
        assert!(!process.exists());
    }
}
