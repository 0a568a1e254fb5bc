//! The admin endpoint: `/healthz`, `/readyz`, `/metrics`. No authentication: it is for loopback and for networks that are closed.
//!
//! *Healthy* is about this process alone: its loops turn. An outage of a service is no reason to restart it, and a restart of every
//! instance at once would make one worse. *Ready* is about its use: the ledger answers, and it is not draining.

use super::gauges::Gauges;
use super::metrics as name;
use super::watchdog::Watched;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;
use std::sync::Arc;
use worker::Drain;

/// What the endpoint looks at.
pub(super) struct Admin {
    pub(super) gauges: Gauges,
    pub(super) rendered: PrometheusHandle,
    pub(super) drain: Drain,
    pub(super) watched: Watched,
}

pub(super) fn routes(admin: Arc<Admin>) -> Router {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/metrics", get(metrics)).with_state(admin)
}

async fn healthz(State(admin): State<Arc<Admin>>) -> Response {
    match admin.watched.stuck() {
        None => "ok\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn readyz(State(admin): State<Arc<Admin>>) -> Response {
    let not_ready = |why: String| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
    if admin.drain.is_asked() {
        return not_ready("draining".to_owned());
    }
    match admin.gauges.text().await {
        Ok(_) => "ready\n".into_response(),
        Err(why) => not_ready(why),
    }
}

async fn metrics(State(admin): State<Arc<Admin>>) -> Response {
    // What cannot be read shows as settled_ledger_up 0; what is this process's own is there all the same.
    let ledger = admin.gauges.text().await;
    gauge!(name::LEDGER_UP).set(if ledger.is_ok() { 1 } else { 0 });
    gauge!(name::DRAINING).set(if admin.drain.is_asked() { 1 } else { 0 });
    admin.rendered.run_upkeep();
    let text = admin.rendered.render() + &ledger.unwrap_or_default();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
