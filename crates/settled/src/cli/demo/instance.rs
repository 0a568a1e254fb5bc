//! One worker process of the demo: this very program, told by environment which ledger to work on.

use crate::config::Config;
use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing in the demo takes longer.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A worker process.
pub(super) struct Instance {
    name: &'static str,
    child: Child,
    log: PathBuf,
    out: PathBuf,
}

/// What `run --json` printed.
#[derive(Debug, Deserialize)]
pub(super) struct Done {
    pub(super) batches_settled: u64,
    pub(super) items: u64,
    pub(super) fenced: u64,
}

/// A line of its log.
pub(super) struct Event(serde_json::Value);

impl Event {
    pub(super) fn says(&self, words: &str) -> bool {
        self.0["message"].as_str().is_some_and(|message| message.contains(words))
    }

    /// A field of the event, as text.
    pub(super) fn text(&self, field: &str) -> String {
        match &self.0[field] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The unit it is about: its own field, or the end of the lease's name in its span.
    pub(super) fn unit(&self) -> String {
        let lease = self.0["span"]["lease.name"].as_str().and_then(|name| name.rsplit('/').next());
        lease.map_or_else(|| self.text("unit"), str::to_owned)
    }

    /// The fence of its span.
    pub(super) fn fence(&self) -> String {
        let span = &self.0["span"];
        format!("{}.{}", span["fence.generation"], span["fence.token"])
    }
}

impl Instance {
    pub(super) fn start(name: &'static str, folder: &Path, config: &Config, signal_at: Option<&str>) -> anyhow::Result<Instance> {
        let (log, out) = (folder.join(format!("{name}.log")), folder.join(format!("{name}.json")));
        let mut command = Command::new(std::env::current_exe().context("this program's own path")?);
        command.args(["run", "--json", "--wait", "25"]).stdin(Stdio::null());
        command.args(signal_at.iter().flat_map(|at| ["--signal-at", at]));
        command.env("SETTLED__DATABASE__URL", &config.database.url);
        command.env("SETTLED__LEASE__TTL_MS", config.lease.ttl_ms.to_string());
        command.env("SETTLED__WORKER__PARTITIONS", config.worker.partitions.to_string());
        command.env("SETTLED__WORKER__BATCHES_PER_TRANSACTION", config.worker.batches_per_transaction.to_string());
        command.env("SETTLED__LOG__FORMAT", "json").env("SETTLED__LOG__LEVEL", "info");
        command.stdout(std::fs::File::create(&out)?).stderr(std::fs::File::create(&log)?);
        let child = command.spawn().context("a worker process cannot be started")?;
        Ok(Instance { name, child, log, out })
    }

    fn pid(&self) -> anyhow::Result<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process id")
    }

    /// Waits until the process has stopped itself.
    pub(super) fn wait_frozen(&mut self) -> anyhow::Result<()> {
        let pid = self.pid()?;
        self.wait("stops itself", |_| {
            let Some((_, status)) = waitpid(Some(pid), WaitOptions::UNTRACED | WaitOptions::NOHANG)? else { return Ok(None) };
            if status.stopped() { Ok(Some(())) } else { bail!("it ended instead") }
        })
    }

    pub(super) fn wake(&self) -> anyhow::Result<()> {
        Ok(kill_process(self.pid()?, Signal::CONT)?)
    }

    /// Waits for a line of its log.
    pub(super) fn wait_for(&mut self, wanted: impl Fn(&Event) -> bool) -> anyhow::Result<Event> {
        self.wait("writes a certain line to its log", |instance| {
            let log = std::fs::read_to_string(&instance.log)?;
            let mut events = log.lines().filter_map(|line| serde_json::from_str(line).ok()).map(Event);
            Ok(events.find(&wanted))
        })
    }

    /// Waits until it has ended well, and reads what it says it did.
    pub(super) fn wait_done(&mut self) -> anyhow::Result<Done> {
        let status = self.wait("ends", |instance| Ok(instance.child.try_wait()?))?;
        let log = std::fs::read_to_string(&self.log)?;
        anyhow::ensure!(status.success(), "instance {} ended with {status}: {log}", self.name);
        Ok(serde_json::from_str(&std::fs::read_to_string(&self.out)?)?)
    }

    fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&mut Instance) -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(found) = look(self).with_context(|| format!("waiting until instance {} {what}", self.name))? {
                return Ok(found);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        bail!("instance {} did not come to where it {what} within {PATIENCE:?}; its log: {log}", self.name)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Also ends one that is still frozen when something else failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
