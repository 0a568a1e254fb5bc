//! This test binary, started again as another process: to be frozen, or to have a wrong clock.

use super::place::Place;
use super::{name, pause, run, someone};
use lab::process::{Output, Process};
use lease::{BootClock, Clock, Keeper, KeeperSettings};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, ExitCode};
use std::time::Duration;

const TASK: &str = "LEASE_TEST_TASK";
const PLACE: &str = "LEASE_TEST_PLACE";
const TTL_MS: &str = "LEASE_TEST_TTL_MS";

/// What the child does. It answers in lines.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// Acquires, then looks at its lease without pause; says what it sees first after it was frozen.
    HoldUntilLost { ttl: Duration },
    /// Tries once; keeps what it gets until it is killed.
    TryOnce { ttl: Duration },
    /// Opens the lock service and looks, once the file [`go_file`] is there: all children at the same instant.
    Look,
}

/// Killed when dropped.
pub(crate) struct Child {
    pub(crate) process: Process,
    lines: BufReader<ChildStdout>,
}

impl Child {
    pub(crate) fn start(place: &Place, task: Task) -> Child {
        Self::spawn(&mut Self::command(place, task))
    }

    pub(crate) fn command(place: &Place, task: Task) -> Command {
        let (word, ttl) = match task {
            Task::HoldUntilLost { ttl } => ("hold", ttl),
            Task::TryOnce { ttl } => ("try", ttl),
            Task::Look => ("look", Duration::from_secs(60)),
        };
        // the running file itself, whatever cargo has put in its place meanwhile
        let mut command = Command::new("/proc/self/exe");
        command.env(TASK, word).env(PLACE, place.words()).env(TTL_MS, ttl.as_millis().to_string());
        command
    }

    pub(crate) fn spawn(command: &mut Command) -> Child {
        let mut process = Process::spawn(command, Output::Piped).expect("a child");
        let lines = BufReader::new(process.child().stdout.take().expect("its output"));
        Child { process, lines }
    }

    /// Its next line.
    pub(crate) fn says(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("its output");
        line.trim_end().to_owned()
    }
}

/// The starting gun of [`Task::Look`].
pub(crate) fn go_file(place: &Place) -> PathBuf {
    PathBuf::from(format!("{}-go", place.words()))
}

/// Does the task, when this process is a child.
pub(crate) fn asked() -> Option<ExitCode> {
    let task = std::env::var(TASK).ok()?;
    let place = Place::from_words(&std::env::var(PLACE).expect("a place"));
    let ttl = Duration::from_millis(std::env::var(TTL_MS).expect("a TTL").parse().expect("a number"));
    let keeper = Keeper::start(place.connector(), someone(), KeeperSettings::new(ttl)).expect("a keeper");
    match task.as_str() {
        "hold" => hold(&keeper, ttl),
        "try" => run(async {
            match keeper.try_acquire(&name()).await.expect("an answer") {
                Some(_lease) => {
                    say("granted");
                    pause(600_000).await;
                }
                None => say("held by another"),
            }
        }),
        "look" => run(async {
            say("ready");
            while !go_file(&place).exists() {
                pause(1).await;
            }
            say(&format!("{:?}", keeper.inspect("").await.map(|rows| rows.len())))
        }),
        other => panic!("{TASK}={other}"),
    }
    Some(ExitCode::SUCCESS)
}

fn hold(keeper: &Keeper, ttl: Duration) {
    let lease = run(async { keeper.try_acquire(&name()).await }).expect("an answer").expect("free");
    // read before the parent is told: it may freeze us at once
    let start = BootClock.now();
    let mut last = start;
    say("held");
    let seen = loop {
        let now = BootClock.now();
        assert!(start.until(now) < ttl * 30, "never frozen");
        let seen = lease.check();
        if last.until(now) > ttl / 2 {
            break seen;
        }
        last = now;
    };
    say(&format!("first look after waking: {}", if seen.is_err() { "lost" } else { "still believes" }));
    let release = run(lease.release());
    say(&format!("release: {release:?}"));
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("a parent that listens");
}
