//! One ledger and the program, as a deployment would have them.

use chrono::NaiveDate;
use lab::Error;
use lab::postgres::PostgresUrl;
use lab::process::{Output, Process};
use lab::trials::Suite;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes longer on a busy machine.
fn patience() -> Duration {
    Duration::from_secs(wider(120).into())
}

/// The time to live of leases in these tests.
pub(crate) const TTL_MS: u64 = 2_000;

/// Whether there is time for more than a developer waits for: `cargo xtask nightly`.
pub(crate) fn nightly() -> bool {
    std::env::var_os("SETTLED_NIGHTLY").is_some()
}

/// So many, or ten times as many by night.
pub(crate) fn wider(n: u32) -> u32 {
    if nightly() { n * 10 } else { n }
}

/// Waits until `done` says so.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < patience(), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A ledger of its own, in an SQLite file or a PostgreSQL database.
pub(crate) struct World {
    folder: TempDir,
    url: String,
    settings: Vec<(&'static str, String)>,
}

/// The engines every story is told on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// Adds the same story on both engines.
pub(crate) fn on_both(suite: Suite, name: &str, story: impl Fn(&World, Engine) + Send + Clone + 'static) -> Suite {
    let on_postgres = story.clone();
    suite
        .plain(&format!("{name} (sqlite)"), move || story(&World::sqlite(), Engine::Sqlite))
        .with_postgres(&format!("{name} (postgres)"), move |url: &PostgresUrl| {
            on_postgres(&World::postgres(url), Engine::Postgres)
        })
}

impl World {
    pub(crate) fn sqlite() -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let url = format!("sqlite:{}", folder.path().join("settled.db").display());
        World { folder, url, settings: Vec::new() }
    }

    pub(crate) fn postgres(url: &PostgresUrl) -> World {
        World { folder: tempfile::tempdir().expect("a temporary folder"), url: url.to_string(), settings: Vec::new() }
    }

    /// The same ledger, worked with other settings.
    pub(crate) fn with(&self, settings: &[(&'static str, &str)]) -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = settings.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        World { folder, url: self.url.clone(), settings }
    }

    /// This ledger, worked with these settings, whatever else is said later with [`World::with_more`].
    pub(crate) fn having(self, settings: Vec<(&'static str, String)>) -> World {
        World { settings, ..self }
    }

    /// The same with more settings.
    pub(crate) fn with_more(&self, settings: &[(&'static str, &str)]) -> World {
        let mut world = self.with(settings);
        world.settings.splice(0..0, self.settings.iter().cloned());
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file in a temporary folder");
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_settled"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("SETTLED__DATABASE__URL", &self.url);
        command.env("SETTLED__LEASE__TTL_MS", TTL_MS.to_string());
        command.env("SETTLED__LOG__FORMAT", "json").env("SETTLED__LOG__LEVEL", "info");
        self.settings.iter().for_each(|(key, value)| {
            command.env(key, value);
        });
        command
    }

    /// Runs the program to its end: exit code, standard output, standard error.
    pub(crate) fn settled(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// Runs it, expects exit code 0 and JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let (code, out, err) = self.settled(arguments);
        assert_eq!(code, 0, "settled {arguments:?}: {out}{err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("settled {arguments:?}: {error}: {out}{err}"))
    }

    pub(crate) fn import(&self, file: &Path, profile: &str) -> Value {
        self.json(&["import", file.to_str().expect("UTF-8"), "--profile", profile, "--json"])
    }

    /// Imports invented batches of so many items each, all due.
    pub(crate) fn import_sample(&self, batches: u32, items: u32) -> Value {
        let day = NaiveDate::from_ymd_opt(2026, 1, 5).expect("a date");
        let file = self.file("sample.csv", intake::sample::canonical(batches, items, day, 11));
        self.import(&file, "canonical-csv")
    }

    /// Starts an instance; its output goes to files.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Instance {
        self.start_command(name, &mut self.command(arguments))
    }

    /// The same with a command that was changed.
    pub(crate) fn start_command(&self, name: &str, command: &mut Command) -> Instance {
        let (out, log) = (self.path(&format!("{name}.json")), self.path(&format!("{name}.log")));
        // an earlier instance of that name wrote there, and output is appended
        for file in [&out, &log] {
            let _ = std::fs::remove_file(file);
        }
        let process = Process::spawn(command, Output::Files { stdout: &out, stderr: &log });
        Instance { process: process.expect("the program starts"), out, log }
    }

    /// The books hold and every one of `batches` is settled once.
    pub(crate) fn assert_all_settled(&self, batches: u64) -> Value {
        let report = self.json(&["verify", "--json"]);
        assert_eq!(report["ok"], true, "{report}");
        assert_eq!(report["batches"], serde_json::json!({ "settled": batches }), "{report}");
        report
    }

    /// How many batches are settled so far.
    pub(crate) fn settled_batches(&self) -> u64 {
        self.json(&["status", "--json"])["batches"]["settled"].as_u64().unwrap_or(0)
    }

    /// Writes that the ledger refused, as (operation, unit).
    pub(crate) fn rejections(&self) -> Vec<String> {
        let listing = self.json(&["fence", "list", "--json"]);
        let rows = listing["rejections"].as_array().expect("a list").iter();
        rows.map(|row| row["operation"].as_str().expect("a word").to_owned()).collect()
    }
}

/// A running instance.
pub(crate) struct Instance {
    pub(crate) process: Process,
    out: PathBuf,
    log: PathBuf,
}

impl Instance {
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The events of its log.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for an event whose message contains `words`.
    pub(crate) fn wait_for(&self, words: &str) -> Value {
        let begun = Instant::now();
        loop {
            let says = |event: &Value| event["message"].as_str().is_some_and(|message| message.contains(words));
            if let Some(event) = self.events().into_iter().find(says) {
                return event;
            }
            assert!(begun.elapsed() < patience(), "no {words:?} in {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn wait_stopped(&mut self) {
        self.process.wait_stopped(patience()).unwrap_or_else(|error| panic!("{error}: {}", self.log()));
    }

    /// Waits for its end: exit code (−1: a signal) and what it printed.
    pub(crate) fn end(&mut self) -> (i32, Value) {
        let status = self.process.wait(patience()).unwrap_or_else(|error: Error| panic!("{error}: {}", self.log()));
        let out = std::fs::read_to_string(&self.out).unwrap_or_default();
        (status.code().unwrap_or(-1), serde_json::from_str(&out).unwrap_or(Value::Null))
    }

    /// Waits for its end and exit code 0; what it printed, if anything, is not JSON.
    pub(crate) fn end_quietly(&mut self) {
        assert_eq!(self.end().0, 0, "{}", self.log());
    }

    /// Waits for its end, expects exit code 0.
    pub(crate) fn end_well(&mut self) -> Value {
        let (code, out) = self.end();
        assert_eq!(code, 0, "{out} {}", self.log());
        out
    }
}

/// A number of a JSON report.
pub(crate) fn number(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("{key} in {report}"))
}
