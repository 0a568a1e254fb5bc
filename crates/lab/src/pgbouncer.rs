//! A private PgBouncer in front of one PostgreSQL: its own folder, its own port, gone on drop.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    Error, ports,
    postgres::PostgresUrl,
    process::{self, Output, Process},
    programs::{PGBOUNCER, library_path},
    servers_dir, tree,
    user::User,
};

/// A start takes some tens of milliseconds; a loaded machine may need many.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// A free port may be taken by somebody else before it binds it.
const PORT_TRIES: u32 = 5;

/// For how long a client is given a session of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// As long as it is connected.
    Session,
    /// For each transaction, whichever is free.
    Transaction,
    /// For each statement; transactions of several are refused.
    Statement,
}

/// A running pooler. It trusts everyone, as the server behind it does.
#[derive(Debug)]
pub struct PgBouncer {
    // before the folder, so that it ends before that goes
    process: Process,
    _home: TempDir,
    url: PostgresUrl,
}

impl PgBouncer {
    /// Starts one in front of the database of this URL; returns when it listens.
    pub fn start(server: &PostgresUrl, mode: PoolMode) -> Result<Self, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::launch(server, mode, ports::free()?) {
                Err(Error::Ended { output, .. }) if output.contains("in use") && tries < PORT_TRIES => {}
                started => return started,
            }
        }
    }

    /// The database behind it, through it.
    pub fn url(&self) -> &PostgresUrl {
        &self.url
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn launch(server: &PostgresUrl, mode: PoolMode, port: u16) -> Result<Self, Error> {
        let user = User::for_servers()?;
        let home = tempfile::Builder::new().prefix("pgbouncer-").tempdir();
        let home = home.map_err(Error::io("creating a folder for PgBouncer"))?;
        if let Some(user) = user {
            user.own(home.path())?;
        }
        let configuration = configure(home.path(), server, mode, port)?;
        let log = home.path().join("pgbouncer.log");
        let output = Output::Files { stdout: &log, stderr: &log };
        let mut process = Process::spawn(command(home.path(), user)?.arg(&configuration), output)?;
        wait_until_ready(&mut process, port, &log)?;
        Ok(Self { process, _home: home, url: behind(server, port) })
    }
}

/// Its two files. Readable by everyone: there is no secret in them.
fn configure(home: &Path, server: &PostgresUrl, mode: PoolMode, port: u16) -> Result<PathBuf, Error> {
    let mode = match mode {
        PoolMode::Session => "session",
        PoolMode::Transaction => "transaction",
        PoolMode::Statement => "statement",
    };
    let (user, address, _) = parts(server);
    let (host, server_port) = address.rsplit_once(':').unwrap_or((address, "5432"));
    let users = home.join("users.txt");
    let text = format!(
        "[databases]\n* = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\n",
        users.display()
    );
    let file = home.join("pgbouncer.ini");
    for (path, text) in [(&file, text), (&users, format!("\"{user}\" \"\"\n"))] {
        fs::write(path, text).map_err(Error::io(format!("writing {}", path.display())))?;
    }
    Ok(file)
}

/// It refuses to run as root, and its user may not get at the tree that has it.
fn command(home: &Path, user: Option<User>) -> Result<Command, Error> {
    let as_user = |mut command: Command| {
        command.current_dir(home);
        user.into_iter().for_each(|user| user.apply(&mut command));
        command
    };
    let (program, unpacked) = (PGBOUNCER.find()?, servers_dir());
    let Ok(below) = program.strip_prefix(&unpacked) else { return PGBOUNCER.command().map(as_user) };
    if user.is_none() || tree::is_reachable(&mut as_user(PGBOUNCER.command()?)) {
        return PGBOUNCER.command().map(as_user);
    }
    let copy = home.join("servers");
    tree::copy(&unpacked, &["usr/sbin", "usr/lib", "lib"], &copy)?;
    let mut command = Command::new(copy.join(below));
    command.env("LC_ALL", "C").env("LD_LIBRARY_PATH", library_path(&copy));
    Ok(as_user(command))
}

/// User, `host:port` and database.
fn parts(url: &PostgresUrl) -> (&str, &str, &str) {
    let (_, rest) = url.as_str().split_once("://").unwrap_or(("", url.as_str()));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
    let (user, address) = authority.split_once('@').unwrap_or(("postgres", authority));
    (user, address, database)
}

fn behind(server: &PostgresUrl, port: u16) -> PostgresUrl {
    let (user, _, database) = parts(server);
    PostgresUrl::new(format!("postgres://{user}@127.0.0.1:{port}/{database}"))
}

fn wait_until_ready(process: &mut Process, port: u16, log: &Path) -> Result<(), Error> {
    let deadline = Instant::now() + READY_LIMIT;
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let program = || "pgbouncer".to_owned();
        if let Some(status) = process.ended()? {
            return Err(Error::Ended { program: program(), status, output: process::tail(log) });
        }
        if Instant::now() >= deadline {
            let output = process::tail(log);
            return Err(Error::Late { program: program(), state: "ready", limit: READY_LIMIT, output });
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
