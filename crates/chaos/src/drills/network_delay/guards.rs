//! The guards of this program, each with something of its own far away.

use super::super::far::way_to;
use super::{AWAY_MS, Point, away, three};
use crate::books::{Books, FIRST_DAY};
use crate::measure::{as_ms, per_second};
use crate::{DrillError, Stage};
use chrono::Days;
use lab::etcd::Etcd;
use lab::proxy::Proxy;
use lab::redis::Redis;
use serde_json::Value;
use std::any::Any;
use std::net::SocketAddr;
use std::time::Duration;

/// What is far away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Far {
    /// The lock service alone.
    Locks,
    /// The database, which keeps the locks and the books: then every statement pays, whatever the guard.
    Database,
}

/// A guard, and where it keeps what it keeps.
pub(super) struct Guard {
    pub(super) name: &'static str,
    pub(super) far: Far,
    guard: &'static str,
    backend: &'static str,
}

pub(super) const GUARDS: [Guard; 5] = [
    Guard { name: "lease (redis)", far: Far::Locks, guard: "lease", backend: "redis" },
    Guard { name: "lease (etcd)", far: Far::Locks, guard: "lease", backend: "etcd" },
    Guard { name: "lease (database)", far: Far::Database, guard: "lease", backend: "database" },
    Guard { name: "row-lock", far: Far::Database, guard: "row-lock", backend: "database" },
    Guard { name: "advisory-xact", far: Far::Database, guard: "advisory-xact", backend: "database" },
];

impl Far {
    /// A batch is some twenty statements, and each is a round trip where the database is far away.
    fn batches(self) -> u32 {
        match self {
            Far::Locks => 120,
            Far::Database => 4,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Far::Locks => "lock service",
            Far::Database => "database",
        }
    }
}

/// Some batches at each distance, one a transaction, by one instance with two units.
pub(super) async fn settle(stage: &Stage, guard: &Guard) -> Result<[Point; 3], DrillError> {
    let books = stage.books(&stage.database()?).with("worker.guard", guard.guard).with("lease.ttl_ms", 30_000);
    let (far, proxy, _server) = far(&books, guard)?;
    let (batches, mut points) = (guard.far.batches(), Vec::new());
    for (day, ms) in (0..).zip(AWAY_MS) {
        // what was due before is settled by then
        books.take_in_of(FIRST_DAY + Days::new(day), batches, 2)?;
        away(&proxy, ms);
        let did: Value = far.start(guard.name, &["run", "--json"])?.end_well().await?;
        let (settled, took_ms) = (did["batches_settled"].as_u64().unwrap_or(0), did["duration_ms"].as_u64().unwrap_or(0));
        let seen = format!("{settled} of {batches}");
        stage.must_hold(guard.name, &format!("{ms} ms away, every batch is settled"), seen, settled == u64::from(batches));
        let each = as_ms(took_ms * 1_000 / settled.max(1));
        points.push(Point { tenths: per_second(settled * 10, Duration::from_millis(took_ms)), each: format!("mean {each}") });
    }
    let ok = books.open().await?.verify().await?.ok;
    stage.must_hold(guard.name, "the books hold", format!("verify ok: {ok}"), ok);
    three(points)
}

/// The same books with a proxy in front of what is to be far away, and the server that runs for it.
fn far<'a>(books: &Books<'a>, guard: &Guard) -> Result<(Books<'a>, Proxy, Box<dyn Any>), DrillError> {
    match guard.backend {
        "redis" => {
            let server = Redis::start()?;
            let proxy = Proxy::start(server.address())?;
            let far = books.with("lease.backend", "redis").with("lease.redis.url", format!("redis://{}", proxy.address()));
            Ok((far, proxy, Box::new(server)))
        }
        "etcd" => {
            let server = Etcd::start()?;
            let proxy = Proxy::start(address(&server.endpoints().concat())?)?;
            let far = books.with("lease.backend", "etcd").with("lease.etcd.endpoints", proxy.address());
            Ok((far, proxy, Box::new(server)))
        }
        _ => {
            let (proxy, by_way) = way_to(books.url())?;
            Ok((books.by_way_of(&by_way), proxy, Box::new(())))
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, DrillError> {
    text.parse().map_err(|error| DrillError::Story(format!("{text:?} is not an address: {error}")))
}
