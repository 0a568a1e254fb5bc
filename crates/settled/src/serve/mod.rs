//! Serving: plan what is scheduled, settle what is due, answer the admin endpoint; drain on SIGTERM, reload on SIGHUP.
//!
//! Instances are equal: each plans (the ledger keeps one of them), each settles. Read [`planning`], then `worker::serve`.

mod admin;
mod gauges;
mod metrics;
mod planning;
mod reload;

use crate::config::{Config, ConfigError, LogFormat};
use crate::probe::SignalAt;
use crate::signals::drain_on_signal;
use crate::telemetry::LogLevel;
use crate::{exit, wire};
use admin::Admin;
use anyhow::Context;
use domain::step::{NoProbe, Probe};
use gauges::Gauges;
use planning::Planning;
use reload::Reload;
use scheduler::definition::Definition;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};
use worker::{Pulse, Worker};

/// A loop that does not turn for so long, beside its longest transaction, is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves until a signal, or until something waiting cannot cure.
pub(crate) async fn serve(
    config: Config,
    file: Option<PathBuf>,
    level: LogLevel,
    signal_at: Option<SignalAt>,
) -> anyhow::Result<ExitCode> {
    // Before anything takes time: by default a hangup ends a process.
    let hangup = signal(SignalKind::hangup())?;
    let rendered = metrics::install()?;
    let definitions = config.schedules()?;
    let listener = listen(&config).await?;
    let ledger = wire::ledger(&config).await?;
    let probe: Arc<dyn Probe> = signal_at.map_or_else(|| Arc::new(NoProbe) as Arc<dyn Probe>, |at| Arc::new(at));
    let worker = Arc::new(wire::worker(&config, Arc::clone(&ledger), probe)?);
    let drain = worker.drain.clone();
    drain_on_signal(drain.clone())?;
    announce(&config, &definitions, listener.local_addr()?);

    let (schedules, planned_by) = watch::channel(definitions);
    let (wake, planning_pulse) = (Arc::new(Notify::new()), Arc::new(Pulse::default()));
    let planning = Planning {
        ledger: Arc::clone(&ledger),
        holder: worker.holder,
        definitions: planned_by.clone(),
        wake: Arc::clone(&wake),
        drain: drain.clone(),
        pulse: Arc::clone(&planning_pulse),
    };
    let admin = Arc::new(Admin {
        gauges: Gauges::new(ledger, planned_by.clone()),
        rendered,
        drain: drain.clone(),
        pulses: vec![("worker", Arc::clone(&worker.pulse)), ("planner", planning_pulse)],
        patience: PATIENCE + config.settle_timeout(),
    });
    let mut endpoint = tokio::spawn(axum::serve(listener, admin::routes(admin)).into_future());
    let mut planner = tokio::spawn(planning.plan());
    let mut settler = tokio::spawn(work(Arc::clone(&worker), wake));
    let reloader = tokio::spawn(reload_at(hangup, Reload { file, level, config }, Arc::clone(&worker), schedules));

    // Whichever ends first ends all of them: an instance that does half of its work looks alive and is not.
    let ended = tokio::select! {
        ended = &mut settler => ended.context("the worker panicked").flatten(),
        ended = &mut planner => ended.context("the planner panicked").flatten(),
        ended = &mut endpoint => ended.context("the admin endpoint panicked").and_then(|ended| Ok(ended?)),
    };
    drain.ask();
    ::metrics::gauge!(metrics::DRAINING).set(1);
    for task in [settler, planner] {
        if !task.is_finished() {
            task.await.context("a loop panicked while draining")??;
        }
    }
    reloader.abort();
    endpoint.abort();
    let _ = reloader.await;
    // Last of all: until here it kept the leases of what was still in hand.
    if let Some(keeper) = Arc::into_inner(worker).and_then(|worker| worker.keeper) {
        keeper.shutdown().await;
    }
    ended.map(|()| ExitCode::from(exit::DONE))
}

async fn work(worker: Arc<Worker>, wake: Arc<Notify>) -> anyhow::Result<()> {
    Ok(worker.serve(wake).await?)
}

async fn listen(config: &Config) -> anyhow::Result<TcpListener> {
    let address = config.admin.listen;
    TcpListener::bind(address).await.map_err(|error| {
        let why = format!("admin.listen {address} cannot be used: {error}; take another address, or port 0 for any that is free");
        ConfigError(why).into()
    })
}

/// A log for machines has no other lines in it.
fn announce(config: &Config, definitions: &[Definition], address: std::net::SocketAddr) {
    let names: Vec<&str> = definitions.iter().map(Definition::name).collect();
    let schedules = if names.is_empty() { "none (runs are opened by `settled run` only)".to_owned() } else { names.join(", ") };
    if config.log.format == LogFormat::Json {
        tracing::info!(%address, schedules, "serving");
    } else {
        exit::tell(&format!("serving; http://{address}/healthz, /readyz, /metrics; schedules: {schedules}"));
    }
}

/// SIGHUP reads the configuration again.
async fn reload_at(mut hangup: Signal, mut reload: Reload, worker: Arc<Worker>, schedules: watch::Sender<Vec<Definition>>) {
    while hangup.recv().await.is_some() {
        match reload.reload(&worker.pace) {
            Ok(definitions) => drop(schedules.send_replace(definitions)),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the configuration cannot be used; the old one stays in force");
            }
        }
    }
}
