//! Tests that need servers, without passing silently where there are none.
//!
//! ```no_run
//! // tests/claims.rs, with `[[test]] name = "claims"` and `harness = false` in Cargo.toml
//! use std::process::ExitCode;
//!
//! use lab::{postgres::PostgresUrl, trials::Suite};
//!
//! fn main() -> ExitCode {
//!     Suite::new()
//!         .plain("one and one", || assert_eq!(1 + 1, 2))
//!         .with_postgres("answers", answers)
//!         .run()
//! }
//!
//! fn answers(database: &PostgresUrl) -> Result<(), lab::Error> {
//!     assert_eq!(database.query("select 1")?, "1");
//!     Ok(())
//! }
//! ```
//!
//! A test whose server is missing is *ignored*, with the reason; it *fails* when
//! `SETTLED_REQUIRE_SERVERS=1`, which is how continuous integration runs. The same goes for a
//! test that returns [`Error::Missing`] itself, for instance of [`crate::faketime::library`].
//!
//! Filters, `--list`, `--exact` and cargo-nextest work as with ordinary tests.

use std::{
    env, error,
    process::{self, ExitCode},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::{
    Error,
    postgres::{Durability, Postgres, PostgresUrl},
};

/// Set to `1`, it turns "ignored, because the server is missing" into a failure.
pub const REQUIRE_ENV: &str = "SETTLED_REQUIRE_SERVERS";
/// The URL of a running PostgreSQL, database `postgres`, superuser: used instead of starting
/// one in each test binary.
pub const POSTGRES_ENV: &str = "SETTLED_TEST_POSTGRES_URL";

/// The tests of one binary. `main` builds it and returns what [`Suite::run`] returns.
#[derive(Debug, Default)]
pub struct Suite {
    trials: Vec<Trial>,
    server: Arc<Server>,
}

impl Suite {
    /// No tests yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A test that needs nothing but itself.
    pub fn plain<T, V>(mut self, name: &str, test: T) -> Self
    where
        T: FnOnce() -> V + Send + 'static,
        V: Verdict,
    {
        self.trials.push(Trial::ignorable_test(name, || concluded(test().verdict())));
        self
    }

    /// A test on a fresh, empty PostgreSQL database, dropped afterwards.
    pub fn with_postgres<T, V>(mut self, name: &str, test: T) -> Self
    where
        T: FnOnce(&PostgresUrl) -> V + Send + 'static,
        V: Verdict,
    {
        let server = Arc::clone(&self.server);
        let runner = move || {
            let database = server.url().and_then(|url| Database::create(&url));
            concluded(match database {
                Ok(database) => test(&database.url).verdict(),
                Err(error) => Err(error.into()),
            })
        };
        self.trials.push(Trial::ignorable_test(name, runner));
        self
    }

    /// Runs the tests the command line asks for, then stops the server if one was started.
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // tests with servers wait most of the time: for an expiry, for a process, for an answer
        let cores = thread::available_parallelism().map_or(1, usize::from);
        arguments.test_threads.get_or_insert(cores * 2);
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        // here and not by a static, whose destructor would never run
        self.server.stop();
        conclusion.exit_code()
    }
}

/// What a test may return: nothing, or a `Result` with any error.
pub trait Verdict {
    /// The error, if it is one.
    fn verdict(self) -> Result<(), Box<dyn error::Error + Send + Sync>>;
}

impl Verdict for () {
    fn verdict(self) -> Result<(), Box<dyn error::Error + Send + Sync>> {
        Ok(())
    }
}

impl<E: Into<Box<dyn error::Error + Send + Sync>>> Verdict for Result<(), E> {
    fn verdict(self) -> Result<(), Box<dyn error::Error + Send + Sync>> {
        self.map_err(Into::into)
    }
}

/// The one place that decides between ignored and failed.
fn concluded(verdict: Result<(), Box<dyn error::Error + Send + Sync>>) -> Result<Completion, Failed> {
    let Err(error) = verdict else { return Ok(Completion::Completed) };
    let missing = matches!(error.downcast_ref(), Some(Error::Missing { .. }));
    let required = env::var(REQUIRE_ENV).is_ok_and(|value| value == "1");
    match (missing, required) {
        (true, false) => Ok(Completion::ignored_with(error)),
        (true, true) => Err(format!("{error}\n({REQUIRE_ENV}=1: must not be ignored)").into()),
        (false, _) => Err(error.into()),
    }
}

/// The server all tests of the binary share; started when the first of them wants it.
#[derive(Debug, Default)]
struct Server(Mutex<Option<Postgres>>);

impl Server {
    fn url(&self) -> Result<PostgresUrl, Error> {
        if let Ok(url) = env::var(POSTGRES_ENV) {
            return Ok(PostgresUrl::new(url));
        }
        // held while it starts: the others wait for the same one
        let mut server = self.lock();
        match &*server {
            Some(running) => Ok(running.url()),
            None => Ok(server.insert(Postgres::start(Durability::Off)?).url()),
        }
    }

    fn stop(&self) {
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Postgres>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A database of one test. Dropped with the test, also when it panics: the server may be one
/// that lives longer than the tests.
struct Database {
    server: PostgresUrl,
    name: String,
    url: PostgresUrl,
}

impl Database {
    fn create(server: &PostgresUrl) -> Result<Self, Error> {
        let name = unique_name();
        let url = server.create_database(&name)?;
        Ok(Self { server: server.clone(), name, url })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = self.server.drop_database(&self.name) {
            // a test may have killed its server, and a test's verdict is its own
            eprintln!("database {} stays behind: {error}", self.name);
        }
    }
}

/// Unique among all processes that share a server, also when process ids come again.
fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("test_{}_{}_{number}", since.as_micros(), process::id())
}
