//! Who does what the plan says.

use super::instances::{IDLE, Instances};
use super::plan::{Harm, Line, Turn};
use crate::books::{Books, FIRST_DAY};
use crate::{DrillError, Mark, Stage};
use chrono::Days;
use lab::etcd::Etcd;
use lab::postgres::{Durability, Postgres};
use lab::proxy::{Proxy, Way};
use std::net::SocketAddr;
use std::time::Duration;

/// Batches of one file, of which there is one every three seconds: work that never ends, and no backlog.
pub(super) const BATCHES: u32 = 24;
/// No poison is among the batches, so none may be given up. Whoever has one in hand is hurt one time in six or so, by itself or by the
/// director; that this happens to one batch twenty times in a row is no chance any more, and would be a finding.
const ATTEMPTS: u32 = 20;
/// Every request to the servers takes so long each way at its best, so that faults meet requests under way.
const FAR: Duration = Duration::from_millis(3);
/// Small against the TTL, large against a request.
const SLOW: Duration = Duration::from_millis(40);

/// The servers, the lines to them, and the instances.
pub(super) struct Director<'a> {
    stage: &'a Stage,
    postgres: Postgres,
    lock_service: Proxy,
    database: Proxy,
    pub(super) books: Books<'a>,
    pub(super) instances: Instances<'a>,
    pub(super) files: u64,
    pub(super) faults: u64,
    // after the instances, so that it outlives them
    _etcd: Etcd,
}

impl<'a> Director<'a> {
    /// Servers with a proxy before each, a first file with its run, and nobody who works yet.
    pub(super) fn begin(stage: &'a Stage) -> Result<Director<'a>, DrillError> {
        let (postgres, etcd) = (Postgres::start(Durability::Off)?, Etcd::start()?);
        let url = postgres.create_database("soak")?;
        let place = place_of(&url)?;
        let database = Proxy::start(place)?;
        let lock_service = Proxy::start(address(&etcd.endpoints().concat())?)?;
        let books = stage.books(&url).with("lease.backend", "etcd").with("lease.etcd.endpoints", lock_service.address());
        let books = books.with("worker.idle_timeout_ms", IDLE.as_millis()).with("worker.max_attempts", ATTEMPTS);
        // half of the instances wait for a unit: whoever is held up is succeeded before it goes on
        let units = stage.options().instances.div_ceil(2);
        let books = books.with("worker.partitions", units).with("worker.poll_ms", 100);
        let books = books.with("serve.idle_poll_ms", 200).with("admin.listen", "127.0.0.1:0");
        let way = books.by_way_of(&url.replace(&place.to_string(), &database.address().to_string()));
        let instances = Instances::none(stage, way, true);
        let mut director =
            Director { stage, postgres, lock_service, database, books, instances, files: 0, faults: 0, _etcd: etcd };
        director.well(Line::LockService);
        director.well(Line::Database);
        director.take_in()?;
        // opens the run that makes due what is taken in later
        director.books.start("first", &["run", "--json"])?.process.wait(crate::instance::PATIENCE)?;
        director.instances.start_all()?;
        Ok(director)
    }

    pub(super) fn does(&mut self, turn: Turn) -> Result<(), DrillError> {
        self.faults += u64::from(turn.is_fault());
        match turn {
            Turn::Freeze(who) => self.instances.freeze(who),
            Turn::Wake(who) => self.instances.wake(who),
            Turn::Kill(who) => self.instances.kill(who),
            Turn::Stop(who) => self.instances.stop(who),
            Turn::Start(who) => self.instances.start(who),
            Turn::Hurt(line, harm) => self.hurt(line, harm),
            Turn::Heal(line) => {
                self.stage.tell(line.name(), Mark::Heal, "passes everything again");
                self.well(line);
                Ok(())
            }
            Turn::RestartDatabase => {
                self.stage.tell("postgres", Mark::Kill, "killed (SIGKILL), and started again");
                self.postgres.kill()?;
                Ok(self.postgres.start_again()?)
            }
            Turn::TakeIn => self.take_in(),
        }
    }

    /// Everybody is well, hurts itself no more, and there is work.
    pub(super) async fn heal(&mut self) -> Result<(), DrillError> {
        self.stage.tell("director", Mark::Heal, "everything is healed; chaos mode is off from the next start on");
        self.well(Line::LockService);
        self.well(Line::Database);
        self.instances.heal().await?;
        self.take_in()
    }

    fn hurt(&self, line: Line, harm: Harm) -> Result<(), DrillError> {
        self.stage.tell(line.name(), Mark::Fault, harm.words());
        let proxy = self.proxy(line);
        match harm {
            Harm::Silent => {
                proxy.silence(Way::There);
                proxy.silence(Way::Back);
            }
            Harm::Reset => proxy.reset(),
            Harm::HalfOpen => proxy.half_open(),
            Harm::Slow => proxy.delay(SLOW),
        }
        Ok(())
    }

    fn well(&self, line: Line) {
        self.proxy(line).heal();
        self.proxy(line).delay(FAR);
    }

    fn proxy(&self, line: Line) -> &Proxy {
        match line {
            Line::LockService => &self.lock_service,
            Line::Database => &self.database,
        }
    }

    /// A file of another day has other batches; days before the run's are due with it.
    fn take_in(&mut self) -> Result<(), DrillError> {
        let day = FIRST_DAY - Days::new(self.files);
        self.files += 1;
        self.books.take_in_of(day, BATCHES, 5)
    }
}

impl Line {
    const fn name(self) -> &'static str {
        match self {
            Line::LockService => "line to etcd",
            Line::Database => "line to postgres",
        }
    }
}

impl Harm {
    const fn words(self) -> &'static str {
        match self {
            Harm::Silent => "silent both ways",
            Harm::Reset => "every connection is reset",
            Harm::HalfOpen => "every connection is half open",
            Harm::Slow => "slow",
        }
    }
}

fn place_of(url: &str) -> Result<SocketAddr, DrillError> {
    let place = url.split_once('@').and_then(|(_, rest)| rest.split_once('/')).map(|(place, _)| place);
    address(place.unwrap_or_default())
}

fn address(place: &str) -> Result<SocketAddr, DrillError> {
    let place = place.rsplit_once("//").map_or(place, |(_, place)| place);
    place.parse().map_err(|_| DrillError::Story(format!("{place:?} is no address")))
}
