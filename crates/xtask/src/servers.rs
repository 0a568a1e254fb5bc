//! `cargo xtask servers`: finds the servers tests need, or brings them.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, ensure};
use lab::{
    faketime,
    postgres::{BIN_DIR_ENV, Binaries, Durability, Postgres},
    programs::{ETCD, ETCDCTL, PGBOUNCER, PROTOC, REDIS_SENTINEL, REDIS_SERVER},
    servers_dir,
};

use crate::apt;

/// Something tests need that cargo does not build.
struct Need {
    name: &'static str,
    /// Where it is, on the machine or in [`servers_dir`].
    find: fn() -> Result<PathBuf, lab::Error>,
    /// The Debian package.
    package: &'static str,
}

/// One line for each.
const NEEDS: &[Need] = &[
    Need { name: "PostgreSQL", find: || Ok(Binaries::find()?.dir().to_path_buf()), package: "postgresql" },
    Need { name: "libfaketime", find: faketime::library, package: "libfaketime" },
    Need { name: "etcd", find: || ETCD.find(), package: ETCD.package },
    Need { name: "etcdctl", find: || ETCDCTL.find(), package: ETCDCTL.package },
    Need { name: "Redis", find: || REDIS_SERVER.find(), package: REDIS_SERVER.package },
    Need { name: "Redis Sentinel", find: || REDIS_SENTINEL.find(), package: REDIS_SENTINEL.package },
    Need { name: "PgBouncer", find: || PGBOUNCER.find(), package: PGBOUNCER.package },
    // not a server: the client of one is built with it
    Need { name: "protoc", find: || PROTOC.find(), package: PROTOC.package },
    Need { name: "the protocols protoc includes", find: protocols, package: "libprotobuf-dev" },
];

/// Arguments of `cargo xtask servers`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Bring everything anew, also what the machine has, and try it.
    #[arg(long)]
    fresh: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    ensure(args.fresh)?;
    Ok(ExitCode::SUCCESS)
}

/// Brings what is missing and prints where everything is.
pub(crate) fn ensure(fresh: bool) -> anyhow::Result<()> {
    if env::var_os(BIN_DIR_ENV).is_some() {
        // named, so nothing is looked for and nothing can be brought in its place
        Binaries::find()?;
    }
    if fresh || NEEDS.iter().any(|need| (need.find)().is_err()) {
        // the whole tree at once: it is replaced, never half there
        let packages = NEEDS.iter().filter(|need| fresh || !on_machine(need)).map(|need| need.package);
        apt::bring(&packages.collect::<Vec<_>>(), &servers_dir())?;
        try_brought()?;
    }
    for need in NEEDS {
        let place = (need.find)().with_context(|| format!("{} is still missing", need.name))?;
        println!("{}: {}", need.name, place.display());
    }
    Ok(())
}

/// Without which nothing that uses etcd can be built; all of them are brought, since the tree is replaced as a whole.
pub(crate) fn ensure_protoc() -> anyhow::Result<()> {
    if PROTOC.find().is_ok() && protocols().is_ok() { Ok(()) } else { ensure(false) }
}

/// `google/protobuf/descriptor.proto`, which protoc looks for beside its own folder.
fn protocols() -> Result<PathBuf, lab::Error> {
    let file = "usr/include/google/protobuf/descriptor.proto";
    let places = [Path::new("/").join(file), servers_dir().join(file)];
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| lab::Error::Missing {
        what: "descriptor.proto",
        package: "libprotobuf-dev",
        looked: "/usr/include, target/servers".into(),
    })
}

fn on_machine(need: &Need) -> bool {
    (need.find)().is_ok_and(|place| !place.starts_with(servers_dir()))
}

/// A tree that unpacks may still lack a library: a start shows it here, and not in the middle
/// of the tests.
fn try_brought() -> anyhow::Result<()> {
    let Ok(binaries) = Binaries::brought() else { return Ok(()) };
    // the one path that is compiled in, and that a connection asks for
    ensure!(Path::new("/usr/share/zoneinfo/UTC").exists(), "PostgreSQL needs time zones: install the package tzdata");
    let postgres = Postgres::start_from(binaries, Durability::Off).context("trying the PostgreSQL just brought")?;
    println!("tried: {}", postgres.url().query("select version()")?);
    Ok(())
}
