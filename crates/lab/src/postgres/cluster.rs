//! A cluster on disk: a temporary folder with the data, the log and the socket, the user it
//! belongs to, and the programs that user can run.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::Binaries;
use crate::{Error, user::User};

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
        let mut probe = self.command("postgres");
        let probe = probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if probe.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        let copy = self.home().join("servers");
        for below in ["usr/lib", "usr/share/postgresql", "lib"] {
            if root.join(below).is_dir() {
                link_tree(&root.join(below), &copy.join(below))
                    .map_err(Error::io(format!("copying {}", root.join(below).display())))?;
            }
        }
        self.binaries = self.binaries.moved(root, &copy);
        Ok(())
    }
}

/// Hard links where the file system allows it: a tree is large, a link costs nothing.
fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from)? {
        let (source, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let target = to.join(source.file_name().unwrap_or_default());
        if kind.is_dir() {
            link_tree(&source, &target)?;
        } else if source.exists() && fs::hard_link(&source, &target).is_err() {
            // a link to a link is refused by some file systems, across two it always is
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
