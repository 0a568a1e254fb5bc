//! The cluster, and what happens to its members.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::member::{Member, Place, Shape};
use crate::{Certificates, Error, ports, process};

/// A cold start takes a second or two; a loaded machine may need many.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// A free port may be taken by somebody else before a member binds it.
const PORT_TRIES: u32 = 5;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a cluster is made.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// One, or three.
    pub members: usize,
    /// How long a token of a logged-in user lasts; etcd's five minutes where nothing is said.
    pub auth_token_ttl_s: Option<u32>,
    /// Speaks TLS with clients, and refuses those without a certificate. Needs the program `openssl`.
    pub tls: bool,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self { members: 1, auth_token_ttl_s: None, tls: false }
    }
}

/// A private cluster: in a temporary folder, on free ports of 127.0.0.1, letting in everyone there until [`Etcd::enable_auth`].
/// Dropping it kills its members and removes the folder, also when a test panics.
#[derive(Debug)]
pub struct Etcd {
    // before the folder, so that they end before it goes
    pub(super) members: Vec<Member>,
    pub(super) token: String,
    pub(super) options: EtcdOptions,
    pub(super) home: TempDir,
    pub(super) certificates: Option<Certificates>,
    /// User and password of `etcdctl`, once they are needed.
    pub(super) root: Option<(String, String)>,
}

impl Etcd {
    /// One member.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(EtcdOptions::default())
    }

    /// Three members.
    pub fn start_three() -> Result<Self, Error> {
        Self::start_with(EtcdOptions { members: 3, ..EtcdOptions::default() })
    }

    /// Starts a cluster; returns when every member answers with the consent of a quorum.
    pub fn start_with(options: EtcdOptions) -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut cluster = Self::place(options.clone())?;
            match cluster.launch() {
                Ok(()) => return Ok(cluster),
                Err(Error::Ended { output, .. }) if output.contains("address already in use") && tries < PORT_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn place(options: EtcdOptions) -> Result<Self, Error> {
        let home = tempfile::Builder::new().prefix("settled-etcd-").tempdir();
        let home = home.map_err(Error::io("creating a temporary folder"))?;
        let ports = ports::several(options.members * 3)?;
        let place = |(number, ports): (usize, &[u16])| Place::new(home.path().to_owned(), number, [ports[0], ports[1], ports[2]]);
        let members = ports.chunks(3).enumerate().map(place).map(|place| Member { process: None, place }).collect();
        let certificates = options.tls.then(|| Certificates::make(home.path())).transpose()?;
        Ok(Self { members, token: fresh_token(), options, home, certificates, root: None })
    }

    /// Starts every member that does not run, and waits for all of them.
    pub(super) fn launch(&mut self) -> Result<(), Error> {
        for at in 0..self.members.len() {
            if self.members[at].process.is_none() {
                self.spawn(at)?;
            }
        }
        (0..self.members.len()).try_for_each(|at| self.wait_ready(at))
    }

    fn spawn(&mut self, at: usize) -> Result<(), Error> {
        let certificates = self.certificates.as_ref();
        let shape = Shape { everyone: self.everyone(), token: &self.token, options: &self.options, certificates };
        self.members[at].process = Some(self.members[at].place.spawn(&shape)?);
        Ok(())
    }

    pub(super) fn everyone(&self) -> String {
        let places = self.members.iter().map(|member| &member.place);
        places.map(|place| format!("{}={}", place.name, place.peer_url())).collect::<Vec<_>>().join(",")
    }

    /// Waits until a member reads with the consent of a quorum.
    pub fn wait_ready(&mut self, at: usize) -> Result<(), Error> {
        let deadline = Instant::now() + READY_LIMIT;
        while !self.members[at].place.is_healthy() {
            self.members[at].ended()?;
            if Instant::now() >= deadline {
                let place = &self.members[at].place;
                let (program, output) = (place.name.clone(), process::tail(&place.log()));
                return Err(Error::Late { program, state: "ready", limit: READY_LIMIT, output });
            }
            thread::sleep(LOOK_EVERY);
        }
        // or it was somebody else's server that answered, on a port that this one did not get
        self.members[at].ended()
    }

    /// Where clients reach the members: `127.0.0.1:<port>`, in the order of their numbers.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| format!("127.0.0.1:{}", member.place.client_port)).collect()
    }

    /// The ids of the members' processes that run.
    pub fn pids(&self) -> Vec<u32> {
        self.members.iter().filter_map(|member| Some(member.process.as_ref()?.pid())).collect()
    }

    /// What clients need where it speaks TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Where everything of the cluster is.
    pub fn folder(&self) -> &std::path::Path {
        self.home.path()
    }

    /// The number of the leader that a member other than `except` follows; waits for one.
    pub fn leader_besides(&self, except: Option<usize>) -> Result<usize, Error> {
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            let said: Vec<_> =
                self.members.iter().map(|member| member.process.as_ref().and_then(|_| member.place.leader())).collect();
            let leads = |at: usize| {
                let (id, leader) = said[at].as_ref()?;
                (id == leader && Some(at) != except).then_some(at)
            };
            if let Some(at) = (0..said.len()).find_map(leads) {
                return Ok(at);
            }
            if Instant::now() >= deadline {
                return Err(Error::Late { program: "etcd".into(), state: "led", limit: READY_LIMIT, output: String::new() });
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The number of the leader; waits for one.
    pub fn leader(&self) -> Result<usize, Error> {
        self.leader_besides(None)
    }

    /// Stops a member where it is: its clients wait, nobody is disconnected.
    pub fn freeze(&mut self, at: usize) -> Result<(), Error> {
        self.members[at].running()?.freeze()
    }

    /// Lets a frozen member go on.
    pub fn wake(&mut self, at: usize) -> Result<(), Error> {
        self.members[at].running()?.wake()
    }

    /// SIGKILL: the member gets no chance to do anything.
    pub fn kill(&mut self, at: usize) -> Result<(), Error> {
        self.members[at].running()?.kill()?;
        self.members[at].process = None;
        Ok(())
    }

    /// SIGTERM: the member ends its streams and connections in its own way. Waits for its end.
    pub fn terminate(&mut self, at: usize) -> Result<(), Error> {
        let process = self.members[at].running()?;
        process.terminate()?;
        process.wait(READY_LIMIT)?;
        self.members[at].process = None;
        Ok(())
    }

    /// Starts a killed member again, with its ports and what it stored, and waits until it answers: of a cluster that needs others
    /// as well, start those with [`Etcd::start_all`].
    pub fn start_again(&mut self, at: usize) -> Result<(), Error> {
        self.spawn(at)?;
        self.wait_ready(at)
    }

    /// Starts every member that was killed, and waits for all.
    pub fn start_all(&mut self) -> Result<(), Error> {
        self.launch()
    }

    /// What the member counts and measures, as Prometheus reads it.
    pub fn metrics(&self, at: usize) -> Result<String, Error> {
        super::http::ask(self.members[at].place.watch_port, "/metrics", None).map_err(Error::io("reading the metrics of etcd"))
    }

    /// The log of a member.
    pub fn log(&self, at: usize) -> String {
        fs::read_to_string(self.members[at].place.log()).unwrap_or_default()
    }
}

/// Clusters of different tokens are different clusters, also on the same ports.
pub(super) fn fresh_token() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
