//! The configuration: one struct per section, every key with its default, unknown keys refused.
//!
//! A file (TOML), then `SETTLED__SECTION__KEY`, then the command line. `config/settled.toml` shows every key; a test holds it
//! to the defaults here.

mod chaos;
mod check;
mod locks;
mod remarks;
mod secret;
mod url;

use anyhow::Context;
use scheduler::RawSchedule;
use scheduler::definition::Definition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use self::chaos::Chaos;
pub(crate) use check::ConfigError;
pub(crate) use locks::{Backend, Lease, Tls};
pub(crate) use url::SecretUrl;

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Which one this is: in production, chaos must be asked for in words.
    pub(crate) environment: String,
    pub(crate) database: Database,
    pub(crate) lease: Lease,
    pub(crate) worker: Worker,
    pub(crate) run: Run,
    pub(crate) serve: Serve,
    pub(crate) admin: Admin,
    pub(crate) log: Log,
    pub(crate) chaos: Chaos,
    /// By name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) schedule: BTreeMap<String, RawSchedule>,
    /// Where relative paths in it begin: beside the file, or where the process started.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

/// The ledger.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Database {
    /// May carry a password: never printed whole.
    #[serde(serialize_with = "check::without_password")]
    pub(crate) url: String,
    pub(crate) connections: u32,
    pub(crate) migrate: bool,
}

/// How batches are worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Worker {
    pub(crate) guard: Guard,
    pub(crate) partitions: i32,
    pub(crate) batches_per_transaction: u32,
    pub(crate) items_per_transaction: i64,
    pub(crate) max_attempts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) settle_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) poll_ms: u64,
}

/// The words of `worker.guard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Guard {
    Lease,
    RowLock,
    AdvisoryXact,
}

/// Runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) zone: chrono_tz::Tz,
}

/// Serving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Serve {
    pub(crate) idle_poll_ms: u64,
}

/// The admin endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    pub(crate) listen: SocketAddr,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) format: LogFormat,
    pub(crate) level: String,
}

/// The words of `log.format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            environment: chaos::PRODUCTION.to_owned(),
            database: Database::default(),
            lease: Lease::default(),
            worker: Worker::default(),
            run: Run::default(),
            serve: Serve::default(),
            admin: Admin::default(),
            log: Log::default(),
            chaos: Chaos::default(),
            schedule: BTreeMap::new(),
            folder: PathBuf::new(),
        }
    }
}

impl Default for Database {
    fn default() -> Self {
        Database { url: "sqlite:settled.db".to_owned(), connections: 4, migrate: true }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Worker {
            guard: Guard::Lease,
            partitions: 16,
            batches_per_transaction: 100,
            items_per_transaction: 50_000,
            max_attempts: 5,
            settle_timeout_ms: None,
            idle_timeout_ms: None,
            poll_ms: 500,
        }
    }
}

impl Default for Run {
    fn default() -> Self {
        Run { zone: chrono_tz::Tz::UTC }
    }
}

impl Default for Serve {
    fn default() -> Self {
        Serve { idle_poll_ms: 5_000 }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Admin { listen: SocketAddr::from(([127, 0, 0, 1], 9464)) }
    }
}

impl Default for Log {
    fn default() -> Self {
        Log { format: LogFormat::Text, level: "warn".to_owned() }
    }
}

impl Config {
    /// Reads file and environment, and checks that the values go together.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Config> {
        let mut builder = config::Config::builder();
        if let Some(file) = file {
            builder = builder.add_source(config::File::from(file).format(config::FileFormat::Toml));
        }
        let environment = config::Environment::with_prefix("SETTLED").prefix_separator("__").separator("__").try_parsing(true);
        let read = || -> Result<Config, config::ConfigError> { builder.add_source(environment).build()?.try_deserialize() };
        let mut config = read().map_err(|error| ConfigError(without_excerpt(&error.to_string()))).with_context(|| {
            format!("the configuration{} cannot be read", file.map(|file| format!(" {}", file.display())).unwrap_or_default())
        })?;
        config.take_raw_secrets();
        config.folder = file.and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
        config.check()?;
        Ok(config)
    }

    /// The environment's words become numbers where they look like some, and a password of digits would lose its zeros.
    fn take_raw_secrets(&mut self) {
        if let Ok(password) = std::env::var("SETTLED__LEASE__ETCD__PASSWORD") {
            self.lease.etcd.password = password.into();
        }
        if let Ok(user) = std::env::var("SETTLED__LEASE__ETCD__USER") {
            self.lease.etcd.user = user;
        }
    }

    /// The schedules, checked, with their holidays read. In order of name.
    pub(crate) fn schedules(&self) -> Result<Vec<Definition>, ConfigError> {
        let defined = self.schedule.iter().map(|(name, schedule)| schedule.define(name, &self.folder));
        let (good, wrong): (Vec<_>, Vec<_>) = defined.partition(Result::is_ok);
        let sentences: Vec<String> = wrong.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        if sentences.is_empty() { Ok(good.into_iter().flatten().collect()) } else { Err(ConfigError(sentences.join("; "))) }
    }

    /// The lease's time to live.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_millis(self.lease.ttl_ms)
    }

    /// Longest settle transaction.
    pub(crate) fn settle_timeout(&self) -> Duration {
        self.worker.settle_timeout_ms.map_or(self.ttl() / 2, Duration::from_millis)
    }

    /// Longest pause inside a transaction.
    pub(crate) fn idle_timeout(&self) -> Duration {
        self.worker.idle_timeout_ms.map_or(self.ttl() / 4, Duration::from_millis)
    }
}

/// The words there are, where one was wrong. A fault of chaos mode has a number in its key, so it is known by its type.
fn with_the_right_words(told: String) -> String {
    let steps = domain::step::Step::ALL.map(|step| step.to_string()).join(", ");
    let words = [
        ("lease.backend", "lease.backend", "database, postgres-advisory, etcd, redis or redlock"),
        ("worker.guard", "worker.guard", "lease, row-lock or advisory-xact"),
        ("log.format", "log.format", "text or json"),
        ("enum Word", "chaos.fault.what", "freeze, kill, delay or cut"),
        ("enum Step", "chaos.fault.step", &steps),
    ];
    match words.iter().find(|(mark, ..)| told.contains("variant") && told.contains(mark)) {
        Some((_, key, words)) => format!("{told}; {key} is one of {words}"),
        None => told,
    }
}

/// An error of the parser without what it quotes: one of those lines, or a value in the wrong place, may be the password.
fn without_excerpt(error: &str) -> String {
    let quotes = |line: &&str| !line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with('|');
    let told = error.lines().filter(quotes).collect::<Vec<_>>().join(" ");
    let told = with_the_right_words(told);
    match (told.find("string \""), told.rfind("\", expected")) {
        (Some(begin), Some(end)) if begin + "string \"".len() <= end => format!("{}string \"***{}", &told[..begin], &told[end..]),
        _ => told,
    }
}
