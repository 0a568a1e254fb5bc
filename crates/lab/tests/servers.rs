//! The laboratory's own tests, in its own harness.

use std::{
    net::TcpListener,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use lab::{
    Error, faketime, ports,
    postgres::{Durability, Postgres, PostgresUrl},
    process::{Output, Process},
    trials::{POSTGRES_ENV, REQUIRE_ENV, Suite},
};

fn main() -> ExitCode {
    Suite::new()
        .plain("a free port can be bound", a_free_port_can_be_bound)
        .plain("a child is frozen and woken", a_child_is_frozen_and_woken)
        .plain("a child that stops itself is waited for", a_child_that_stops_itself)
        .plain("waiting has a bound", waiting_has_a_bound)
        .plain("a dropped child is gone", a_dropped_child_is_gone)
        .plain("a running child has a peak memory", a_running_child_has_a_peak_memory)
        .plain("a child's clock is shifted", a_childs_clock_is_shifted)
        .plain("a dropped server is gone, with its folder", a_dropped_server_is_gone)
        .plain("a frozen server is gone too when dropped", a_frozen_server_is_gone_too)
        .plain("a killed server comes again with its data", a_killed_server_comes_again)
        .plain("a panic stops the server", a_panic_stops_the_server)
        .plain("a missing server is ignored", a_missing_server_is_ignored)
        .plain("a missing server fails where required", a_missing_server_fails_where_required)
        .with_postgres("a fresh database answers", a_fresh_database_answers)
        .with_postgres("a test has its own database", a_test_has_its_own_database)
        .with_postgres("an error in SQL is an error", an_error_in_sql_is_an_error)
        .run()
}

type Outcome = Result<(), Error>;

fn sleeper() -> Result<Process, Error> {
    Process::spawn(Command::new("sleep").arg("600"), Output::Inherit)
}

fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn a_free_port_can_be_bound() -> Outcome {
    // several, because another test may just be starting a process, which holds a copy of
    // every socket until it becomes another program
    let ports = (0..20).map(|_| ports::free()).collect::<Result<Vec<_>, _>>()?;
    let bound = ports.iter().filter(|port| TcpListener::bind(("127.0.0.1", **port)).is_ok());
    assert!(bound.count() >= 10);
    Ok(())
}

fn a_child_is_frozen_and_woken() -> Outcome {
    let mut child = sleeper()?;
    child.freeze()?;
    assert!(child.is_stopped());
    child.wake()?;
    child.terminate()?;
    let status = child.wait(Duration::from_secs(5))?;
    assert!(!status.success(), "sleep ended by itself");
    assert!(matches!(child.freeze(), Err(Error::Ended { .. })));
    Ok(())
}

fn a_child_that_stops_itself() -> Outcome {
    let mut shell = Command::new("sh");
    let mut child = Process::spawn(shell.args(["-c", "kill -STOP $$; exit 7"]), Output::Inherit)?;
    child.wait_stopped(Duration::from_secs(5))?;
    child.wake()?;
    // the status is still there for the owner
    assert_eq!(child.wait(Duration::from_secs(5))?.code(), Some(7));
    Ok(())
}

fn waiting_has_a_bound() -> Outcome {
    let mut child = sleeper()?;
    let limit = Duration::from_millis(50);
    assert!(matches!(child.wait_stopped(limit), Err(Error::Late { state: "stopped", .. })));
    assert!(matches!(child.wait(limit), Err(Error::Late { state: "gone", .. })));
    Ok(())
}

fn a_dropped_child_is_gone() -> Outcome {
    let mut child = sleeper()?;
    child.freeze()?;
    let pid = child.pid();
    drop(child);
    assert!(!exists(pid));
    Ok(())
}

fn a_running_child_has_a_peak_memory() -> Outcome {
    let mut child = sleeper()?;
    let running = child.peak_rss_bytes();
    assert!((4096..1 << 30).contains(&running), "{running} bytes");
    child.kill()?;
    assert!(child.peak_rss_bytes() >= running);
    Ok(())
}

fn a_childs_clock_is_shifted() -> Outcome {
    let mut date = Command::new("date");
    faketime::shift(date.arg("+%Y"), "+3650d")?;
    let output = date.output().expect("date starts");
    let shifted: u32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a year");
    let plain = Command::new("date").arg("+%Y").output().expect("date starts");
    let plain: u32 = String::from_utf8_lossy(&plain.stdout).trim().parse().expect("a year");
    assert!(shifted >= plain + 9, "{shifted} is not ten years after {plain}");
    Ok(())
}

fn a_dropped_server_is_gone() -> Outcome {
    let server = Postgres::start(Durability::Real)?;
    assert_eq!(server.url().query("show fsync")?, "on");
    assert_eq!(server.create_database("books")?.query("select current_database()")?, "books");
    let (pid, log) = (server.pid(), server.log());
    assert!(exists(pid) && log.is_file());
    drop(server);
    assert!(!exists(pid), "the server still runs");
    assert!(log.parent().is_some_and(|home| !home.exists()), "the folder is still there");
    Ok(())
}

fn a_frozen_server_is_gone_too() -> Outcome {
    let mut server = Postgres::start(Durability::Off)?;
    server.freeze()?;
    let pid = server.pid();
    drop(server);
    assert!(!exists(pid));
    Ok(())
}

fn a_killed_server_comes_again() -> Outcome {
    let mut server = Postgres::start(Durability::Off)?;
    let url = server.url();
    url.query("create table kept (id int); insert into kept values (41)")?;
    server.kill()?;
    assert!(url.query("select 1").is_err(), "a killed server answers");
    server.start_again()?;
    assert_eq!(url.query("select id from kept")?, "41");
    Ok(())
}

fn a_panic_stops_the_server() -> Outcome {
    let server = Postgres::start(Durability::Off)?;
    let pid = server.pid();
    let panicked = std::panic::catch_unwind(move || {
        let _owned = server;
        // a panic without its printed message
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.is_err());
    assert!(!exists(pid));
    Ok(())
}

/// This binary again, one test of it, on a machine without PostgreSQL.
fn without_server(required: &str) -> (bool, String) {
    // the running file itself, whatever cargo has put in its place meanwhile
    let output = Command::new("/proc/self/exe")
        .args(["--exact", "a fresh database answers"])
        .env_remove(POSTGRES_ENV)
        .env("SETTLED_PG_BIN", "/nowhere")
        .env(REQUIRE_ENV, required)
        .output()
        .expect("this binary starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn a_missing_server_is_ignored() {
    let (success, printed) = without_server("0");
    assert!(success, "{printed}");
    assert!(printed.contains("0 passed; 0 failed; 1 ignored"), "{printed}");
}

fn a_missing_server_fails_where_required() {
    let (success, printed) = without_server("1");
    assert!(!success, "{printed}");
    assert!(printed.contains("install the package postgresql"), "{printed}");
}

fn a_fresh_database_answers(database: &PostgresUrl) -> Outcome {
    assert_eq!(database.query("select 1")?, "1");
    assert_eq!(database.query("show server_encoding")?, "UTF8");
    Ok(())
}

fn a_test_has_its_own_database(database: &PostgresUrl) -> Outcome {
    database.query("create table mine (id int)")?;
    let tables = "select count(*) from pg_tables where schemaname = 'public'";
    assert_eq!(database.query(tables)?, "1");
    Ok(())
}

fn an_error_in_sql_is_an_error(database: &PostgresUrl) {
    let error = database.query("select * from nothing").expect_err("no such table");
    assert!(error.to_string().contains("\"nothing\" does not exist"), "{error}");
}
