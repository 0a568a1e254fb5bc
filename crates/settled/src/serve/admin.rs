//! The admin endpoint: `/healthz`, `/readyz`, `/metrics`. No authentication: it is for loopback and for networks that are closed.
//!
//! *Healthy* is about this process alone: its loops turn. An outage of a service is no reason to restart it, and a restart of every
//! instance at once would make one worse. *Ready* is about its use: the ledger answers, and it is not draining.

use super::gauges::Gauges;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use std::sync::Arc;
use std::time::Duration;
use worker::{Drain, Pulse};

/// What the endpoint looks at.
pub(super) struct Admin {
    pub(super) gauges: Gauges,
    pub(super) rendered: PrometheusHandle,
    pub(super) drain: Drain,
    /// Of each loop, by name.
    pub(super) pulses: Vec<(&'static str, Arc<Pulse>)>,
    /// A loop that is silent for longer is stuck: longer than any transaction or pause of it.
    pub(super) patience: Duration,
}

pub(super) fn routes(admin: Arc<Admin>) -> Router {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/metrics", get(metrics)).with_state(admin)
}

async fn healthz(State(admin): State<Arc<Admin>>) -> Response {
    let stuck = admin.pulses.iter().find(|(_, pulse)| pulse.silent_for() > admin.patience);
    match stuck {
        None => "ok\n".into_response(),
        Some((name, pulse)) => {
            let silent = pulse.silent_for().as_secs();
            (StatusCode::SERVICE_UNAVAILABLE, format!("the {name} has not turned for {silent} s\n")).into_response()
        }
    }
}

async fn readyz(State(admin): State<Arc<Admin>>) -> Response {
    let not_ready = |why: String| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
    if admin.drain.is_asked() {
        return not_ready("draining".to_owned());
    }
    match admin.gauges.refresh().await {
        Ok(()) => "ready\n".into_response(),
        Err(why) => not_ready(why),
    }
}

async fn metrics(State(admin): State<Arc<Admin>>) -> Response {
    // What cannot be read shows as settled_ledger_up 0; the counters of this process are there all the same.
    let _ = admin.gauges.refresh().await;
    admin.rendered.run_upkeep();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], admin.rendered.render()).into_response()
}
