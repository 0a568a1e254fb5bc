//! How often a lease changes hands, and how long who wants it waits: each service alone and under contention, in one run, on servers of
//! its own. `cargo bench --package lease` (SETTLED_BENCH_SECONDS: how long each figure is taken, 3 by default).
//!
//! Every contender is a keeper, as one process has it, that acquires and releases without a pause. Compare lines of one run only.

use domain::ids::{HolderId, LedgerId};
use lab::etcd::Etcd;
use lab::postgres::{Durability, Postgres};
use lab::redis::{Redis, fleet};
use lease::{
    Connector, EtcdConnector, EtcdOptions, Keeper, KeeperSettings, LeaseName, PostgresAdvisoryConnector, PostgresConnector,
    RedisConnector, RedisOptions, RedlockConnector, RedlockOptions, Release, SqliteConnector,
};
use std::any::Any;
use std::error::Error;
use std::time::{Duration, Instant};
use uuid::Uuid;

const CONTENDERS: [u32; 4] = [1, 2, 16, 128];
const TTL: Duration = Duration::from_secs(30);
const LEASE_TABLE: &str = include_str!("../../../migrations/postgres/0005_lease.sql");

type Start = fn() -> Result<Service, Box<dyn Error>>;
type Connect = Box<dyn Fn() -> Box<dyn Connector>>;

/// A service that runs, until it is dropped.
struct Service {
    name: &'static str,
    connect: Connect,
    _running: Box<dyn Any>,
}

fn service(
    name: &'static str,
    running: impl Any,
    connect: impl Fn() -> Box<dyn Connector> + 'static,
) -> Result<Service, Box<dyn Error>> {
    Ok(Service { name, connect: Box::new(connect), _running: Box::new(running) })
}

fn sqlite() -> Result<Service, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("settled.db");
    service("sqlite", folder, move || Box::new(SqliteConnector::new(&file)))
}

fn postgres() -> Result<Service, Box<dyn Error>> {
    let server = Postgres::start(Durability::Real)?;
    server.url().query(LEASE_TABLE)?;
    let url = server.url();
    service("postgres", server, move || Box::new(PostgresConnector::new(url.as_str()).expect("a URL")))
}

fn advisory() -> Result<Service, Box<dyn Error>> {
    let server = Postgres::start(Durability::Real)?;
    let url = server.url();
    service("postgres-advisory", server, move || Box::new(PostgresAdvisoryConnector::new(url.as_str(), TTL).expect("a URL")))
}

fn etcd(name: &'static str, etcd: Etcd) -> Result<Service, Box<dyn Error>> {
    let endpoints = etcd.endpoints();
    service(name, etcd, move || Box::new(EtcdConnector::new(EtcdOptions::new(endpoints.clone())).expect("endpoints")))
}

fn redis() -> Result<Service, Box<dyn Error>> {
    let server = Redis::start()?;
    let url = url(&server);
    service("redis", server, move || Box::new(RedisConnector::new(RedisOptions::new(&url)).expect("a URL")))
}

fn url(server: &Redis) -> String {
    format!("redis://{}", server.address())
}

fn redlock() -> Result<Service, Box<dyn Error>> {
    let servers = fleet(5)?;
    let urls: Vec<_> = servers.iter().map(url).collect();
    service("redlock of 5", servers, move || Box::new(RedlockConnector::new(RedlockOptions::new(&urls)).expect("URLs")))
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::var("SETTLED_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    println!("{:<18} {:>10} {:>9} {:>10} {:>10} {:>10}", "service", "contenders", "grants/s", "p50", "p99", "longest");
    let starts: [Start; 7] = [
        sqlite,
        postgres,
        advisory,
        || etcd("etcd of 1", Etcd::start()?),
        || etcd("etcd of 3", Etcd::start_three()?),
        redis,
        redlock,
    ];
    for start in starts {
        let service = start()?;
        for contenders in CONTENDERS {
            measure(&service, contenders, Duration::from_secs(seconds));
        }
    }
    Ok(())
}

fn measure(service: &Service, contenders: u32, span: Duration) {
    let keepers: Vec<Keeper> = (0..contenders)
        .map(|_| Keeper::start((service.connect)(), HolderId(Uuid::new_v4()), KeeperSettings::new(TTL)).expect("a keeper"))
        .collect();
    let name = LeaseName::unit(LedgerId(Uuid::new_v4()), 0);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let mut waits = runtime.block_on(async {
        // connections are made before the clock runs
        for keeper in &keepers {
            keeper.source().await.expect("an answer");
        }
        let until = Instant::now() + span;
        let tasks: Vec<_> = keepers.into_iter().map(|keeper| tokio::spawn(contend(keeper, name.clone(), until))).collect();
        let mut waits = Vec::new();
        for task in tasks {
            waits.extend(task.await.expect("no panic"));
        }
        waits
    });
    waits.sort_unstable();
    let at = |per_mille: usize| waits.get((waits.len() * per_mille / 1000).min(waits.len().saturating_sub(1)));
    let in_ms = |wait: &Duration| format!("{}.{:02} ms", wait.as_millis(), wait.as_micros() % 1000 / 10);
    let ms = |wait: Option<&Duration>| wait.map_or_else(|| "none".to_owned(), in_ms);
    let rate = waits.len() as u128 * 1000 / span.as_millis();
    let (p50, p99, longest) = (ms(at(500)), ms(at(990)), ms(waits.last()));
    println!("{:<18} {contenders:>10} {rate:>9} {p50:>10} {p99:>10} {longest:>10}", service.name);
}

/// Acquires and releases until it is over; how long each acquisition took.
async fn contend(keeper: Keeper, name: LeaseName, until: Instant) -> Vec<Duration> {
    let mut waits = Vec::new();
    loop {
        let (begun, left) = (Instant::now(), until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        match keeper.acquire(&name, left).await {
            Ok(Some(lease)) => {
                waits.push(begun.elapsed());
                assert_ne!(lease.release().await, Release::NotHeld, "somebody else had it");
            }
            Ok(None) => break,
            Err(error) => panic!("{error}"),
        }
    }
    keeper.shutdown().await;
    waits
}
