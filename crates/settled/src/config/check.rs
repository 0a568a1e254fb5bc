//! Whether the values of the configuration go together: a sentence for each that does not.

use super::url::shown;
use super::{Config, Database, Guard};
use lease::KeeperSettings;
use serde::Serializer;
use std::time::Duration;
use thiserror::Error;

/// What is wrong with the configuration, and what would be right.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct ConfigError(pub(crate) String);

impl Config {
    /// How the keeper keeps leases.
    pub(crate) fn keeper_settings(&self) -> KeeperSettings {
        let mut settings = KeeperSettings::new(self.ttl());
        if let Some(margin) = self.lease.margin_ms {
            settings.margin = Duration::from_millis(margin);
        }
        settings
    }

    /// Every relation at once, so that nobody has to run it five times.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let mut wrong = Vec::new();
        if let Err(error) = self.keeper_settings().validate() {
            wrong.push(format!("lease.ttl_ms, lease.margin_ms: {error}"));
        }
        let shortest = self.capabilities().shortest_ttl;
        if self.worker.guard == Guard::Lease && self.ttl() < shortest {
            let (name, shortest) = (self.capabilities().name, shortest.as_millis());
            wrong.push(format!("lease.ttl_ms is {} and must be at least {shortest} for {name}", self.lease.ttl_ms));
        }
        let worker = &self.worker;
        for (key, value, least) in [
            ("database.connections", i64::from(self.database.connections), 2),
            ("worker.partitions", i64::from(worker.partitions), 1),
            ("worker.batches_per_transaction", i64::from(worker.batches_per_transaction), 1),
            ("worker.items_per_transaction", worker.items_per_transaction, 1),
            ("worker.max_attempts", i64::from(worker.max_attempts), 1),
            ("serve.idle_poll_ms", i64::try_from(self.serve.idle_poll_ms).unwrap_or(i64::MAX), 100),
            ("worker.poll_ms", i64::try_from(worker.poll_ms).unwrap_or(i64::MAX), 1),
        ] {
            if value < least {
                wrong.push(format!("{key} is {value} and must be at least {least}"));
            }
        }
        if worker.partitions > 4096 {
            wrong.push(format!(
                "worker.partitions is {} and must be at most 4096: each is a lease to look after",
                worker.partitions
            ));
        }
        if self.settle_timeout() >= self.ttl() || self.settle_timeout().is_zero() {
            wrong.push(format!(
                "worker.settle_timeout_ms is {} and must be above 0 and below lease.ttl_ms ({}): a transaction that begins while the lease is good should be able to end within it",
                self.settle_timeout().as_millis(),
                self.lease.ttl_ms
            ));
        }
        if self.idle_timeout() > self.settle_timeout() || self.idle_timeout().is_zero() {
            wrong.push(format!(
                "worker.idle_timeout_ms is {} and must be above 0 and at most worker.settle_timeout_ms ({})",
                self.idle_timeout().as_millis(),
                self.settle_timeout().as_millis()
            ));
        }
        if !["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| self.database.url.starts_with(scheme)) {
            wrong.push("database.url must begin with sqlite: or postgres://".to_owned());
        }
        wrong.extend(self.lease.wrong(&self.database.url));
        if worker.guard == Guard::AdvisoryXact && self.database.url.starts_with("sqlite:") {
            wrong.push(ledger::NO_ADVISORY_LOCKS.to_owned());
        }
        wrong.extend(self.chaos.wrong(&self.environment, worker.guard));
        wrong.extend(self.schedules().err().map(|error| error.0));
        if wrong.is_empty() { Ok(()) } else { Err(ConfigError(wrong.join("; "))) }
    }
}

pub(super) fn without_password<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown(url))
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Database({})", shown(&self.url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::RawSchedule;
    use std::path::Path;

    #[test]
    fn every_wrong_relation_is_told_at_once() {
        let mut config = Config::default();
        config.lease.ttl_ms = 1_000;
        config.worker.settle_timeout_ms = Some(1_000);
        config.worker.partitions = 0;
        let told = config.check().expect_err("two relations are wrong").to_string();
        assert!(told.contains("worker.settle_timeout_ms is 1000"), "{told}");
        assert!(told.contains("worker.partitions is 0"), "{told}");
    }

    #[test]
    fn a_guard_that_an_engine_does_not_have_is_refused() {
        let mut config = Config::default();
        config.worker.guard = Guard::AdvisoryXact;
        let told = config.check().expect_err("the default is SQLite").to_string();
        assert!(told.contains("advisory-xact needs PostgreSQL"), "{told}");
        config.database.url = "postgres://settled@db/ledger".to_owned();
        assert!(config.check().is_ok());
    }

    #[test]
    fn an_error_quotes_no_line_that_may_have_the_password() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bad.toml");
        for text in [
            "url = \"sqlite:a.db\"\nurl = \"postgres://u:s3cr3t@h/x\"",
            "url = \"postgres://u:s3cr3t@h/x",
            "url = \"postgres:u:s3cr3t@h/x\"",
            "connections = \"s3cr3t\"",
            "[lease]\nredis = \"redis://u:s3cr3t@h\"",
            "[lease]\nbackend = \"etcd\"\n[lease.etcd]\nendpoints = [\"u:s3cr3t@h\"]",
        ] {
            std::fs::write(&file, format!("[database]\n{text}\n")).expect("a file");
            let told = format!("{:#}", Config::load(Some(&file)).expect_err("it is broken"));
            assert!(!told.contains("s3cr3t"), "{told}");
            assert!(["line ", "database.", "lease."].iter().any(|place| told.contains(place)), "it says where: {told}");
        }
    }

    #[test]
    fn a_wrong_word_is_told_the_right_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bad.toml");
        for (text, right) in [
            ("[lease]\nbackend = \"zookeeper\"", "postgres-advisory"),
            ("[worker]\nguard = \"mutex\"", "advisory-xact"),
            ("[log]\nformat = \"xml\"", "json"),
        ] {
            std::fs::write(&file, text).expect("a file");
            let told = format!("{:#}", Config::load(Some(&file)).expect_err("no such word"));
            assert!(told.contains(right), "{told}");
        }
    }

    #[test]
    fn a_printed_configuration_has_no_password() {
        let mut config = Config::default();
        config.database.url = "postgres://me:secret@db/ledger".to_owned();
        let printed = toml::to_string(&config).expect("a configuration is TOML");
        assert!(printed.contains("url = \"postgres://me:***@db/ledger\"\n"), "{printed}");
        assert_eq!(format!("{:?}", config.database), "Database(postgres://me:***@db/ledger)");
    }

    #[test]
    fn the_example_shows_every_key_with_its_default() {
        let example = include_str!("../../../../config/settled.toml");
        assert_eq!(toml::from_str::<Config>(example).expect("the example is valid"), Config::default());
        let printed = toml::to_string(&Config::default()).expect("a configuration is TOML");
        for key in printed.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key) {
            assert!(example.contains(&format!("\n{key} = ")), "{key} is missing in config/settled.toml");
        }
    }

    #[test]
    fn the_example_schedule_shows_every_key_with_its_default() {
        let example = include_str!("../../../../config/settled.toml");
        let section = example.split_once("# [schedule.nightly]").expect("a schedule").1;
        let section = section.split("\n\n").next().expect("its end");
        let keys: Vec<&str> =
            section.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| line.contains(" = ")).collect();
        let shown: RawSchedule = toml::from_str(&keys.join("\n")).expect("the schedule is valid");
        let (holidays, sources) = (None, None);
        let defaults = RawSchedule { cron: shown.cron.clone(), zone: shown.zone.clone(), ..RawSchedule::default() };
        assert_eq!(RawSchedule { holidays, sources, ..shown.clone() }, defaults, "every default");
        let printed = toml::to_string(&shown).expect("a schedule is TOML");
        assert_eq!(printed.lines().count(), keys.len(), "every key: {printed}");
        assert!(shown.define("nightly", Path::new("nowhere")).is_err(), "the list of holidays is an example");
        assert!(defaults.define("nightly", Path::new("nowhere")).is_ok());
    }

    #[test]
    fn every_deployment_shape_is_a_configuration() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config");
        let mut schemes = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()) {
            // deny.toml is about the dependencies
            if entry.extension().is_none_or(|ending| ending != "toml") || entry.ends_with("deny.toml") {
                continue;
            }
            let text = std::fs::read_to_string(&entry).expect("a file");
            let config: Config = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", entry.display()));
            config.check().unwrap_or_else(|error| panic!("{}: {error}", entry.display()));
            schemes.extend(config.database.url.split_once(':').map(|(scheme, _)| scheme.to_owned()));
        }
        let of = |engine: &str| schemes.iter().filter(|scheme| *scheme == engine).count();
        assert!(of("postgres") >= 4 && of("sqlite") >= 2, "a shape for each engine, guard and service: {schemes:?}");
    }
}
