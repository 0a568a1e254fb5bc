//! Two processes of the example, one of them frozen (or killed) at a step of its work and woken when the other is done: what the
//! sleeper still does meets the table it should not touch any more.
//!
//! A child is this program, started again: it is the example itself (`main` of `examples/nightly_report.rs`), or an instance of
//! its job that signals itself at a step.

use crate::fixture::{FOR_EVER, PATIENCE, Place, SHORT, day, holder, import, night, run, settings};
use crate::nightly_report::{self, NightlyReport, REPORT, TABLE};
use async_trait::async_trait;
use domain::run::RunKey;
use domain::step::{Probe, Step};
use lab::process::{Output, Process};
use lab::trials::Suite;
use lease::{Keeper, KeeperSettings};
use ledger::OpenOptions;
use ledger::schedule::PlannedRun;
use rustix::process::{Signal, getpid, kill_process};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use worker::{JobError, NightlyJob, Turn, Worker};

/// What a child is: `example`, or `stop`, `kill` or `unfenced` and a step.
const CHILD: &str = "NIGHTLY_REPORT_CHILD";

/// Every step that a job passes.
const STEPS: [Step; 6] = [
    Step::RunPlanned,
    Step::LeaseAcquired,
    Step::OwnershipProven,
    Step::FenceRegistered,
    Step::BeforeSettleTx,
    Step::BeforeRelease,
];

/// Adds the same story on both engines.
fn on_both(suite: Suite, name: &str, story: impl Fn(&Place) + Send + Clone + 'static) -> Suite {
    let on_sqlite = story.clone();
    suite
        .plain(&format!("{name} (sqlite)"), move || on_sqlite(&Place::sqlite()))
        .with_postgres(&format!("{name} (postgres)"), move |url| story(&Place::at(url)))
}

pub fn add(suite: Suite) -> Suite {
    let mut suite = on_both(suite, "R3 three processes of the example do one report", together);
    for step in STEPS {
        suite = on_both(suite, &format!("R1 the example frozen at {step}, woken after the takeover"), move |place| {
            frozen(place, step);
        });
        suite = on_both(suite, &format!("R4 M13 the example killed at {step}"), move |place| killed(place, step));
    }
    let suite =
        suite.with_postgres("R1 the example waits for the takeover in flight (postgres)", |url| in_flight(&Place::at(url)));
    let suite = on_both(suite, "R9 SIGTERM: the example stops, and the next one does it", drained);
    on_both(suite, "control: a job that does not ask writes behind the takeover", unfenced)
}

/// A ledger with settled batches to report.
fn settled(place: &Place) {
    run(async {
        let worker = place.instance(FOR_EVER).await;
        import(worker.ledger.as_ref(), "day", 5).await;
        worker.run(&night(), None).await.expect("settled");
    });
}

struct Child {
    process: Process,
    _folder: tempfile::TempDir,
    said: PathBuf,
}

impl Child {
    fn start(place: &Place, what: &str) -> Child {
        let folder = tempfile::tempdir().expect("a folder");
        let said = folder.path().join("said");
        // the running file itself, whatever cargo has put in its place meanwhile
        let mut command = Command::new("/proc/self/exe");
        command.env(CHILD, what).args([&place.url, "--business-date", &day().to_string()]);
        let process = Process::spawn(&mut command, Output::Files { stdout: &said, stderr: &said }).expect("a child");
        Child { process, _folder: folder, said }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Waits for its end: exit code (nothing: a signal), and what it said.
    fn end(&mut self) -> (Option<i32>, String) {
        let status = self.process.wait(PATIENCE).unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        (status.code(), self.said())
    }

    fn end_well(&mut self) -> String {
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    fn wait_for(&self, words: &str) {
        let begun = Instant::now();
        while !self.said().contains(words) {
            assert!(begun.elapsed() < PATIENCE, "no {words:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_stopped(&mut self) {
        self.process.wait_stopped(PATIENCE).unwrap_or_else(|error| panic!("{error}: {}", self.said()));
    }
}

/// The report and its record: rows of the table, who wrote them, who is noted to have done it.
fn assert_reported(place: &Place) -> Vec<String> {
    let (report, tokens, done) = read(place);
    assert_eq!(report, [format!("{} EUR 5 4850", day())]);
    assert_eq!(done.len(), 1, "one of them did it");
    assert_eq!(tokens, done, "written by whoever is noted to have done it");
    tokens
}

/// The report, the tokens of its rows, the tokens under which it is noted as done.
fn read(place: &Place) -> (Vec<String>, Vec<String>, Vec<String>) {
    let mut read = (Vec::new(), Vec::new(), Vec::new());
    run(async {
        let rows = "SELECT business_date || ' ' || currency || ' ' || settled_batches || ' ' || net_minor FROM nightly_report";
        read.0 = place.texts(rows).await;
        read.1 = place.texts("SELECT CAST(fence_token AS TEXT) FROM nightly_report").await;
        read.2 = place.texts("SELECT CAST(fence_token AS TEXT) FROM job_run WHERE job = 'nightly-report'").await;
    });
    read
}

/// Refused writes, by operation.
fn refused(place: &Place) -> Vec<String> {
    let mut refused = Vec::new();
    run(async { refused = place.texts("SELECT operation FROM fence_rejection").await });
    refused
}

fn together(place: &Place) {
    settled(place);
    let mut children: Vec<_> = (0..3).map(|_| Child::start(place, "example")).collect();
    let said: Vec<_> = children.iter_mut().map(Child::end_well).collect();
    assert_eq!(said.iter().filter(|said| said.contains("is done")).count(), 1, "{said:?}");
    assert_eq!(said.iter().filter(|said| said.contains("was done before, or by another")).count(), 2, "{said:?}");
    assert_reported(place);
    assert_eq!(refused(place), Vec::<String>::new());
}

fn frozen(place: &Place, step: Step) {
    settled(place);
    let mut a = Child::start(place, &format!("stop {step}"));
    a.wait_stopped();
    let did = Child::start(place, "example").end_well();
    let tokens = assert_reported(place);
    a.process.wake().expect("a child");
    let a_did = a.end_well();
    assert_eq!(assert_reported(place), tokens, "the sleeper touched what the other wrote");
    let (meets, a_done) = match step {
        // nothing is begun, or nothing proven: it looks again, and finds it done
        Step::RunPlanned | Step::LeaseAcquired | Step::FenceRegistered => (&[][..], false),
        Step::OwnershipProven => (&["register"][..], false),
        // between its look and its write
        Step::BeforeSettleTx => (&["job"][..], false),
        Step::BeforeRelease => (&[][..], true),
        _ => panic!("a job never comes to {step}"),
    };
    assert_eq!(refused(place), meets, "{a_did}");
    assert_eq!((a_did.contains("Done(true)"), did.contains("is done")), (a_done, !a_done), "{a_did} {did}");
}

fn killed(place: &Place, step: Step) {
    settled(place);
    assert_eq!(Child::start(place, &format!("kill {step}")).end().0, None);
    let did = Child::start(place, "example").end_well();
    assert_eq!(did.contains("is done"), step != Step::BeforeRelease, "{did}");
    assert_reported(place);
    assert_eq!(refused(place), Vec::<String>::new(), "the dead write nothing");
}

/// A newer holder is registering while the example asks: without its lock it would read what was before, and write behind the
/// takeover. (SQLite has one writer.)
fn in_flight(place: &Place) {
    settled(place);
    let mut a = Child::start(place, "stop BeforeSettleTx");
    a.wait_stopped();
    run(async {
        let ledger = sqlx::PgPool::connect(&place.url).await.expect("the same database");
        let mut registering = ledger.begin().await.expect("a transaction");
        let mint = "UPDATE fence_counter SET token = token + 1";
        sqlx::query(mint).execute(&mut *registering).await.expect("a token");
        let register = "UPDATE unit_fence SET token = c.token, holder = $1 FROM fence_counter c WHERE unit >= 1000000";
        sqlx::query(register).bind(uuid::Uuid::new_v4()).execute(&mut *registering).await.expect("not committed");
        a.process.wake().expect("a child");
        tokio::time::sleep(Duration::from_millis(700)).await;
        let tables = place.texts("SELECT CAST(relname AS TEXT) FROM pg_class WHERE relname = 'nightly_report'").await;
        assert_eq!(tables, Vec::<String>::new(), "it wrote while a newer holder was registering");
        registering.commit().await.expect("taken over");
    });
    // its next turn is a grant of its own, newer than that one
    assert!(a.end_well().contains("Done(true)"), "{}", a.said());
    assert_reported(place);
    assert_eq!(refused(place), ["job"]);
}

fn drained(place: &Place) {
    settled(place);
    let mut a = Child::start(place, "stop BeforeSettleTx");
    a.wait_stopped();
    // the example itself waits for it, and is asked to stop
    let mut waiting = Child::start(place, "example");
    waiting.wait_for("waits for the instance that has it");
    waiting.process.terminate().expect("a child");
    let (code, said) = waiting.end();
    assert!(code == Some(1) && said.contains("the next instance does it"), "{code:?} {said}");
    assert!(Child::start(place, "example").end_well().contains("is done"));
    assert_reported(place);
}

/// What the fence prevents: the same story with a job that looks at its lease, and does not ask in its transaction.
fn unfenced(place: &Place) {
    settled(place);
    let mut a = Child::start(place, "unfenced BeforeSettleTx");
    a.wait_stopped();
    Child::start(place, "example").end_well();
    let tokens = assert_reported(place);
    a.process.wake().expect("a child");
    a.end_well();
    let (_, written_by, done_by) = read(place);
    assert_eq!(done_by, tokens, "the ledger's own record has the fence");
    assert_ne!(written_by, tokens, "the late write should have gone through: this test would not see it");
    assert_eq!(refused(place), ["job"], "refused when it wanted to note the end, too late for the table");
}

/// Signals this process when a step is reached, once.
struct SignalAt(Step, Signal, AtomicBool);

impl Probe for SignalAt {
    fn at(&self, step: Step) {
        if step == self.0 && !self.2.swap(true, Ordering::SeqCst) {
            kill_process(getpid(), self.1).expect("sent");
        }
    }
}

/// The example's writes without its question.
struct Unfenced(NightlyReport);

#[async_trait]
impl NightlyJob for Unfenced {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn work(&self, turn: &Turn<'_>) -> Result<(), JobError> {
        let (day, token) = (turn.key.business_date, turn.stamp.fence.token);
        for currency in self.0.currencies(day).await? {
            turn.check()?;
            match &self.0 {
                NightlyReport::Postgres(pool) => {
                    sqlx::query(TABLE).execute(pool).await?;
                    sqlx::query(REPORT).bind(day).bind(currency).bind(token).execute(pool).await?;
                }
                NightlyReport::Sqlite(pool) => {
                    sqlx::query(TABLE).execute(pool).await?;
                    sqlx::query(REPORT).bind(day).bind(currency).bind(token).execute(pool).await?;
                }
            }
        }
        Ok(())
    }
}

/// What a parent asks for, if this process is a child.
pub fn as_child() -> Option<ExitCode> {
    let asked = std::env::var(CHILD).ok()?;
    let Some((what, step)) = asked.split_once(' ') else { return Some(example()) };
    let url = std::env::args().nth(1).expect("a URL");
    let signal = if what == "kill" { Signal::KILL } else { Signal::STOP };
    let probe = Arc::new(SignalAt(step.parse().expect("a step"), signal, AtomicBool::new(false)));
    run(async {
        let (report, leases) = nightly_report::open(&url).await.expect("the ledger");
        let job: Box<dyn NightlyJob> = if what == "unfenced" { Box::new(Unfenced(report)) } else { Box::new(report) };
        let (holder, ledger) = (holder(), ledger::connect(&OpenOptions::existing(&url)).await.expect("the ledger"));
        let keeper = Keeper::start(leases, holder, KeeperSettings::new(SHORT)).expect("a keeper");
        let worker = Worker { probe, ..Worker::new(ledger, None, holder, settings()) };
        let key = RunKey { schedule: "nightly-report".to_owned(), ..RunKey::manual(day()) };
        let ended = worker.run_job(&keeper, job.as_ref(), &PlannedRun::for_job(key), None).await.expect("an outcome");
        println!("Done({})", ended == worker::JobOutcome::Done);
    });
    Some(ExitCode::SUCCESS)
}

fn example() -> ExitCode {
    match nightly_report::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
