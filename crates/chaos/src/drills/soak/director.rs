//! Who does what the plan says.

use super::plan::{Harm, Line, Turn};
use crate::books::{Books, FIRST_DAY};
use crate::instance::Instance;
use crate::{DrillError, Mark, Stage};
use chrono::Days;
use lab::etcd::Etcd;
use lab::postgres::{Durability, Postgres};
use lab::proxy::{Proxy, Way};
use std::net::SocketAddr;
use std::time::Duration;

/// Batches of one file: some seconds of work, so that faults meet it.
const BATCHES: u32 = 40;
/// Every request to the servers takes so long each way at its best, so that faults meet requests under way.
const FAR: Duration = Duration::from_millis(4);
/// Small against the TTL, large against a request.
const SLOW: Duration = Duration::from_millis(40);

/// The servers, the lines to them, and the instances.
pub(super) struct Director<'a> {
    stage: &'a Stage,
    postgres: Postgres,
    lock_service: Proxy,
    database: Proxy,
    pub(super) books: Books<'a>,
    instances: Vec<Option<Instance>>,
    files: u64,
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
        // who is killed is no batch's fault
        let books = books.with("worker.max_attempts", 10_000).with("worker.partitions", 8).with("worker.poll_ms", 100);
        let books = books.with("serve.idle_poll_ms", 200).with("admin.listen", "127.0.0.1:0");
        let instances = (0..stage.options().instances).map(|_| None).collect();
        let mut director =
            Director { stage, postgres, lock_service, database, books, instances, files: 0, faults: 0, _etcd: etcd };
        director.well(Line::LockService);
        director.well(Line::Database);
        director.take_in()?;
        // opens the run that makes due what is taken in later
        director.books.start("first", &["run", "--json"])?.process.wait(crate::instance::PATIENCE)?;
        (0..director.instances.len()).try_for_each(|who| director.start(who))?;
        Ok(director)
    }

    pub(super) fn does(&mut self, turn: Turn) -> Result<(), DrillError> {
        self.faults += u64::from(turn.is_fault());
        match turn {
            Turn::Freeze(who) => self.instance(who)?.freeze(),
            Turn::Wake(who) => self.instance(who)?.wake(),
            Turn::Kill(who) => self.instance(who)?.kill(),
            Turn::Stop(who) => {
                self.stage.tell(&name(who), Mark::Note, "is to stop (SIGTERM)");
                Ok(self.instance(who)?.process.terminate()?)
            }
            Turn::Start(who) => self.start(who),
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

    /// Everybody is well, and there is work.
    pub(super) fn heal(&mut self) -> Result<(), DrillError> {
        self.stage.tell("director", Mark::Heal, "everything is healed");
        self.well(Line::LockService);
        self.well(Line::Database);
        for who in 0..self.instances.len() {
            self.instance(who)?;
        }
        self.take_in()
    }

    /// Everybody stops, so that the histories are whole.
    pub(super) async fn end(&mut self) -> Result<(), DrillError> {
        for instance in self.instances.iter_mut().flatten() {
            if instance.process.ended()?.is_none() {
                instance.process.terminate()?;
            }
        }
        for instance in self.instances.iter_mut().flatten() {
            instance.end().await?;
        }
        Ok(())
    }

    /// One that ended because a service was away at its start is started again, as a service manager would.
    fn instance(&mut self, who: usize) -> Result<&mut Instance, DrillError> {
        let ended = self.instances[who].as_mut().map(|instance| instance.process.ended()).transpose()?.flatten();
        if let Some(status) = ended {
            self.stage.tell(&name(who), Mark::End, format!("had ended by itself: {status}"));
            self.start(who)?;
        }
        self.instances[who].as_mut().ok_or_else(|| DrillError::Story(format!("{} was never started", name(who))))
    }

    /// What is left of an earlier start, which may drain for long where a line is hurt, is killed.
    fn start(&mut self, who: usize) -> Result<(), DrillError> {
        self.instances[who] = None;
        let place = place_of(self.books.url())?.to_string();
        let url = self.books.url().replace(&place, &self.database.address().to_string());
        self.instances[who] = Some(self.books.by_way_of(&url).start(&name(who), &["serve"])?);
        Ok(())
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

fn name(who: usize) -> String {
    u8::try_from(who).map_or_else(|_| who.to_string(), |who| char::from(b'A'.saturating_add(who)).to_string())
}

fn place_of(url: &str) -> Result<SocketAddr, DrillError> {
    let place = url.split_once('@').and_then(|(_, rest)| rest.split_once('/')).map(|(place, _)| place);
    address(place.unwrap_or_default())
}

fn address(place: &str) -> Result<SocketAddr, DrillError> {
    let place = place.rsplit_once("//").map_or(place, |(_, place)| place);
    place.parse().map_err(|_| DrillError::Story(format!("{place:?} is no address")))
}
