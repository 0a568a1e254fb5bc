//! Opening a ledger: by ten processes at once, with another configuration, without its schema.

use crate::fixture::{Books, Named, Place};
use crate::import;
use lab::process::{Output, Process};
use ledger::{Guard, LedgerError, OpenOptions};
use std::env;
use std::process::{Command, ExitCode};
use std::time::Duration;

pub const EVERY: &[Named] = tests![
    r12_ten_processes_open_an_empty_database,
    r12_ten_tasks_open_an_empty_database,
    another_configuration_is_refused_and_told_how,
    a_missing_schema_is_told,
    a_schema_of_another_version_is_told,
    a_url_of_no_engine_is_told,
];

/// What a child does is its name, a space, and the URL.
const CHILD_ENV: &str = "SETTLED_CONFORMANCE_CHILD";
/// Opens the ledger and mints a token.
const OPEN: &str = "open";
/// See [`import::import_200_000_lines`].
pub const IMPORT: &str = "import";

/// This program once more, doing one thing with a ledger.
pub struct Child(Process);

impl Child {
    pub fn start(what: &str, url: &str) -> Child {
        // the running file itself, whatever cargo has put in its place meanwhile
        let mut command = Command::new("/proc/self/exe");
        command.env(CHILD_ENV, format!("{what} {url}"));
        Child(Process::spawn(&mut command, Output::Inherit).expect("a child"))
    }

    /// Whether it did it.
    pub async fn ended(&mut self, limit: Duration) -> bool {
        tokio::task::block_in_place(|| self.0.wait(limit)).expect("an end").success()
    }

    pub fn peak_rss_bytes(&mut self) -> u64 {
        self.0.peak_rss_bytes()
    }
}

/// Does what a parent asks for, if this process is a child.
pub fn as_child() -> Option<ExitCode> {
    let asked = env::var(CHILD_ENV).ok()?;
    let (what, url) = asked.split_once(' ')?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().ok()?;
    runtime.block_on(async {
        let books = Place::at(url).open().await;
        match what {
            OPEN => drop(books.ledger.mint().await.expect("a token")),
            IMPORT => import::import_200_000_lines(&books).await,
            _ => panic!("{what}?"),
        }
    });
    Some(ExitCode::SUCCESS)
}

async fn r12_ten_processes_open_an_empty_database(place: Place) {
    let mut children: Vec<Child> = (0..10).map(|_| Child::start(OPEN, &place.url)).collect();
    for child in &mut children {
        assert!(child.ended(Duration::from_secs(120)).await, "a process could not open it");
    }
    assert_one_ledger(&place.open().await).await;
}

async fn r12_ten_tasks_open_an_empty_database(place: Place) {
    let options = OpenOptions { connections: 2, ..place.options(1, Guard::Lease) };
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let options = options.clone();
            tokio::spawn(async move {
                let ledger = ledger::open(&options).await.expect("a ledger");
                ledger.mint().await.expect("a token");
                ledger.meta()
            })
        })
        .collect();
    let books = place.open().await;
    for task in tasks {
        assert_eq!(task.await.expect("no panic"), books.ledger.meta());
    }
    assert_one_ledger(&books).await;
}

async fn assert_one_ledger(books: &Books) {
    assert_eq!((books.raw.count("ledger_meta").await, books.raw.count("unit_fence").await), (1, 1));
    assert_eq!(books.ledger.mint().await.expect("a token"), 11, "ten tokens were given before");
    books.assert_books_hold().await;
}

async fn another_configuration_is_refused_and_told_how(place: Place) {
    let meta = place.open_as(4, Guard::Lease).await.ledger.meta();
    for (options, key) in [
        (place.options(8, Guard::Lease), "worker.partitions is 8"),
        (place.options(4, Guard::RowLock), "worker.guard is row-lock"),
    ] {
        let error = ledger::open(&options).await.err().expect("it differs");
        assert!(matches!(error, LedgerError::Differs { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with(key) && text.contains("config adopt"), "{text}");
        assert_eq!(ledger::connect(&options).await.expect("taken as it is").meta(), meta);
    }
}

async fn a_missing_schema_is_told(place: Place) {
    let options = OpenOptions { migrate: false, ..place.options(1, Guard::Lease) };
    let error = ledger::open(&options).await.err().expect("no schema");
    assert!(matches!(error, LedgerError::Schema(_)), "{error:?}");
    assert!(error.to_string().contains("settled migrate"), "{error}");
    let books = place.open().await;
    let opened = ledger::open(&options).await.expect("the schema is there");
    assert_eq!(opened.meta(), books.ledger.meta());
}

async fn a_schema_of_another_version_is_told(place: Place) {
    let books = place.open().await;
    let options = OpenOptions { migrate: false, ..place.options(1, Guard::Lease) };
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        SELECT 9001, description, success, checksum, execution_time FROM _sqlx_migrations WHERE version = 1";
    let older = "DELETE FROM _sqlx_migrations WHERE version IN (9001, 3)";
    for (change, told) in [(newer, "migration 9001 is not known to this program"), (older, "migration 3 is not applied")] {
        books.raw.run(change).await.expect("changed");
        let error = ledger::open(&options).await.err().expect("another version");
        assert!(matches!(error, LedgerError::Schema(_)), "{error:?}");
        assert!(error.to_string().contains(told), "{error}");
    }
}

async fn a_url_of_no_engine_is_told(place: Place) {
    let options = OpenOptions { url: "mongodb://user:secret@host/db".to_owned(), ..place.options(1, Guard::Lease) };
    let error = ledger::open(&options).await.err().expect("no engine");
    assert!(matches!(error, LedgerError::Config(_)), "{error:?}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
