//! `[lease]`: which lock service keeps the leases of units, and how it is reached.

use super::secret::{Secret, Urls};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Leases of units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Lease {
    pub(crate) backend: Backend,
    pub(crate) ttl_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) margin_ms: Option<u64>,
    pub(crate) etcd: Etcd,
    pub(crate) redis: Redis,
    pub(crate) redlock: Redlock,
    pub(crate) tls: Tls,
}

/// The words of `lease.backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Backend {
    /// Rows of the ledger's own database, or of a file beside it.
    Database,
    PostgresAdvisory,
    Etcd,
    Redis,
    Redlock,
}

/// An etcd cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Etcd {
    /// With commas between them, as etcdctl has it: a variable of the environment can be no list.
    pub(crate) endpoints: Urls,
    pub(crate) prefix: String,
    pub(crate) user: String,
    pub(crate) password: Secret,
}

/// One Redis, or a primary that Sentinel knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Redis {
    /// May carry a password. With sentinels its host is the name under which they know the primary.
    pub(crate) url: Urls,
    /// With commas between them.
    pub(crate) sentinels: Urls,
    pub(crate) wait_replicas: u32,
    pub(crate) prefix: String,
}

/// Independent Redis servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Redlock {
    /// With commas between them; each may carry a password.
    pub(crate) urls: Urls,
    pub(crate) prefix: String,
}

/// Certificates for the lock service, where the system's own are not enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) certificate_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_file: Option<PathBuf>,
}

impl Default for Lease {
    fn default() -> Self {
        Lease {
            backend: Backend::Database,
            ttl_ms: 30_000,
            margin_ms: None,
            etcd: Etcd::default(),
            redis: Redis::default(),
            redlock: Redlock::default(),
            tls: Tls::default(),
        }
    }
}

impl Default for Etcd {
    fn default() -> Self {
        Etcd {
            endpoints: Urls::default(),
            prefix: lease::EtcdOptions::PREFIX.to_owned(),
            user: String::new(),
            password: Secret::default(),
        }
    }
}

impl Default for Redis {
    fn default() -> Self {
        Redis {
            url: Urls::default(),
            sentinels: Urls::default(),
            wait_replicas: 0,
            prefix: lease::RedisOptions::PREFIX.to_owned(),
        }
    }
}

impl Default for Redlock {
    fn default() -> Self {
        Redlock { urls: Urls::default(), prefix: lease::RedisOptions::PREFIX.to_owned() }
    }
}

/// What is between the commas.
pub(super) fn listed(words: &str) -> Vec<String> {
    words.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Lease {
    /// What is missing or too much for the service that was chosen, a sentence each.
    pub(super) fn wrong(&self, database: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut must = |so: bool, sentence: &str| {
            if !so {
                wrong.push(sentence.to_owned());
            }
        };
        match self.backend {
            Backend::Database => {}
            Backend::PostgresAdvisory => {
                must(database.starts_with("postgres"), "lease.backend = \"postgres-advisory\" needs a ledger in PostgreSQL");
            }
            Backend::Etcd => {
                let etcd = &self.etcd;
                must(!etcd.endpoints.list().is_empty(), "lease.etcd.endpoints must name at least one member, as host:port");
                must(etcd.user.is_empty() == etcd.password.is_empty(), "lease.etcd.user and lease.etcd.password go together");
            }
            Backend::Redis => {
                let one = self.redis.url.list().len() == 1;
                must(
                    one,
                    "lease.redis.url must be given, and be one address; several independent servers are lease.backend = \"redlock\"",
                );
            }
            Backend::Redlock => {
                let urls = self.redlock.urls.list();
                let several = urls.len() >= 3 && urls.len() % 2 == 1;
                must(several, "lease.redlock.urls must name an odd number of independent servers, three or more");
                let different: std::collections::BTreeSet<_> = urls.iter().collect();
                must(different.len() == urls.len(), "lease.redlock.urls names a server twice");
            }
        }
        let tls = &self.tls;
        must(
            tls.certificate_file.is_some() == tls.key_file.is_some(),
            "lease.tls.certificate_file and lease.tls.key_file go together",
        );
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTGRES: &str = "postgres://h/x";

    fn lease(backend: Backend) -> Lease {
        Lease { backend, ..Lease::default() }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(Lease::default().wrong("sqlite:a"), Vec::<String>::new());
        assert!(lease(Backend::PostgresAdvisory).wrong(POSTGRES).is_empty());
        for (lease, database, key) in [
            (lease(Backend::PostgresAdvisory), "sqlite:a", "PostgreSQL"),
            (lease(Backend::Etcd), POSTGRES, "lease.etcd.endpoints"),
            (lease(Backend::Redis), POSTGRES, "lease.redis.url"),
            (lease(Backend::Redlock), POSTGRES, "lease.redlock.urls"),
        ] {
            let wrong = lease.wrong(database);
            assert!(wrong.len() == 1 && wrong[0].contains(key), "{key}: {wrong:?}");
        }
    }

    #[test]
    fn redlock_is_of_different_servers_in_odd_numbers() {
        let of =
            |urls: &str| Lease { redlock: Redlock { urls: Urls::from(urls), ..Redlock::default() }, ..lease(Backend::Redlock) };
        assert!(of("redis://a, redis://b, redis://c").wrong(POSTGRES).is_empty());
        for urls in
            ["redis://a", "redis://a,redis://b", "redis://a,redis://b,redis://c,redis://d", "redis://a,redis://b,redis://a"]
        {
            assert_eq!(of(urls).wrong(POSTGRES).len(), 1, "{urls}");
        }
    }

    #[test]
    fn redis_is_one_address() {
        let of = |url: &str| {
            Lease { redis: Redis { url: Urls::from(url), ..Redis::default() }, ..lease(Backend::Redis) }.wrong(POSTGRES)
        };
        assert!(of("redis://a").is_empty());
        assert_eq!((of("").len(), of("redis://a,redis://b").len()), (1, 1));
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let tls = Tls { certificate_file: Some("c.pem".into()), ..Tls::default() };
        assert_eq!(Lease { tls, ..Lease::default() }.wrong(POSTGRES).len(), 1);
    }
}
