//! Serving: plan what is scheduled, settle what is due, answer the admin endpoint; drain on SIGTERM, reload on SIGHUP.
//!
//! Instances are equal: each plans (the ledger keeps one of them), each settles. Read [`planning`], then `worker::serve`.

mod admin;
mod gauges;
mod metrics;
mod planning;
mod reload;
mod watchdog;

use crate::config::{Config, ConfigError, LogFormat};
use crate::signals::drain_on_signal;
use crate::telemetry::LogLevel;
use crate::{exit, wire};
use admin::Admin;
use anyhow::Context;
use chaos::mode::Rule;
use gauges::Gauges;
use ledger::Ledger;
use metrics_exporter_prometheus::PrometheusHandle;
use planning::Planning;
use reload::Reload;
use scheduler::definition::Definition;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle};
use watchdog::Watched;
use worker::{Drain, Pulse, Worker};

/// What a drain takes beside a settle transaction: handing back, releasing, a look that is under way.
const DRAIN_SLACK: Duration = Duration::from_secs(25);

/// Serves until a signal, or until something waiting cannot cure.
pub(crate) async fn serve(
    config: Config,
    file: Option<PathBuf>,
    level: LogLevel,
    signal_at: Option<Rule>,
) -> anyhow::Result<ExitCode> {
    // Before anything takes time: by default a hangup ends a process.
    let hangup = signal(SignalKind::hangup())?;
    let rendered = metrics::install(config.ttl())?;
    let definitions = config.schedules()?;
    let faults = wire::faults(&config, signal_at.as_ref())?;
    let listener = listen(&config).await?;
    let ledger = wire::ledger(&config).await?;
    wire::refuse_other_source(&config, ledger.as_ref()).await?;
    let worker = Arc::new(wire::worker(&config, Arc::clone(&ledger), &faults)?);
    drain_on_signal(worker.drain.clone())?;
    announce(&config, &definitions, listener.local_addr()?);
    let most = config.settle_timeout() + DRAIN_SLACK;
    let reload = Reload { file, level, config };
    let loops = Loops::start(&worker, ledger, definitions, (listener, rendered), (hangup, reload));
    let ended = loops.end(&worker.drain, most).await;
    // Last of all: until here it kept the leases of what was still in hand.
    if let Some(keeper) = Arc::into_inner(worker).and_then(|worker| worker.keeper) {
        keeper.shutdown().await;
    }
    ended.map(|()| ExitCode::from(exit::DONE))
}

/// A loop, and how it ended.
type Loop = JoinHandle<anyhow::Result<()>>;

/// What runs beside each other in one instance.
struct Loops {
    settler: Loop,
    planner: Loop,
    endpoint: Loop,
    reloader: JoinHandle<()>,
    watchdog: JoinHandle<()>,
}

impl Loops {
    fn start(
        worker: &Arc<Worker>,
        ledger: Arc<dyn Ledger>,
        definitions: Vec<Definition>,
        (listener, rendered): (TcpListener, PrometheusHandle),
        (hangup, reload): (Signal, Reload),
    ) -> Loops {
        let (schedules, definitions) = watch::channel(definitions);
        let (refused, unplanned) = watch::channel(BTreeSet::new());
        let (wake, drain, pulse) = (Arc::new(Notify::new()), worker.drain.clone(), Arc::new(Pulse::default()));
        let watched = Watched { worker: Arc::clone(worker), planner: Arc::clone(&pulse) };
        let planning = Planning {
            ledger: Arc::clone(&ledger),
            holder: worker.holder,
            definitions: definitions.clone(),
            wake: Arc::clone(&wake),
            drain: drain.clone(),
            pulse,
            refused,
        };
        let gauges = Gauges { ledger, definitions, refused: unplanned, last: Arc::default() };
        let admin = Arc::new(Admin { gauges, rendered, drain, watched: watched.clone() });
        Loops {
            settler: tokio::spawn(work(Arc::clone(worker), wake)),
            planner: tokio::spawn(planning.plan()),
            endpoint: tokio::spawn(admin::answer(listener, admin)),
            reloader: tokio::spawn(reload_at(hangup, reload, Arc::clone(worker), schedules)),
            watchdog: tokio::spawn(watched.wait()),
        }
    }

    /// Whichever ends first ends all of them: an instance that does half of its work looks alive and is not. What went wrong first is
    /// what is told.
    async fn end(self, drain: &Drain, most: Duration) -> anyhow::Result<()> {
        let Loops { settler, planner, endpoint, reloader, watchdog } = self;
        tokio::pin!(settler, planner, endpoint, watchdog);
        let all = async {
            let (mut ended, first) = tokio::select! {
                ended = &mut settler => (told("worker", ended), 0),
                ended = &mut planner => (told("planner", ended), 1),
                ended = &mut endpoint => (told("admin endpoint", ended), 2),
            };
            drain.ask();
            if first != 0 {
                ended = ended.and(told("worker", settler.await));
            }
            if first != 1 {
                ended = ended.and(told("planner", planner.await));
            }
            ended
        };
        let ended = tokio::select! {
            ended = all => ended,
            // a transaction ends within its limit, or the server that should end it does not answer
            () = async { drain.asked().await; tokio::time::sleep(most).await } => {
                tracing::error!(waited_s = most.as_secs(), "the drain does not come to its end; ending all the same, which is safe as a kill is");
                std::process::exit(i32::from(exit::UNAVAILABLE))
            }
            // there is nothing to wait for: what is stuck does not drain
            _ = &mut watchdog => std::process::exit(i32::from(exit::UNAVAILABLE)),
        };
        // they look at the worker, which is to be taken apart now
        watchdog.abort();
        endpoint.abort();
        reloader.abort();
        let _ = tokio::join!(watchdog, async { endpoint.is_finished() || endpoint.await.is_err() }, reloader);
        ended
    }
}

/// How a loop ended; an error that is not the first one would be told nowhere else.
fn told(name: &'static str, ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<()> {
    let ended = ended.with_context(|| format!("the {name} panicked")).flatten();
    if let Err(error) = &ended {
        tracing::error!(error = format!("{error:#}"), "the {name} ended; so does this instance");
    }
    ended
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
