//! Where a server's program is: on the machine, or in the tree that `cargo xtask servers` unpacks.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, servers_dir};

/// A program of a Debian package.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The file's name.
    pub name: &'static str,
    /// The package that has it.
    pub package: &'static str,
}

/// etcd's server.
pub const ETCD: Program = Program { name: "etcd", package: "etcd-server" };
/// etcd's client, for what other programs do with etcd.
pub const ETCDCTL: Program = Program { name: "etcdctl", package: "etcd-client" };
/// Redis.
pub const REDIS_SERVER: Program = Program { name: "redis-server", package: "redis-server" };
/// Redis Sentinel.
pub const REDIS_SENTINEL: Program = Program { name: "redis-sentinel", package: "redis-sentinel" };
/// A pooler in front of PostgreSQL.
pub const PGBOUNCER: Program = Program { name: "pgbouncer", package: "pgbouncer" };
/// Compiles the protocol of etcd when its client is built.
pub const PROTOC: Program = Program { name: "protoc", package: "protobuf-compiler" };

/// Servers' programs are not on every user's PATH.
const FOLDERS: [&str; 4] = ["usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin"];

impl Program {
    /// On the PATH, in the folders of the machine, or under [`servers_dir`], in this order.
    pub fn find(self) -> Result<PathBuf, Error> {
        let path = env::var_os("PATH").unwrap_or_default();
        let below = |root: &Path| FOLDERS.map(|folder| root.join(folder));
        let machine = env::split_paths(&path).chain(below(Path::new("/")));
        let mut places = machine.chain(below(&servers_dir())).map(|folder| folder.join(self.name));
        places.find(|place| place.is_file()).ok_or_else(|| Error::Missing {
            what: self.name,
            package: self.package,
            looked: "PATH, target/servers".into(),
        })
    }

    /// A command for it, able to find its libraries in an unpacked tree and speaking English whatever the machine speaks.
    pub fn command(self) -> Result<Command, Error> {
        let place = self.find()?;
        let mut command = Command::new(&place);
        command.env("LC_ALL", "C");
        without(&mut command, "ETCD");
        if place.starts_with(servers_dir()) {
            command.env("LD_LIBRARY_PATH", library_path(&servers_dir()));
        }
        Ok(command)
    }
}

/// What the user's shell says of servers of the user's own is not for these: variables that begin like this.
pub(crate) fn without(command: &mut Command, prefix: &str) {
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with(prefix) {
            command.env_remove(name);
        }
    }
}

/// Every `lib/<machine triplet>` of an unpacked tree, merged `/usr` or not.
pub(crate) fn library_path(root: &Path) -> String {
    let triplets = ["usr/lib", "lib"].into_iter().filter_map(|lib| fs::read_dir(root.join(lib)).ok());
    let dirs = triplets.flatten().flatten().map(|entry| entry.path());
    let dirs = dirs.filter(|dir| dir.to_string_lossy().contains("-linux-"));
    dirs.map(|dir| dir.to_string_lossy().into_owned()).collect::<Vec<_>>().join(":")
}
