//! One member: its folder, its two ports, its process.

use std::{fs, path::PathBuf, process::Command};

use super::{EtcdOptions, http};
use crate::{
    Error,
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
    home: PathBuf,
}

impl Place {
    pub(super) fn new(home: PathBuf, number: usize, client_port: u16, peer_port: u16) -> Self {
        Self { name: format!("member{number}"), client_port, peer_port, home }
    }

    pub(super) fn peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.peer_port)
    }

    pub(super) fn client_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.client_port)
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
        http::ask(self.client_port, "/health", None).is_ok_and(|answer| http::field(&answer, "health") == Some("true"))
    }

    /// The ids of this member and of the leader it follows.
    pub(super) fn leader(&self) -> Option<(String, String)> {
        let answer = http::ask(self.client_port, "/v3/maintenance/status", Some("{}")).ok()?;
        Some((http::field(&answer, "member_id")?.to_owned(), http::field(&answer, "leader")?.to_owned()))
    }

    pub(super) fn spawn(&self, everyone: &str, token: &str, options: &EtcdOptions) -> Result<Process, Error> {
        let log = self.log();
        let output = Output::Files { stdout: &log, stderr: &log };
        Process::spawn(&mut self.server(everyone, token, options)?, output)
    }

    fn server(&self, everyone: &str, token: &str, options: &EtcdOptions) -> Result<Command, Error> {
        let mut command = ETCD.command()?;
        command.arg("--name").arg(&self.name).arg("--data-dir").arg(self.data());
        for (flag, value) in [
            ("--listen-client-urls", self.client_url().as_str()),
            ("--advertise-client-urls", &self.client_url()),
            ("--listen-peer-urls", &self.peer_url()),
            ("--initial-advertise-peer-urls", &self.peer_url()),
            ("--initial-cluster", everyone),
            ("--initial-cluster-token", token),
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
        if let Some(seconds) = options.auth_token_ttl_s {
            command.arg("--auth-token-ttl").arg(seconds.to_string());
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
