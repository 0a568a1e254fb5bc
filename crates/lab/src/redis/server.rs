//! The running server.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::resp;
use crate::{
    Certificates, Error,
    faketime::SteppedClock,
    ports,
    process::{self, Output, Process},
    programs::{Program, REDIS_SERVER},
};

/// A start takes some tens of milliseconds; a loaded machine may need many.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// A free port may be taken by somebody else before the server binds it.
const PORT_TRIES: u32 = 5;

/// What a server is started with, besides its port and its folder.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// As on its command line, for instance `["--maxmemory", "1mb"]`. Without any, nothing is ever written to disk.
    pub arguments: Vec<String>,
    /// Its wall clock can be set while it runs, by [`Redis::set_clock`]. Needs libfaketime.
    pub own_clock: bool,
    /// A second port that speaks TLS, with certificates made for this server. Needs the program `openssl`.
    pub tls: bool,
}

/// A private server: in a temporary folder, on a free port of 127.0.0.1. Dropping it kills it and removes the folder, also when a
/// test panics.
#[derive(Debug)]
pub struct Redis {
    // before the folder, so that it ends before that goes
    process: Process,
    setup: Setup,
    port: u16,
}

/// What stays when the server is killed and started again.
#[derive(Debug)]
struct Setup {
    home: TempDir,
    arguments: Vec<String>,
    clock: Option<SteppedClock>,
    tls: Option<(u16, Certificates)>,
}

/// Several servers that know nothing of each other.
pub fn fleet(size: usize) -> Result<Vec<Redis>, Error> {
    (0..size).map(|_| Redis::start()).collect()
}

impl Redis {
    /// Finds the program and starts it; returns when it answers.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(Options::default())
    }

    /// The same with arguments, a clock of its own, or TLS.
    pub fn start_with(options: Options) -> Result<Self, Error> {
        let setup = Setup::new(options)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let port = ports::free()?;
            match setup.launch(port) {
                Ok(process) => return Ok(Self { process, setup, port }),
                Err(Error::Ended { output, .. }) if output.contains("Address already in use") && tries < PORT_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Its port, also after it was started again.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// 127.0.0.1 and its port.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The port that speaks TLS and what a client needs there, where [`Options::tls`] asked for it.
    pub fn tls(&self) -> Option<(u16, &Certificates)> {
        self.setup.tls.as_ref().map(|(port, certificates)| (*port, certificates))
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        log(self.setup.home.path())
    }

    /// One command as its default user, on a connection of its own: `["PTTL", "name"]`. An array is answered one element a line,
    /// nothing as `(nil)`.
    pub fn command(&self, words: &[&str]) -> Result<String, Error> {
        let doing = || format!("redis at {}: {}", self.address(), words.join(" "));
        resp::ask(self.address(), words).map_err(|error| Error::io(doing())(error))
    }

    /// Stops the process where it is: clients wait, nobody is disconnected.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.process.freeze()
    }

    /// Lets a frozen server go on.
    pub fn wake(&mut self) -> Result<(), Error> {
        self.process.wake()
    }

    /// Kills the process, as a power cut would.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.process.kill().map(drop)
    }

    /// Starts a killed server again: same port, same arguments; empty, unless the arguments say otherwise.
    pub fn start_again(&mut self) -> Result<(), Error> {
        self.process = self.setup.launch(self.port)?;
        Ok(())
    }

    /// Sets its wall clock off by so much, for instance `"+60s"`.
    ///
    /// # Panics
    /// Without [`Options::own_clock`].
    pub fn set_clock(&self, offset: &str) -> Result<(), Error> {
        self.setup.clock.as_ref().expect("started with a clock of its own").set(offset)
    }
}

impl Setup {
    fn new(options: Options) -> Result<Self, Error> {
        let Options { arguments, own_clock, tls } = options;
        // before anything else is asked of a machine that may have no Redis
        REDIS_SERVER.find()?;
        let home = folder()?;
        let clock = own_clock.then(SteppedClock::new).transpose()?;
        let tls = tls.then(|| Ok((ports::free()?, Certificates::make(home.path())?))).transpose()?;
        Ok(Self { home, arguments, clock, tls })
    }

    fn launch(&self, port: u16) -> Result<Process, Error> {
        let mut command = REDIS_SERVER.command()?;
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]).arg("--dir").arg(self.home.path());
        // nothing on disk; what only tests do; a replica is fed at once
        command.args(["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"]);
        command.args(["--repl-diskless-sync-delay", "0"]);
        if let Some((tls_port, certificates)) = &self.tls {
            command.args(["--tls-port", &tls_port.to_string()]).args(server_arguments(certificates));
        }
        command.args(&self.arguments);
        if let Some(clock) = &self.clock {
            clock.give(&mut command)?;
        }
        ready(REDIS_SERVER, command, self.home.path(), port)
    }
}

/// A folder that is removed when dropped.
pub(super) fn folder() -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix("redis-").tempdir().map_err(Error::io("creating a folder for Redis"))
}

fn log(home: &Path) -> PathBuf {
    home.join("redis.log")
}

/// Starts a server or a sentinel and waits until it answers, at most [`READY_LIMIT`].
pub(super) fn ready(program: Program, mut command: Command, home: &Path, port: u16) -> Result<Process, Error> {
    let log = log(home);
    let mut process = Process::spawn(&mut command, Output::Files { stdout: &log, stderr: &log })?;
    let deadline = Instant::now() + READY_LIMIT;
    while !answers(port) {
        if let Some(status) = process.ended()? {
            return Err(Error::Ended { program: program.name.into(), status, output: process::tail(&log) });
        }
        if Instant::now() >= deadline {
            let output = process::tail(&log);
            return Err(Error::Late { program: program.name.into(), state: "ready", limit: READY_LIMIT, output });
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(process)
}

/// A server with a password answers by asking for it.
fn answers(port: u16) -> bool {
    match resp::ask((Ipv4Addr::LOCALHOST, port).into(), &["PING"]) {
        Ok(answer) => answer == "PONG",
        Err(error) => error.to_string().starts_with("NOAUTH"),
    }
}

/// A client without a certificate is refused.
fn server_arguments(certificates: &Certificates) -> Vec<OsString> {
    let pairs = [
        ("--tls-cert-file", certificates.server_certificate().into()),
        ("--tls-key-file", certificates.server_key().into()),
        ("--tls-ca-cert-file", certificates.authority().into()),
        ("--tls-auth-clients", OsString::from("yes")),
    ];
    pairs.into_iter().flat_map(|(name, value)| [name.into(), value]).collect()
}
