//! One member: its folder, its two ports, its process.

use std::{fs, path::PathBuf, process::Command};

use super::{EtcdOptions, http};
use crate::{
    Certificates, Error,
    process::{self, Output, Process},
    programs::ETCD,
};

#[derive(Debug)]
pub(super) struct Member {
    /// `None` after it was killed.
    pub(super) process: Option<Process>,
    pub(super) place: Place,
}

/// What stays when the process does not.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) client_port: u16,
    pub(super) peer_port: u16,
    /// For health and metrics, without TLS whatever the others are.
    pub(super) watch_port: u16,
    home: PathBuf,
}

/// What all members of a cluster have in common.
pub(super) struct Shape<'a> {
    pub(super) everyone: String,
    pub(super) token: &'a str,
    pub(super) options: &'a EtcdOptions,
    pub(super) certificates: Option<&'a Certificates>,
}

impl Place {
    pub(super) fn new(home: PathBuf, number: usize, ports: [u16; 3]) -> Self {
        let [client_port, peer_port, watch_port] = ports;
        Self { name: format!("member{number}"), client_port, peer_port, watch_port, home }
    }

    pub(super) fn peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.peer_port)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home.join(format!("{}.data", self.name))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.home.join(format!("{}.log", self.name))
    }

    /// Removes what the member has stored.
    pub(super) fn forget(&self) -> Result<(), Error> {
        fs::remove_dir_all(self.data()).map_err(Error::io(format!("removing {}", self.data().display())))
    }

    /// Healthy means that it reads with the consent of a quorum.
    pub(super) fn is_healthy(&self) -> bool {
        http::ask(self.watch_port, "/health", None).is_ok_and(|answer| http::field(&answer, "health") == Some("true"))
    }

    /// The ids of this member and of the leader it follows; not of one with TLS.
    pub(super) fn leader(&self) -> Option<(String, String)> {
        let answer = http::ask(self.client_port, "/v3/maintenance/status", Some("{}")).ok()?;
        Some((http::field(&answer, "member_id")?.to_owned(), http::field(&answer, "leader")?.to_owned()))
    }

    pub(super) fn spawn(&self, shape: &Shape<'_>) -> Result<Process, Error> {
        let log = self.log();
        let output = Output::Files { stdout: &log, stderr: &log };
        Process::spawn(&mut self.server(shape)?, output)
    }

    fn server(&self, shape: &Shape<'_>) -> Result<Command, Error> {
        let mut command = ETCD.command()?;
        let scheme = if shape.certificates.is_some() { "https" } else { "http" };
        let clients = format!("{scheme}://127.0.0.1:{}", self.client_port);
        let watchers = format!("http://127.0.0.1:{}", self.watch_port);
        command.arg("--name").arg(&self.name).arg("--data-dir").arg(self.data());
        for (flag, value) in [
            ("--listen-client-urls", clients.as_str()),
            ("--advertise-client-urls", &clients),
            ("--listen-metrics-urls", &watchers),
            ("--listen-peer-urls", &self.peer_url()),
            ("--initial-advertise-peer-urls", &self.peer_url()),
            ("--initial-cluster", &shape.everyone),
            ("--initial-cluster-token", shape.token),
            ("--initial-cluster-state", "new"),
            // a new leader within a second, and a shortest lease of one
            ("--heartbeat-interval", "50"),
            ("--election-timeout", "500"),
            ("--logger", "zap"),
            ("--log-outputs", "stderr"),
            ("--log-level", "warn"),
            ("--auth-token", "simple"),
            // the cheapest there is: a token is asked for on every connection
            ("--bcrypt-cost", "4"),
        ] {
            command.arg(flag).arg(value);
        }
        // a killed server still loses nothing, a dead machine would
        command.arg("--unsafe-no-fsync");
        if let Some(seconds) = shape.options.auth_token_ttl_s {
            command.arg("--auth-token-ttl").arg(seconds.to_string());
        }
        if let Some(certificates) = shape.certificates {
            command.arg("--cert-file").arg(certificates.server_certificate()).arg("--key-file").arg(certificates.server_key());
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(certificates.authority());
        }
        Ok(command)
    }
}

impl Member {
    pub(super) fn running(&mut self) -> Result<&mut Process, Error> {
        let name = &self.place.name;
        self.process
            .as_mut()
            .ok_or_else(|| Error::io(format!("looking for {name}, which was killed"))(std::io::ErrorKind::NotFound.into()))
    }

    /// The error of a member that has ended by itself.
    pub(super) fn ended(&mut self) -> Result<(), Error> {
        let Some(process) = &mut self.process else { return Ok(()) };
        match process.ended()? {
            None => Ok(()),
            Some(status) => {
                Err(Error::Ended { program: self.place.name.clone(), status, output: process::tail(&self.place.log()) })
            }
        }
    }
}
