//! One worker process of the demo: this very program, told by environment which ledger to work on; and what its log says.

use crate::config::Config;
use anyhow::Context;
use chaos::Timeline;
use chaos::instance::{Instance, PATIENCE};
use chaos::stage::until;
use serde::Deserialize;
use std::process::Command;
use std::sync::Arc;

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

/// Starts one. What it does is told by the story, so its own timeline is for nobody.
pub(super) fn start(name: &str, config: &Config, signal_at: Option<&str>) -> anyhow::Result<Instance> {
    let mut command = Command::new(std::env::current_exe().context("this program's own path")?);
    command.args(["run", "--json", "--wait", "25"]);
    command.args(signal_at.iter().flat_map(|at| ["--signal-at", at]));
    command.env("SETTLED__DATABASE__URL", &config.database.url);
    command.env("SETTLED__LEASE__TTL_MS", config.lease.ttl_ms.to_string());
    command.env("SETTLED__WORKER__PARTITIONS", config.worker.partitions.to_string());
    command.env("SETTLED__WORKER__BATCHES_PER_TRANSACTION", config.worker.batches_per_transaction.to_string());
    command.env("SETTLED__LOG__FORMAT", "json").env("SETTLED__LOG__LEVEL", "info");
    Ok(Instance::start(name, &mut command, Arc::new(Timeline::begin(|_| {})))?)
}

/// Waits for a line of its log.
pub(super) async fn event(instance: &Instance, wanted: impl Fn(&Event) -> bool) -> anyhow::Result<Event> {
    let what = format!("{} writes a certain line to its log", instance.name());
    Ok(until(&what, PATIENCE, async || Ok(instance.events().into_iter().map(Event).find(&wanted))).await?)
}
