//! The locks that a deployment can choose from, each with real servers behind it, and the stories that are told over all of them.

use crate::world::{Engine, World, nightly};
use lab::Error;
use lab::etcd::Etcd;
use lab::redis::{Redis, fleet};
use lab::trials::Suite;
use std::any::Any;

pub(crate) fn add(suite: Suite) -> Suite {
    suite.plain("advisory-xact is refused on SQLite, and told what to take", refused_on_sqlite)
}

fn refused_on_sqlite() {
    let world = World::sqlite().with(&[("SETTLED__WORKER__GUARD", "advisory-xact")]);
    let (code, _, err) = world.settled(&["run", "--json"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("advisory-xact needs PostgreSQL") && err.contains("take lease or row-lock"), "{err}");
    assert!(!std::path::Path::new(world.url().trim_start_matches("sqlite:")).exists(), "and nothing is made");
}

/// What keeps instances apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Leases in the ledger's own database.
    Database,
    Session,
    Etcd,
    Redis,
    Redlock,
    /// No leases.
    Rows,
    /// No leases.
    Xact,
}

/// Settings, and what must live as long as they are used.
pub(crate) type Served = (Vec<(&'static str, String)>, Box<dyn Any>);

impl Lock {
    /// Every combination that a configuration allows and that makes sense.
    const MATRIX: [(Engine, Lock); 10] = [
        (Engine::Sqlite, Lock::Database),
        (Engine::Sqlite, Lock::Redis),
        (Engine::Sqlite, Lock::Rows),
        (Engine::Postgres, Lock::Database),
        (Engine::Postgres, Lock::Session),
        (Engine::Postgres, Lock::Etcd),
        (Engine::Postgres, Lock::Redis),
        (Engine::Postgres, Lock::Redlock),
        (Engine::Postgres, Lock::Rows),
        (Engine::Postgres, Lock::Xact),
    ];

    pub(crate) fn has_leases(self) -> bool {
        !matches!(self, Lock::Rows | Lock::Xact)
    }

    /// Starts what it needs.
    pub(crate) fn serve(self) -> Result<Served, Error> {
        let backend = |word: &str| ("SETTLED__LEASE__BACKEND", word.to_owned());
        let guard = |word: &str| ("SETTLED__WORKER__GUARD", word.to_owned());
        Ok(match self {
            Lock::Database => (vec![], Box::new(())),
            Lock::Session => (vec![backend("postgres-advisory")], Box::new(())),
            Lock::Rows => (vec![guard("row-lock")], Box::new(())),
            Lock::Xact => (vec![guard("advisory-xact")], Box::new(())),
            Lock::Etcd => {
                let etcd = Etcd::start()?;
                (on_etcd(&etcd), Box::new(etcd))
            }
            Lock::Redis => {
                let redis = Redis::start()?;
                (vec![backend("redis"), ("SETTLED__LEASE__REDIS__URL", url(&redis))], Box::new(redis))
            }
            Lock::Redlock => {
                let servers = fleet(5)?;
                (on_fleet(&servers), Box::new(servers))
            }
        })
    }
}

pub(crate) fn on_etcd(etcd: &Etcd) -> Vec<(&'static str, String)> {
    vec![("SETTLED__LEASE__BACKEND", "etcd".to_owned()), ("SETTLED__LEASE__ETCD__ENDPOINTS", etcd.endpoints().join(","))]
}

pub(crate) fn url(redis: &Redis) -> String {
    format!("redis://{}", redis.address())
}

pub(crate) fn on_fleet(servers: &[Redis]) -> Vec<(&'static str, String)> {
    let urls: Vec<_> = servers.iter().map(url).collect();
    vec![("SETTLED__LEASE__BACKEND", "redlock".to_owned()), ("SETTLED__LEASE__REDLOCK__URLS", urls.join(","))]
}

/// Whether a story over this lock is told today: by night all are, by day those over leases in the ledger's own database, and the
/// others where the story `counts`.
pub(crate) fn is_told(lock: Lock, counts: bool) -> bool {
    nightly() || counts || lock == Lock::Database
}

/// Adds the same story over every lock that is wanted.
pub(crate) fn on_every_lock(
    mut suite: Suite,
    name: &str,
    wanted: impl Fn(Lock) -> bool,
    story: impl Fn(&World, Engine, Lock) + Send + Clone + 'static,
) -> Suite {
    for (engine, lock) in Lock::MATRIX.into_iter().filter(|(_, lock)| wanted(*lock)) {
        let story = story.clone();
        let word = |engine: &str| match lock {
            Lock::Database => format!("{name} ({engine})"),
            other => format!("{name} ({engine}, {other:?})"),
        };
        suite = match engine {
            Engine::Sqlite => suite.plain(&word("sqlite"), move || told(World::sqlite(), engine, lock, story)),
            Engine::Postgres => {
                suite.with_postgres(&word("postgres"), move |url| told(World::postgres(url), engine, lock, story))
            }
        };
    }
    suite
}

fn told(world: World, engine: Engine, lock: Lock, story: impl Fn(&World, Engine, Lock)) -> Result<(), Error> {
    let (settings, _servers) = lock.serve()?;
    story(&world.having(settings), engine, lock);
    Ok(())
}
