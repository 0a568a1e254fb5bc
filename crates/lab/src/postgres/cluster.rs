//! A cluster on disk: a temporary folder with the data, the log and the socket, the user it
//! belongs to, and the programs that user can run.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::Binaries;
use crate::{Error, tree, user::User};

/// Removed from the disk when dropped.
#[derive(Debug)]
pub(super) struct Cluster {
    binaries: Binaries,
    user: Option<User>,
    home: TempDir,
}

impl Cluster {
    /// `initdb` in a new temporary folder.
    pub(super) fn create(binaries: Binaries) -> Result<Self, Error> {
        let user = User::for_servers()?;
        let home = tempfile::Builder::new().prefix("pg-").tempdir();
        let home = home.map_err(Error::io("creating a folder for PostgreSQL"))?;
        if let Some(user) = user {
            user.own(home.path())?;
        }
        let mut cluster = Self { binaries, user, home };
        cluster.make_programs_reachable()?;
        cluster.initdb()?;
        Ok(cluster)
    }

    pub(super) fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.home().join("postgres.log")
    }

    /// A command of the cluster's user in the cluster's folder: the current one may be closed
    /// to that user, and PostgreSQL insists on knowing where it is.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = self.binaries.command(program);
        command.current_dir(self.home());
        if let Some(user) = self.user {
            user.apply(&mut command);
        }
        command
    }

    fn initdb(&self) -> Result<(), Error> {
        let output = self
            .command("initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"])
            .args(["--no-sync", "--pgdata"])
            .arg(self.data())
            .output()
            .map_err(Error::io(format!("starting {}/initdb", self.binaries.dir().display())))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Ended {
            program: "initdb".into(),
            status: output.status,
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Goes over to a copy of the unpacked tree when the cluster's user cannot get at it, as
    /// in a checkout below `/root`.
    fn make_programs_reachable(&mut self) -> Result<(), Error> {
        let Some(root) = self.binaries.unpacked_root().filter(|_| self.user.is_some()) else {
            return Ok(());
        };
        if tree::is_reachable(&mut self.command("postgres")) {
            return Ok(());
        }
        let copy = self.home().join("servers");
        tree::copy(root, &["usr/lib", "usr/share/postgresql", "lib"], &copy)?;
        self.binaries = self.binaries.moved(root, &copy);
        Ok(())
    }
}
