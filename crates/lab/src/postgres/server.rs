//! The running server.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{Binaries, PostgresUrl, cluster::Cluster};
use crate::{
    Error,
    faketime::SteppedClock,
    ports,
    process::{self, Output, Process},
};

/// A cold start takes under a second; a loaded machine may need many.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// A fast shutdown writes a checkpoint.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(20);
/// How long killed processes may take to leave the process table.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// A free port may be taken by somebody else before the server binds it.
const PORT_TRIES: u32 = 5;

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// `fsync = on`: for benchmarks, whose numbers mean nothing without it.
    Real,
    /// `fsync = off`: for tests. A killed server still loses nothing, a dead machine would.
    Off,
}

/// A private server: in a temporary folder, on a free port of 127.0.0.1, trusting everyone
/// there. Dropping it shuts it down and removes the folder, also when a test panics.
#[derive(Debug)]
pub struct Postgres {
    // before the cluster, so that it ends before its folder goes
    process: Process,
    cluster: Cluster,
    port: u16,
    durability: Durability,
    clock: Option<SteppedClock>,
}

impl Postgres {
    /// Finds the programs, creates a cluster and starts it; returns when it answers.
    pub fn start(durability: Durability) -> Result<Self, Error> {
        Self::start_from(Binaries::find()?, durability)
    }

    /// The same with given programs.
    pub fn start_from(binaries: Binaries, durability: Durability) -> Result<Self, Error> {
        Self::start_as(binaries, durability, None)
    }

    /// With a clock that can be set forward while it runs.
    pub fn start_with_clock(durability: Durability, clock: &SteppedClock) -> Result<Self, Error> {
        Self::start_as(Binaries::find()?, durability, Some(clock.clone()))
    }

    fn start_as(binaries: Binaries, durability: Durability, clock: Option<SteppedClock>) -> Result<Self, Error> {
        let cluster = Cluster::create(binaries)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let port = ports::free()?;
            match launch(&cluster, port, durability, clock.as_ref()) {
                Ok(process) => return Ok(Self { process, cluster, port, durability, clock }),
                Err(Error::Ended { output, .. }) if output.contains("could not bind") && tries < PORT_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The database `postgres`, which every cluster has.
    pub fn url(&self) -> PostgresUrl {
        PostgresUrl::new(format!("postgres://postgres@127.0.0.1:{}/postgres", self.port))
    }

    /// Creates an empty database.
    pub fn create_database(&self, name: &str) -> Result<PostgresUrl, Error> {
        self.url().create_database(name)
    }

    /// The id of the server's first process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The programs it runs.
    pub fn binaries(&self) -> &Binaries {
        self.cluster.binaries()
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.cluster.log()
    }

    /// Stops every process of the server where it is: clients wait, nobody is disconnected.
    pub fn freeze(&mut self) -> Result<(), Error> {
        // the first one first, so that it does not start any more
        self.process.freeze()?;
        signal_all(&process::children_of(self.pid()), Signal::STOP);
        Ok(())
    }

    /// Lets a frozen server go on.
    pub fn wake(&mut self) -> Result<(), Error> {
        signal_all(&process::children_of(self.pid()), Signal::CONT);
        self.process.wake()
    }

    /// Kills every process of the server at once, as a power cut would.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.process.freeze()?;
        let children = process::children_of(self.pid());
        signal_all(&children, Signal::KILL);
        self.process.kill()?;
        let deadline = Instant::now() + KILL_LIMIT;
        // a server started again refuses to share memory with one that still lives
        while children.iter().any(|pid| process::is_alive(*pid)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts a killed server again: same port, same data, after crash recovery.
    pub fn start_again(&mut self) -> Result<(), Error> {
        self.process = launch(&self.cluster, self.port, self.durability, self.clock.as_ref())?;
        Ok(())
    }

    /// SIGINT is PostgreSQL's fast shutdown: clients are disconnected, data is written.
    fn shut_down(&mut self) -> Result<(), Error> {
        self.wake()?;
        self.process.interrupt()?;
        self.process.wait(SHUTDOWN_LIMIT).map(drop)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let ended = self.process.ended().is_ok_and(|status| status.is_some());
        if !ended && self.shut_down().is_err() {
            // stuck; its processes must be gone before its folder goes
            let _ = self.kill();
        }
    }
}

fn signal_all(pids: &[u32], signal: Signal) {
    for pid in pids {
        // one that ended meanwhile is as good
        let _ = process::send(*pid, signal);
    }
}

/// `postgres` itself, not `pg_ctl`: the child is the server, and its id is ours to signal.
fn server(cluster: &Cluster, port: u16, durability: Durability) -> Command {
    let on_disk = if durability == Durability::Real { "on" } else { "off" };
    let mut command = cluster.command("postgres");
    command.arg("-D").arg(cluster.data()).arg("-p").arg(port.to_string());
    for setting in [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("unix_socket_directories={}", cluster.home().display()),
        "max_connections=300".to_owned(),
        format!("fsync={on_disk}"),
        format!("full_page_writes={on_disk}"),
    ] {
        command.arg("-c").arg(setting);
    }
    command
}

/// Starts the server and waits until it accepts connections, at most [`READY_LIMIT`].
fn launch(cluster: &Cluster, port: u16, durability: Durability, clock: Option<&SteppedClock>) -> Result<Process, Error> {
    let log = cluster.log();
    let output = Output::Files { stdout: &log, stderr: &log };
    let mut command = server(cluster, port, durability);
    if let Some(clock) = clock {
        clock.give(&mut command)?;
    }
    let mut process = Process::spawn(&mut command, output)?;
    let deadline = Instant::now() + READY_LIMIT;
    while !is_ready(cluster, process.pid()) {
        if let Some(status) = process.ended()? {
            return Err(Error::Ended { program: "postgres".into(), status, output: process::tail(&log) });
        }
        if Instant::now() >= deadline {
            let (program, output) = ("postgres".into(), process::tail(&log));
            return Err(Error::Late { program, state: "ready", limit: READY_LIMIT, output });
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(process)
}

/// The server writes its id into line 1 and its state into line 8 of `postmaster.pid`; the
/// id tells it from what a killed one left. It is what `pg_ctl` waits for.
fn is_ready(cluster: &Cluster, pid: u32) -> bool {
    let file = fs::read_to_string(cluster.data().join("postmaster.pid")).unwrap_or_default();
    let mut lines = file.lines().map(str::trim);
    lines.next() == Some(pid.to_string().as_str()) && lines.nth(6) == Some("ready")
}
