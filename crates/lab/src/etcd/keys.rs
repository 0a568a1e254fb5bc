//! What `etcdctl` does with the cluster.

use std::{
    path::Path,
    process::{Command, Output},
};

use super::{Etcd, cluster::fresh_token};
use crate::{Error, programs::ETCDCTL};

impl Etcd {
    /// A command for `etcdctl` on this cluster, with its root user where it has one.
    pub fn etcdctl(&self) -> Result<Command, Error> {
        let mut command = ETCDCTL.command()?;
        command.env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", self.endpoints().join(","));
        if let Some((user, password)) = &self.root {
            command.env("ETCDCTL_USER", format!("{user}:{password}"));
        }
        if let Some(certificates) = self.certificates() {
            command.env("ETCDCTL_CACERT", certificates.authority());
            command.env("ETCDCTL_CERT", certificates.client_certificate()).env("ETCDCTL_KEY", certificates.client_key());
        }
        Ok(command)
    }

    /// Runs `etcdctl` with these arguments; what it printed, without the end of the line.
    pub fn ctl(&self, arguments: &[&str]) -> Result<String, Error> {
        finished(self.etcdctl()?.args(arguments))
    }

    /// The revision of the store.
    pub fn revision(&self) -> Result<i64, Error> {
        let said = self.ctl(&["get", "nothing", "-w", "json"])?;
        let number =
            said.split_once("\"revision\":").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        number
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| Error::io(format!("reading a revision from {said}"))(std::io::ErrorKind::InvalidData.into()))
    }

    /// Throws the history away, up to now.
    pub fn compact(&self) -> Result<(), Error> {
        let revision = self.revision()?.to_string();
        self.ctl(&["compact", "--physical", &revision]).map(drop)
    }

    /// Lets nobody in any more without a name and a password; the superuser is `root` with this password.
    pub fn enable_auth(&mut self, password: &str) -> Result<(), Error> {
        self.ctl(&["user", "add", &format!("root:{password}")])?;
        self.ctl(&["user", "grant-role", "root", "root"])?;
        self.ctl(&["auth", "enable"])?;
        self.root = Some(("root".to_owned(), password.to_owned()));
        Ok(())
    }

    /// Writes everything the cluster stores into a file.
    pub fn snapshot(&self, file: &Path) -> Result<(), Error> {
        let mut command = self.etcdctl()?;
        // from one member, or etcdctl refuses
        command.env("ETCDCTL_ENDPOINTS", &self.endpoints()[0]);
        finished(command.args(["snapshot", "save"]).arg(file)).map(drop)
    }

    /// Kills the cluster and builds it again from a snapshot, on the same ports and with the same names. It keeps its id with its
    /// old cluster token, and has another id with a new one. Revisions go back to what they were.
    pub fn restore(&mut self, file: &Path, new_token: bool) -> Result<(), Error> {
        if new_token {
            self.token = fresh_token();
        }
        let everyone = self.everyone();
        for at in 0..self.members.len() {
            if self.members[at].process.is_some() {
                self.kill(at)?;
            }
            let place = self.members[at].place.clone();
            place.forget()?;
            let mut command = self.etcdctl()?;
            command.args(["snapshot", "restore"]).arg(file).arg("--data-dir").arg(place.data()).args(["--name", &place.name]);
            command.args(["--initial-cluster", &everyone, "--initial-cluster-token", &self.token]);
            finished(command.args(["--initial-advertise-peer-urls", &place.peer_url()]))?;
        }
        self.start_all()
    }
}

fn finished(command: &mut Command) -> Result<String, Error> {
    let Output { status, stdout, stderr } = command.output().map_err(Error::io("starting etcdctl"))?;
    if !status.success() {
        return Err(Error::Ended {
            program: "etcdctl".into(),
            status,
            output: String::from_utf8_lossy(&stderr).trim_end().into(),
        });
    }
    Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned())
}
