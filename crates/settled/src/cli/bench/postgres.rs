//! Copies of a ledger on PostgreSQL, by its own tools, and the pgbench loop.

use super::{Copies, refuse_used};
use crate::config::{Config, SecretUrl};
use crate::exit;
use crate::wire;
use anyhow::{Context, bail};
use chrono::NaiveDate;
use domain::fence::{Fence, Stamp};
use domain::ids::{BatchId, HolderId, RunId};
use domain::run::RunKey;
use domain::unit::Unit;
use ledger::schedule::PlannedRun;
use ledger::settle::{Claim, ClaimRequest, TxLimits};
use ledger::{Ledger, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use uuid::Uuid;

/// PostgreSQL's command line tools.
#[derive(Debug, Clone)]
pub(super) struct Tools(Option<PathBuf>);

impl Tools {
    pub(super) fn in_folder(folder: Option<&Path>) -> Tools {
        Tools(folder.map(Path::to_owned))
    }

    fn command(&self, name: &str) -> Command {
        self.0.as_ref().map_or_else(|| Command::new(name), |folder| Command::new(folder.join(name)))
    }

    /// The tool, and the URL for its command line: the password goes by the environment, which only its owner can read.
    fn on(&self, name: &str, url: &str) -> anyhow::Result<(Command, String)> {
        let url = SecretUrl::parse(url).context("database.url is not a PostgreSQL URL that the tools would understand")?;
        let mut command = self.command(name);
        command.envs(url.password().map(|password| ("PGPASSWORD", password))).stdin(Stdio::null());
        Ok((command, url.without_password()))
    }

    /// `createdb` and `dropdb`, which connect to a database that they neither make nor drop.
    fn beside(&self, name: &str, maintenance: &str) -> anyhow::Result<Command> {
        let (mut command, url) = self.on(name, maintenance)?;
        command.args(["--maintenance-db", &url]);
        Ok(command)
    }
}

fn run(name: &str, mut command: Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{name} cannot be started; name its folder with --pg-bin"))?;
    if status.success() { Ok(()) } else { bail!("{name} ended with {status}") }
}

/// Databases beside the configured one, made from it as their template.
pub(super) struct PostgresCopies {
    tools: Tools,
    base: String,
    made: u32,
}

impl PostgresCopies {
    /// The configured database, which must hold no batches.
    pub(super) async fn of(config: &Config, tools: &Tools) -> anyhow::Result<PostgresCopies> {
        let ledger = wire::ledger(config).await?;
        refuse_used(ledger.status(None).await?.batches.values().sum())?;
        drop(ledger);
        Ok(PostgresCopies { tools: tools.clone(), base: config.database.url.clone(), made: 0 })
    }

    /// The URL up to the name of the database, the name, and what follows it.
    fn parts(&self) -> anyhow::Result<(&str, &str, &str)> {
        let (url, parameters) = self.base.split_at(self.base.find('?').unwrap_or(self.base.len()));
        let (server, name) = url.rsplit_once('/').context("database.url must name a database")?;
        Ok((server, name, parameters))
    }
}

impl Copies for PostgresCopies {
    fn base(&self) -> &str {
        &self.base
    }

    fn copy(&mut self) -> anyhow::Result<String> {
        self.made += 1;
        let (server, base, parameters) = self.parts()?;
        let name = format!("{base}_bench{}", self.made);
        let maintenance = format!("{server}/postgres{parameters}");
        let mut createdb = self.tools.beside("createdb", &maintenance)?;
        createdb.args(["--template", base, &name]);
        run("createdb", createdb)?;
        Ok(format!("{server}/{name}{parameters}"))
    }

    fn drop_copy(&mut self, _url: &str) -> anyhow::Result<()> {
        let (server, base, parameters) = self.parts()?;
        let (name, maintenance) = (format!("{base}_bench{}", self.made), format!("{server}/postgres{parameters}"));
        let mut dropdb = self.tools.beside("dropdb", &maintenance)?;
        dropdb.args(["--force", &name]);
        run("dropdb", dropdb)
    }
}

/// Claims everything, then lets pgbench settle batch by batch. `None` where there is no pgbench. Returns batches and seconds.
pub(super) async fn pgbench_loop(url: &str, config: &Config, tools: &Tools, clients: u32) -> anyhow::Result<Option<(u64, f64)>> {
    if tools.command("pgbench").arg("--version").stdout(Stdio::null()).status().is_err() {
        exit::tell("no pgbench on the PATH: no loop to compare with (name its folder with --pg-bin)");
        return Ok(None);
    }
    let options = OpenOptions { url: url.to_owned(), ..wire::open_options(config) };
    let ledger = ledger::open(&options).await?;
    let (stamp, run, batches) = claim_everything(ledger.as_ref()).await?;
    drop(ledger);
    let first = batches.iter().min().context("there is nothing to settle")?.0;
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), ledger::postgres::pgbench_script(stamp, run))?;
    let each = batches.len() / clients as usize;
    let (mut pgbench, url) = tools.on("pgbench", url)?;
    let output = pgbench
        .args(["--no-vacuum", "--protocol=prepared", "--client", &clients.to_string(), "--jobs", "1"])
        .args(["--transactions", &each.to_string(), "--define", "n=0", "--define", &format!("base={}", first - 1)])
        .args(["--define", &format!("clients={clients}"), "--file"])
        .arg(script.path())
        .arg(url)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tps = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
    let tps = tps.with_context(|| format!("pgbench did not tell its rate: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    let done = (each * clients as usize) as u64;
    Ok(Some((done, seconds(done, tps))))
}

#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "a duration, not money")]
fn seconds(transactions: u64, tps: f64) -> f64 {
    transactions as f64 / tps
}

async fn claim_everything(ledger: &dyn Ledger) -> anyhow::Result<(Stamp, RunId, Vec<BatchId>)> {
    let everything = PlannedRun::by_hand(RunKey::manual(NaiveDate::from_ymd_opt(9999, 1, 1).context("a date")?));
    let holder = HolderId(Uuid::new_v4());
    let run = ledger.open_run(&everything, holder).await?;
    let generation = ledger.generation(worker::grant::LEDGER_SOURCE).await?;
    let stamp = Stamp { fence: Fence { generation, token: ledger.mint().await? }, holder };
    let limits = TxLimits { total: Duration::from_secs(60), idle: Duration::from_secs(60) };
    let mut batches = Vec::new();
    for unit in (0..ledger.meta().partitions).map(Unit) {
        ledger.register(unit, stamp).await?;
        let request = ClaimRequest {
            unit,
            stamp,
            run,
            due: everything.due(),
            most: u32::MAX >> 1,
            most_items: i64::MAX,
            max_attempts: i32::MAX,
            limits,
        };
        match ledger.claim(&request).await? {
            Claim::Work(claimed) => batches.extend(claimed.batches.iter().map(|batch| batch.id)),
            Claim::Fenced { .. } | Claim::ClaimLost => bail!("somebody else works on the copy of the ledger"),
        }
    }
    Ok((stamp, run, batches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    /// A command line is shown to every user of the machine.
    #[test]
    fn no_tool_gets_the_password_as_an_argument() {
        let tools = Tools::in_folder(None);
        let command = tools.beside("createdb", "postgres://me:s%21cret@db/postgres?sslmode=require").expect("a URL");
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["--maintenance-db", "postgres://me@db/postgres?sslmode=require"]);
        let environment: Vec<_> = command.get_envs().collect();
        assert_eq!(environment, [(OsStr::new("PGPASSWORD"), Some(OsStr::new("s!cret")))]);
        assert!(tools.on("pgbench", "postgres://me:sec?ret@db/x").is_err(), "rather not at all");
    }
}
