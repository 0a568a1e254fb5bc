//! Where PostgreSQL's programs are.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Error,
    programs::{library_path, without},
    servers_dir,
};

/// Names the folder with `postgres`, `initdb` and `psql`, instead of looking for it.
pub const BIN_DIR_ENV: &str = "SETTLED_PG_BIN";

/// Debian puts each major version into a folder of its own, and none on the PATH.
const VERSIONS: &str = "usr/lib/postgresql";

/// The folder of PostgreSQL's programs.
#[derive(Debug, Clone)]
pub struct Binaries {
    dir: PathBuf,
}

impl Binaries {
    /// Looks in `SETTLED_PG_BIN`, the PATH, `/usr/lib/postgresql/<newest>/bin`, and the same
    /// under [`servers_dir`], in this order.
    pub fn find() -> Result<Self, Error> {
        if let Some(dir) = env::var_os(BIN_DIR_ENV) {
            return Self::named(PathBuf::from(dir));
        }
        on_path()
            .or_else(|| newest(Path::new("/")))
            .or_else(|| newest(&servers_dir()))
            .ok_or_else(|| missing(format!("PATH, /{VERSIONS}, target/servers")))
    }

    /// What `cargo xtask servers` brought, whatever the machine has.
    pub fn brought() -> Result<Self, Error> {
        newest(&servers_dir()).ok_or_else(|| missing("target/servers".into()))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A command for one of the programs, able to find its libraries in an unpacked tree and
    /// speaking English whatever the machine speaks.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.dir.join(program));
        command.env("LC_ALL", "C");
        without(&mut command, "PG");
        if let Some(root) = self.unpacked_root() {
            command.env("LD_LIBRARY_PATH", library_path(root));
        }
        command
    }

    /// The root of the tree when it is not the machine's own: `/x` for
    /// `/x/usr/lib/postgresql/15/bin`.
    pub(super) fn unpacked_root(&self) -> Option<&Path> {
        let (versions, root) = (self.dir.ancestors().nth(2)?, self.dir.ancestors().nth(5)?);
        (versions.ends_with(VERSIONS) && root != Path::new("/")).then_some(root)
    }

    /// The same folder in a copy of the tree.
    pub(super) fn moved(&self, from: &Path, to: &Path) -> Self {
        let dir = self.dir.strip_prefix(from).map(|below| to.join(below));
        Self { dir: dir.unwrap_or_else(|_| self.dir.clone()) }
    }

    fn named(dir: PathBuf) -> Result<Self, Error> {
        complete(&dir).ok_or_else(|| missing(format!("{BIN_DIR_ENV}={}", dir.display())))
    }
}

/// Both programs of a server must be there: a client package alone has neither.
fn complete(dir: &Path) -> Option<Binaries> {
    let dir = dir.canonicalize().ok()?;
    (dir.join("postgres").is_file() && dir.join("initdb").is_file()).then_some(Binaries { dir })
}

/// A `postgres` on the PATH may be a link into the real folder, where `psql` is its neighbour.
fn on_path() -> Option<Binaries> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).find_map(|dir| {
        let program = dir.join("postgres").canonicalize().ok()?;
        complete(program.parent()?).or_else(|| complete(&dir))
    })
}

fn newest(root: &Path) -> Option<Binaries> {
    let entries = fs::read_dir(root.join(VERSIONS)).ok()?.flatten();
    let mut versions: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect();
    versions.sort();
    versions.iter().rev().find_map(|(_, dir)| complete(&dir.join("bin")))
}

fn missing(looked: String) -> Error {
    Error::Missing { what: "PostgreSQL", package: "postgresql", looked }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Binaries;

    #[test]
    fn only_an_unpacked_tree_needs_its_own_libraries() {
        let root = |dir| {
            let binaries = Binaries { dir: PathBuf::from(dir) };
            binaries.unpacked_root().map(Path::to_path_buf)
        };
        assert_eq!(root("/x/y/usr/lib/postgresql/15/bin"), Some(PathBuf::from("/x/y")));
        assert_eq!(root("/usr/lib/postgresql/15/bin"), None);
        assert_eq!(root("/opt/pgsql/bin"), None);
    }
}
