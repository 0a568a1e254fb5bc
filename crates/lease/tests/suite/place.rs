//! A lock service of one case, empty at first, gone afterwards.

mod redis;

use super::capabilities::Server;
use lab::etcd::Etcd;
use lab::faketime::SteppedClock;
use lab::postgres::{Durability, Postgres, PostgresUrl};
use lease::{Connector, EtcdConnector, EtcdOptions, PostgresAdvisoryConnector, PostgresConnector, SqliteConnector};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, PgPool, SqlitePool};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) use redis::{RedisPlace, SharedRedis, url as redis_url};

pub(crate) enum Place {
    Sqlite { ledger: PathBuf, _folder: Option<TempDir> },
    Postgres { url: String, own: Option<OwnPostgres> },
    Advisory { url: String, own: Option<OwnPostgres> },
    Etcd { endpoints: Vec<String>, prefix: String, own: Option<Mutex<Etcd>> },
    Redis(RedisPlace),
    Redlock(RedisPlace),
}

/// A server of one case, which may break it.
pub(crate) struct OwnPostgres {
    server: Mutex<Postgres>,
    clock: SteppedClock,
}

impl OwnPostgres {
    fn start() -> Result<(OwnPostgres, PostgresUrl), lab::Error> {
        let clock = SteppedClock::new()?;
        let server = Postgres::start_with_clock(Durability::Off, &clock)?;
        let url = server.url();
        Ok((OwnPostgres { server: Mutex::new(server), clock }, url))
    }
}

impl Server for OwnPostgres {
    fn restart(&self) {
        let mut server = self.server.lock().expect("no case panics inside");
        server.kill().expect("killed");
        server.start_again().expect("started again");
    }

    fn lose_one(&self) {
        self.server.lock().expect("no case panics inside").kill().expect("killed");
    }

    fn step_clocks(&self, by: Duration) -> Result<(), lab::Error> {
        self.clock.forward(by)
    }
}

impl Server for Mutex<Etcd> {
    fn restart(&self) {
        let mut cluster = self.lock().expect("no case panics inside");
        (0..cluster.pids().len()).for_each(|at| cluster.kill(at).expect("killed"));
        cluster.start_all().expect("started again");
    }

    fn lose_one(&self) {
        let mut cluster = self.lock().expect("no case panics inside");
        let leader = cluster.leader().expect("a leader");
        cluster.kill(leader).expect("killed");
    }

    fn step_clocks(&self, _by: Duration) -> Result<(), lab::Error> {
        panic!("programs in Go read the clock without any library that could be put before it")
    }
}

/// The cluster that cases share. Started when the first of them wants it, stopped by `main`: a static would never be dropped.
#[derive(Default)]
pub(crate) struct SharedEtcd(Mutex<Option<Etcd>>);

impl SharedEtcd {
    pub(crate) fn place(&self) -> Result<Place, lab::Error> {
        // held while it starts: the others wait for the same one
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*shared {
            Some(running) => Ok(Place::etcd(running)),
            None => Ok(Place::etcd(shared.insert(Etcd::start()?))),
        }
    }

    pub(crate) fn stop(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Work that holds every connection of its pool, in an open transaction.
pub(crate) enum BusyPool {
    Sqlite { _tx: sqlx::Transaction<'static, sqlx::Sqlite>, _pool: SqlitePool },
    Postgres { _tx: sqlx::Transaction<'static, sqlx::Postgres>, _pool: PgPool },
}

impl Place {
    pub(crate) fn sqlite() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Place::Sqlite { ledger: folder.path().join("settled.db"), _folder: Some(folder) }
    }

    /// An empty database; gets the one table that is needed.
    pub(crate) fn postgres(url: &lab::postgres::PostgresUrl) -> Place {
        url.query(include_str!("../../../../migrations/postgres/0005_lease.sql")).expect("the lease table");
        Place::Postgres { url: url.as_str().to_owned(), own: None }
    }

    /// A server of its own, whose clock can be set forward.
    pub(crate) fn own_postgres() -> Result<Place, lab::Error> {
        let (own, server_url) = OwnPostgres::start()?;
        let Place::Postgres { url, .. } = Place::postgres(&server_url) else { unreachable!("just made") };
        Ok(Place::Postgres { url, own: Some(own) })
    }

    /// An empty database, which stays empty.
    pub(crate) fn advisory(url: &lab::postgres::PostgresUrl) -> Place {
        Place::Advisory { url: url.as_str().to_owned(), own: None }
    }

    pub(crate) fn own_advisory() -> Result<Place, lab::Error> {
        let (own, url) = OwnPostgres::start()?;
        Ok(Place::Advisory { url: url.as_str().to_owned(), own: Some(own) })
    }

    /// A part of a cluster that others use as well.
    pub(crate) fn etcd(shared: &Etcd) -> Place {
        Place::Etcd { endpoints: shared.endpoints(), prefix: format!("{}/", Uuid::new_v4()), own: None }
    }

    /// A cluster of its own.
    pub(crate) fn own_etcd(cluster: Etcd) -> Place {
        Place::Etcd { endpoints: cluster.endpoints(), prefix: EtcdOptions::PREFIX.to_owned(), own: Some(Mutex::new(cluster)) }
    }

    /// The cluster of a place that has its own.
    pub(crate) fn cluster(&self) -> MutexGuard<'_, Etcd> {
        let Place::Etcd { own: Some(own), .. } = self else { panic!("not an etcd of its own") };
        own.lock().expect("no case panics inside")
    }

    /// To break it, where there is a server and it is this case's own.
    pub(crate) fn server(&self) -> Option<&dyn Server> {
        match self {
            Place::Sqlite { .. } => None,
            Place::Postgres { own, .. } | Place::Advisory { own, .. } => own.as_ref().map(|own| own as &dyn Server),
            Place::Etcd { own, .. } => own.as_ref().map(|own| own as &dyn Server),
            Place::Redis(place) | Place::Redlock(place) => place.server(),
        }
    }

    /// Whether a grant is more than the connection it was asked for over.
    pub(crate) fn outlives_connection(&self) -> bool {
        self.connector().capabilities().outlives_connection
    }

    /// For a child process; see [`Place::from_words`].
    pub(crate) fn words(&self) -> String {
        match self {
            Place::Sqlite { ledger, .. } => ledger.display().to_string(),
            Place::Postgres { url, .. } => url.clone(),
            Place::Advisory { url, .. } => format!("advisory {url}"),
            Place::Etcd { endpoints, prefix, .. } => format!("etcd {} {prefix}", endpoints.join(",")),
            Place::Redis(place) => format!("redis {}", place.words()),
            Place::Redlock(place) => format!("redlock {}", place.words()),
        }
    }

    pub(crate) fn from_words(words: &str) -> Place {
        if let Some(url) = words.strip_prefix("advisory ") {
            return Place::Advisory { url: url.to_owned(), own: None };
        }
        if let Some((endpoints, prefix)) = words.strip_prefix("etcd ").and_then(|words| words.split_once(' ')) {
            let endpoints = endpoints.split(',').map(str::to_owned).collect();
            return Place::Etcd { endpoints, prefix: prefix.to_owned(), own: None };
        }
        if let Some(words) = words.strip_prefix("redis ") {
            return Place::Redis(RedisPlace::from_words(words));
        }
        if let Some(words) = words.strip_prefix("redlock ") {
            return Place::Redlock(RedisPlace::from_words(words));
        }
        match words.starts_with("postgres") {
            true => Place::Postgres { url: words.to_owned(), own: None },
            false => Place::Sqlite { ledger: words.into(), _folder: None },
        }
    }

    pub(crate) fn connector(&self) -> Box<dyn Connector> {
        match self {
            Place::Sqlite { ledger, .. } => Box::new(SqliteConnector::new(ledger)),
            Place::Postgres { url, .. } => Box::new(PostgresConnector::new(url).expect("a URL")),
            // a grant with a longer TTL makes its session last longer
            Place::Advisory { url, .. } => Box::new(PostgresAdvisoryConnector::new(url, super::SHORT).expect("a URL")),
            Place::Etcd { endpoints, prefix, .. } => {
                let options = EtcdOptions { prefix: prefix.clone(), ..EtcdOptions::new(endpoints.clone()) };
                Box::new(EtcdConnector::new(options).expect("options that fit"))
            }
            Place::Redis(place) => place.redis(),
            Place::Redlock(place) => place.redlock(),
        }
    }

    /// A pool of one connection to the ledger itself, taken.
    pub(crate) async fn busy_pool(&self) -> BusyPool {
        match self {
            Place::Sqlite { ledger, .. } => {
                let options = SqliteConnectOptions::new().filename(ledger).create_if_missing(true);
                let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect_with(options).await;
                let pool = pool.expect("a pool");
                let tx = pool.begin_with("BEGIN IMMEDIATE").await.expect("the write lock of the ledger file");
                BusyPool::Sqlite { _tx: tx, _pool: pool }
            }
            Place::Postgres { .. } | Place::Advisory { .. } => {
                let pool = self.postgres_pool().await;
                let tx = pool.begin().await.expect("its connection");
                BusyPool::Postgres { _tx: tx, _pool: pool }
            }
            Place::Etcd { .. } | Place::Redis(_) | Place::Redlock(_) => panic!("no database, no pool"),
        }
    }

    /// One connection to a PostgreSQL.
    pub(crate) async fn postgres_pool(&self) -> PgPool {
        let (Place::Postgres { url, .. } | Place::Advisory { url, .. }) = self else { panic!("not a PostgreSQL") };
        sqlx::postgres::PgPoolOptions::new().max_connections(1).connect(url).await.expect("a pool")
    }

    /// Ends every session that has an advisory lock of two integers, and waits for that.
    pub(crate) async fn end_holding_sessions(&self) {
        const HOLDING: &str = "FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let end = format!("SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 20000)) {HOLDING}");
        assert!(self.postgres_number(&end).await > 0, "nobody holds a lock");
    }

    /// One number, from a PostgreSQL.
    pub(crate) async fn postgres_number(&self, sql: &str) -> i64 {
        let pool = self.postgres_pool().await;
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&pool).await.expect("a number")
    }
}
