//! Combinations that are allowed and need a word: said once, when an instance starts.

use super::{Backend, Config, Guard};
use lease::Capabilities;

impl Config {
    /// What the lock service that was chosen gives.
    pub(crate) fn capabilities(&self) -> Capabilities {
        match self.lease.backend {
            Backend::Database if self.is_on_sqlite() => lease::sqlite::CAPABILITIES,
            Backend::Database => lease::postgres::CAPABILITIES,
            Backend::PostgresAdvisory => lease::postgres_advisory::CAPABILITIES,
            Backend::Etcd => lease::etcd::CAPABILITIES,
            Backend::Redis => lease::redis::CAPABILITIES,
            Backend::Redlock => lease::redlock::CAPABILITIES,
        }
    }

    fn is_on_sqlite(&self) -> bool {
        self.database.url.starts_with("sqlite:")
    }

    /// A sentence each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let lease = &self.lease;
        if self.worker.guard != Guard::Lease {
            let unused = lease.backend != Backend::Database;
            let word = "worker.guard takes no leases: lease.backend is not used";
            return unused.then(|| word.to_owned()).into_iter().collect();
        }
        let mut remarks = Vec::new();
        let mut say = |so: bool, sentence: &str| {
            if so {
                remarks.push(sentence.to_owned());
            }
        };
        let is_remote = matches!(lease.backend, Backend::Etcd | Backend::Redis | Backend::Redlock);
        say(
            is_remote && self.is_on_sqlite(),
            "a ledger in SQLite is on one host: a lock service elsewhere adds an outage, and lease.backend = \"database\" needs none",
        );
        say(
            lease.backend == Backend::Redis && lease.redis.wait_replicas == 0,
            "a Redis that restarts empty, or a replica that is promoted, has forgotten its last leases: two holders, of whom the ledger refuses the older one",
        );
        say(
            lease.backend == Backend::Redis && lease.redis.wait_replicas > 0,
            "lease.redis.wait_replicas makes a lease that is lost in a failover unlikely, not impossible (the ledger refuses the older holder), and nothing is settled while fewer replicas than that are attached",
        );
        say(
            lease.backend == Backend::Redlock,
            "redlock counts on clocks that do not step and on servers that do not restart empty within a TTL; where they do, the ledger refuses the older holder",
        );
        say(
            lease.backend == Backend::Etcd && !lease.ttl_ms.is_multiple_of(1000),
            "etcd counts whole seconds: lease.ttl_ms is rounded up there, and a takeover waits for it",
        );
        say(
            lease.backend == Backend::PostgresAdvisory,
            "an advisory lock ends with its connection: a lost connection is a lost lease, and the unit is acquired anew",
        );
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, guard: Guard, backend: Backend) -> Config {
        let mut config = Config::default();
        config.database.url = url.to_owned();
        config.worker.guard = guard;
        config.lease.backend = backend;
        config
    }

    #[test]
    fn the_default_needs_no_word() {
        for url in ["sqlite:a", "postgres://h/x"] {
            for guard in [Guard::Lease, Guard::RowLock] {
                assert!(config(url, guard, Backend::Database).remarks().is_empty());
            }
        }
    }

    #[test]
    fn what_needs_a_word_gets_one() {
        let postgres = "postgres://h/x";
        for (config, word) in [
            (config(postgres, Guard::RowLock, Backend::Etcd), "not used"),
            (config(postgres, Guard::Lease, Backend::Redis), "forgotten"),
            (config(postgres, Guard::Lease, Backend::Redlock), "clocks"),
            (config(postgres, Guard::Lease, Backend::PostgresAdvisory), "connection"),
        ] {
            let remarks = config.remarks();
            assert!(remarks.len() == 1 && remarks[0].contains(word), "{word}: {remarks:?}");
        }
        assert!(config(postgres, Guard::Lease, Backend::Etcd).remarks().is_empty());
        let mut odd = config("sqlite:a", Guard::Lease, Backend::Etcd);
        odd.lease.ttl_ms = 2_500;
        assert_eq!(odd.remarks().len(), 2);
    }

    #[test]
    fn a_ttl_below_the_services_floor_is_refused() {
        let mut config = config("postgres://h/x", Guard::Lease, Backend::Etcd);
        config.lease.etcd.endpoints = "h:2379".into();
        config.lease.ttl_ms = 1_999;
        let told = config.check().expect_err("too short").to_string();
        assert!(told.contains("lease.ttl_ms is 1999 and must be at least 2000 for etcd"), "{told}");
        config.lease.ttl_ms = 2_000;
        config.check().expect("long enough");
    }
}
