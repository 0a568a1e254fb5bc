//! A primary, its replica, and one sentinel that promotes the replica when the primary is gone.

use std::{
    fs,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    resp,
    server::{self, Options, Redis},
};
use crate::{Error, ports, process::Process, programs::REDIS_SENTINEL};

/// The name under which the sentinel knows the primary.
pub const PRIMARY_NAME: &str = "settled";

/// A failover takes a few seconds; a loaded machine needs longer.
const LIMIT: Duration = Duration::from_secs(60);
const PORT_TRIES: u32 = 5;

/// One sentinel is its own majority: the trio shows what a failover does to clients, not how sentinels agree.
#[derive(Debug)]
pub struct Trio {
    sentinel: Process,
    sentinel_port: u16,
    /// The primary at first.
    pub first: Redis,
    /// Its replica at first.
    pub second: Redis,
    _home: TempDir,
}

impl Trio {
    /// Starts the three; returns when the replica follows and the sentinel knows it.
    pub fn start() -> Result<Self, Error> {
        let first = Redis::start_with(Options { arguments: arguments(None), ..Options::default() })?;
        let second = Redis::start_with(Options { arguments: arguments(Some(first.port())), ..Options::default() })?;
        // before the sentinel looks for the first time: the second time is ten seconds later
        wait("a replica that follows", || Ok(second.command(&["INFO", "replication"])?.contains("master_link_status:up")))?;
        let home = server::folder()?;
        let (sentinel, sentinel_port) = sentinel(&home, first.port())?;
        let trio = Self { sentinel, sentinel_port, first, second, _home: home };
        wait("a replica that the sentinel knows", || {
            Ok(trio.ask_sentinel(&["SENTINEL", "REPLICAS", PRIMARY_NAME])?.contains("master-link-status\nok"))
        })?;
        Ok(trio)
    }

    /// Where clients ask who is the primary.
    pub fn sentinel_address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.sentinel_port).into()
    }

    /// The id of the sentinel's process.
    pub fn sentinel_pid(&self) -> u32 {
        self.sentinel.pid()
    }

    /// The port of the primary, as the sentinel sees it.
    pub fn primary_port(&self) -> Result<u16, Error> {
        let answer = self.ask_sentinel(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY_NAME])?;
        Ok(answer.lines().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0))
    }

    /// Has the second server promoted while the first is well, and the first demoted. Its clients stay connected to it.
    ///
    /// The sentinel demotes only what still says after ten seconds that it is a primary, and disconnects its clients: here it is told
    /// at once, and by hand.
    pub fn fail_over(&self) -> Result<(), Error> {
        self.ask_sentinel(&["SENTINEL", "FAILOVER", PRIMARY_NAME])?;
        self.wait_for_second()?;
        self.first.command(&["REPLICAOF", "127.0.0.1", &self.second.port().to_string()])?;
        wait("a primary that was demoted", || Ok(self.first.command(&["INFO", "replication"])?.contains("master_link_status:up")))
    }

    /// Waits until the sentinel names the second server, and it thinks so too.
    pub fn wait_for_second(&self) -> Result<(), Error> {
        wait("a replica that was promoted", || {
            Ok(self.primary_port()? == self.second.port() && self.second.command(&["ROLE"])?.starts_with("master"))
        })
    }

    /// From now on the second server learns nothing new from the first, and the sentinel does not mind.
    pub fn stop_replication(&self) -> Result<(), Error> {
        self.first.command(&["ACL", "SETUSER", "replication", "off"])?;
        self.first.command(&["CLIENT", "KILL", "TYPE", "replica"])?;
        wait("a replica without its primary", || Ok(self.first.command(&["INFO", "replication"])?.contains("connected_slaves:0")))
    }

    fn ask_sentinel(&self, words: &[&str]) -> Result<String, Error> {
        resp::ask(self.sentinel_address(), words).map_err(Error::io(format!("the sentinel: {}", words.join(" "))))
    }
}

/// The servers follow each other as a user of its own, which can be switched off.
fn arguments(primary: Option<u16>) -> Vec<String> {
    let mut arguments = vec![
        "--user replication on >secret +psync +replconf +ping".to_owned(),
        "--masteruser replication".to_owned(),
        "--masterauth secret".to_owned(),
    ];
    arguments.extend(primary.map(|port| format!("--replicaof 127.0.0.1 {port}")));
    arguments.iter().flat_map(|line| line.split(' ')).map(str::to_owned).collect()
}

fn sentinel(home: &TempDir, primary: u16) -> Result<(Process, u16), Error> {
    let file = home.path().join("sentinel.conf");
    let mut tries = 0;
    loop {
        tries += 1;
        let port = ports::free()?;
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {PRIMARY_NAME} 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds {PRIMARY_NAME} 500\nsentinel failover-timeout {PRIMARY_NAME} 2000\n",
            home.path().display()
        );
        fs::write(&file, text).map_err(Error::io("writing the sentinel's configuration"))?;
        let mut command = REDIS_SENTINEL.command()?;
        command.arg(&file);
        match server::ready(REDIS_SENTINEL, command, home.path(), port) {
            Ok(process) => return Ok((process, port)),
            Err(Error::Ended { output, .. }) if output.contains("Address already in use") && tries < PORT_TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

fn wait(state: &'static str, mut so: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let deadline = Instant::now() + LIMIT;
    // a server that is just changing its role may refuse a question
    while !so().unwrap_or(false) {
        if Instant::now() >= deadline {
            return Err(Error::Late { program: "redis-sentinel".into(), state, limit: LIMIT, output: String::new() });
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
