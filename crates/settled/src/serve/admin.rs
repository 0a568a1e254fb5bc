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
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use worker::Drain;

/// What the endpoint looks at.
pub(super) struct Admin {
    pub(super) gauges: Gauges,
    pub(super) rendered: PrometheusHandle,
    pub(super) drain: Drain,
    pub(super) watched: Watched,
}

/// Most connections at once. A scraper and two probes need three.
const CONNECTIONS: usize = 32;
/// For a request's head, so that a client that says nothing does not keep its connection.
const HEAD: Duration = Duration::from_secs(5);
/// For a whole request and its answer.
const REQUEST: Duration = Duration::from_secs(15);

/// Answers until it is aborted. Few connections, each for one request and not for long: file descriptors belong to the work.
pub(super) async fn answer(listener: TcpListener, admin: Arc<Admin>) -> anyhow::Result<()> {
    let (routes, permits) = (routes(admin), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await?;
        let Ok((stream, _)) = listener.accept().await else {
            // no descriptor is free, most likely; the client tries again, and so do we
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD).keep_alive(false);
            // a client that goes away is no event
            let _ = tokio::time::timeout(REQUEST, http.serve_connection(TokioIo::new(stream), service)).await;
            drop(permit);
        });
    }
}

fn routes(admin: Arc<Admin>) -> Router {
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
