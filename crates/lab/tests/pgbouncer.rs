//! The pooler of the laboratory does what poolers do, and goes when it is dropped.

use lab::{
    Error,
    pgbouncer::{PgBouncer, PoolMode},
    postgres::{Binaries, PostgresUrl},
    trials::Suite,
};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
};

fn main() -> ExitCode {
    Suite::new()
        .with_postgres("transactions of two clients share a session", |url: &PostgresUrl| {
            shares(url, PoolMode::Transaction, true)
        })
        .with_postgres("a client keeps its session", |url: &PostgresUrl| shares(url, PoolMode::Session, false))
        .with_postgres("a pooler of statements refuses a transaction", statements_only)
        .with_postgres("a dropped pooler is gone", gone_when_dropped)
        .run()
}

/// A client that stays.
struct Psql {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Psql {
    fn connect(url: &PostgresUrl) -> Psql {
        let mut command = Binaries::find().map_or_else(|_| Command::new("psql"), |binaries| binaries.command("psql"));
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", url.as_str()]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("psql starts");
        let (asks, answers) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        Psql { process, asks, answers: BufReader::new(answers) }
    }

    fn pid(&mut self) -> String {
        writeln!(self.asks, "select pg_backend_pid();").expect("it listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        assert!(!line.trim().is_empty(), "no answer");
        line
    }
}

impl Drop for Psql {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn shares(url: &PostgresUrl, mode: PoolMode, expected: bool) -> Result<(), Error> {
    let pooler = PgBouncer::start(url, mode)?;
    let (mut one, mut two) = (Psql::connect(pooler.url()), Psql::connect(pooler.url()));
    let first = one.pid();
    assert_eq!(two.pid() == first, expected);
    assert_eq!(one.pid(), first, "nobody has it just now");
    Ok(())
}

fn statements_only(url: &PostgresUrl) -> Result<(), Error> {
    let pooler = PgBouncer::start(url, PoolMode::Statement)?;
    assert_eq!(pooler.url().query("select 1")?, "1");
    let error = pooler.url().query("begin").expect_err("refused").to_string();
    assert!(error.contains("statement pooling"), "{error}");
    Ok(())
}

fn gone_when_dropped(url: &PostgresUrl) -> Result<(), Error> {
    let pooler = PgBouncer::start(url, PoolMode::Session)?;
    let process = Path::new("/proc").join(pooler.pid().to_string());
    assert!(process.exists());
    drop(pooler);
    assert!(!process.exists(), "it still runs");
    Ok(())
}
