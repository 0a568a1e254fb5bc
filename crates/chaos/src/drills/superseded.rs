//! The course that most stories of lost locks share. A is frozen right before its write. Something makes its lock free; B takes unit and
//! batch over and is held up before its own write. A wakes and writes, though another holds its unit. What makes the lock free is what
//! each story is about.

use super::far::number;
use crate::books::Books;
use crate::history::{Line, Op, Phase};
use crate::instance::{Instance, PATIENCE};
use crate::record::Table;
use crate::stage::until;
use crate::verdict::fences::SUPERSEDED;
use crate::verdict::final_books::VERIFIED;
use crate::{DrillError, Mark, Stage, Without};
use domain::fence::Fence;
use domain::unit::Unit;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The only unit, so that both want the same lock.
const UNIT: Unit = Unit(0);

const STOPS_BEFORE_ITS_WRITE: [&str; 2] = ["--signal-at", "BeforeSettleTx=stop"];

/// So long that nothing in a story is an expiry. B always has such a lease, so that it is not succeeded while it is held up.
pub(super) const LONG: Duration = Duration::from_secs(300);

/// So short that a story can wait for its end, and long enough for a busy machine.
pub(super) const SHORT: Duration = Duration::from_secs(3);

/// With the protection, or without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    /// The control: A presents whatever fence the ledger has stored.
    WithoutFence,
    /// The product.
    Fence,
}

impl Arm {
    pub(super) const BOTH: [Arm; 2] = [Arm::WithoutFence, Arm::Fence];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Arm::WithoutFence => "without the fence",
            Arm::Fence => "fence",
        }
    }
}

/// A line of the table that [`figures`] makes.
pub(super) struct Figures {
    arm: String,
    ttl: Duration,
    takeover: Duration,
    committed: bool,
}

/// A ledger of its own with one batch of one unit, whose leases last so long. Which service keeps them is for the story to say.
pub(super) fn books(stage: &Stage, ttl: Duration) -> Result<Books<'_>, DrillError> {
    let books = stage.books(&stage.database()?).with("worker.partitions", 1).with("lease.ttl_ms", ttl.as_millis());
    Ok(books)
}

/// A, frozen with the batch in hand.
pub(super) struct Frozen<'a> {
    stage: &'a Stage,
    books: Books<'a>,
    name: String,
    arm: Arm,
    ttl: Duration,
    a: Instance,
    begun: Instant,
    since: Instant,
}

impl<'a> Frozen<'a> {
    /// Takes the batch in and starts A on it, whose leases last `ttl`.
    pub(super) async fn before_its_write(
        stage: &'a Stage,
        books: &Books<'a>,
        arm: Arm,
        ttl: Duration,
    ) -> Result<Frozen<'a>, DrillError> {
        books.take_in(1, 5)?;
        stage.tell("director", Mark::Note, format!("{}: one batch, so that both have it in hand", arm.name()));
        let begun = Instant::now();
        let mut a = match arm {
            Arm::Fence => books.start("A", &[&["run", "--json"], &STOPS_BEFORE_ITS_WRITE[..]].concat())?,
            Arm::WithoutFence => books.start_without(Without::Fence, "A", &STOPS_BEFORE_ITS_WRITE)?,
        };
        a.wait_frozen().await?;
        let name = arm.name().to_owned();
        Ok(Frozen { stage, books: books.clone(), name, arm, ttl, a, begun, since: Instant::now() })
    }

    /// The arm under another name, where a story tells it in several ways.
    pub(super) fn named(self, name: &str) -> Frozen<'a> {
        Frozen { name: name.to_owned(), ..self }
    }

    /// Tells whom the lock service takes for the holder, by what it has stored.
    pub(super) fn tell_lock(&self, service: &str, stored: &str) {
        tell_lock(self.stage, &[&self.a], service, stored);
    }

    /// Takeover is counted from now on: before, nobody could be given the lock.
    pub(super) fn counted_from_now(self) -> Frozen<'a> {
        Frozen { since: Instant::now(), ..self }
    }

    /// Under which fence A is registered.
    pub(super) async fn fence(&self) -> Result<Fence, DrillError> {
        Ok(self.books.open().await?.fence(UNIT).await?.fence)
    }

    /// Starts B, which takes over as soon as it gets the lock.
    pub(super) fn start_other(&self) -> Result<Instance, DrillError> {
        let books = self.books.with("lease.ttl_ms", LONG.as_millis());
        books.start("B", &[&["run", "--json"], &STOPS_BEFORE_ITS_WRITE[..]].concat())
    }

    /// B takes over and is held up.
    pub(super) async fn taken_over(self) -> Result<TakenOver<'a>, DrillError> {
        let b = self.start_other()?;
        self.taken_over_by(b).await
    }

    /// The same by a B that was started before.
    pub(super) async fn taken_over_by(self, mut b: Instance) -> Result<TakenOver<'a>, DrillError> {
        b.wait_for("registered").await?;
        let takeover = self.since.elapsed();
        b.wait_frozen().await?;
        if self.ttl == LONG {
            // counted from before A even asked for it
            let (since, good_ms) = (self.begun.elapsed(), (self.ttl - self.ttl / 10).as_millis());
            let seen = format!("A began {} ms ago, and its lease is good for {good_ms} ms", since.as_millis());
            let must = "two hold the lock at once: A's lease is not over by its own clock";
            self.stage.must_bite(&self.name, must, seen, since.as_millis() < good_ms);
        }
        Ok(TakenOver { frozen: self, b, takeover })
    }
}

/// B, held up with the same batch in hand.
pub(super) struct TakenOver<'a> {
    frozen: Frozen<'a>,
    b: Instance,
    takeover: Duration,
}

impl TakenOver<'_> {
    /// Tells whom the lock service takes for the holder, by what it has stored.
    pub(super) fn tell_lock(&self, service: &str, stored: &str) {
        tell_lock(self.frozen.stage, &[&self.frozen.a, &self.b], service, stored);
    }

    /// Under which fence B is registered.
    pub(super) async fn fence(&self) -> Result<Fence, DrillError> {
        self.frozen.fence().await
    }

    /// A wakes and writes; when it is known what came of it, B wakes as well.
    pub(super) async fn woken(mut self) -> Result<Figures, DrillError> {
        let committed = self.late_write().await?;
        self.b.wake()?;
        let b: Value = self.b.end_well().await?;
        // where tokens come from another source by now it is told so, and stops without a report
        let a = serde_json::from_str(&self.frozen.a.end().await?.1).ok();
        self.check_books(committed, [a.as_ref(), Some(&b)]).await?;
        let Frozen { name, ttl, .. } = self.frozen;
        Ok(Figures { arm: name, ttl, takeover: self.takeover, committed })
    }

    /// Whether the first thing that A writes goes in; B is registered all the while and has written nothing.
    async fn late_write(&mut self) -> Result<bool, DrillError> {
        let Frozen { stage, books, a, name, .. } = &mut self.frozen;
        let ledger = books.open().await?;
        let registered = ledger.fence(UNIT).await?;
        a.wake()?;
        // by what it was answered, not by what it makes of it
        let answered = |line: &Line| line.op == Op::Settle && line.phase != Phase::Invoke;
        let wait = async || Ok(stage.history(books)?.iter().any(answered).then_some(()));
        until("A's write is answered", PATIENCE, wait).await?;
        let wrote = books.settled_batches().await? > 0;
        let (unchanged, held_up) = (ledger.fence(UNIT).await? == registered, self.b.process.is_stopped());
        let seen = format!("registered as before: {unchanged}, held up: {held_up}");
        stage.must_bite(name, "A wakes while B holds the unit and has not written", seen, unchanged && held_up);
        if wrote {
            stage.tell("A", Mark::Damage, format!("its late write is in the ledger, though fence {} is B's", registered.fence));
        }
        Ok(wrote)
    }

    /// The damage of the control arm is what the judge finds. The books themselves hold there too: a batch has
    /// one state. (Both are told that they have settled it: A wrote under B's name, and B takes that for its own write.)
    async fn check_books(&self, committed: bool, reports: [Option<&Value>; 2]) -> Result<(), DrillError> {
        let Frozen { stage, name, arm, books, .. } = &self.frozen;
        match arm {
            Arm::Fence => {
                stage.must_hold(name, "the late write did not go in", format!("went in: {committed}"), !committed);
                let refused = stage.judge(name, books).await?;
                stage.must_bite(name, "the late write is refused", format!("{refused} refused"), refused > 0);
                self.check_reports(reports);
            }
            Arm::WithoutFence => {
                let judgement = stage.judgement(books, None).await?;
                let found = judgement.of(SUPERSEDED).map(|finding| finding.seen.clone()).unwrap_or_default();
                stage.must_break(name, "a superseded holder commits", found, judgement.breaks(SUPERSEDED));
                let verified = judgement.of(VERIFIED).map(|finding| finding.seen.clone()).unwrap_or_default();
                stage.must_hold(name, VERIFIED, verified, !judgement.breaks(VERIFIED));
            }
        }
        let settled = books.settled_batches().await?;
        let posted = number(books.url(), "SELECT count(*) FROM journal_entry WHERE kind = 'settle'")?;
        // it is of one currency
        let seen = format!("{settled} settled, posted {posted} times");
        stage.must_hold(name, "the batch is settled, and posted once", seen, settled == 1 && posted == 1);
        Ok(())
    }

    /// What the workers themselves say. An A that was told more than that it is superseded has no report.
    fn check_reports(&self, [a, b]: [Option<&Value>; 2]) {
        let Frozen { stage, name, .. } = &self.frozen;
        let of = |report: Option<&Value>, figure: &str| report.and_then(|report| report[figure].as_u64()).unwrap_or(0);
        let (by_a, by_b) = (of(a, "batches_settled"), of(b, "batches_settled"));
        stage.must_hold(name, "it is reported as settled once", format!("by A {by_a}, by B {by_b}"), by_a + by_b == 1);
        if a.is_some() {
            let fenced = of(a, "fenced");
            stage.must_bite(name, "A itself reports that it was refused", format!("fenced: {fenced}"), fenced > 0);
        }
    }
}

/// How long takeovers took, counted from `from`, beside the time to live of what was taken.
pub(super) fn figures(stage: &Stage, from: &str, all: &[Figures]) {
    let columns = ["arm", "TTL of A's lease (ms)", &format!("B registered, ms after {from}"), "A's late write"];
    let mut table = Table::new("Takeover and late write", columns);
    for figures in all {
        let late = if figures.committed { "committed" } else { "refused" };
        let (ttl, takeover) = (figures.ttl.as_millis().to_string(), figures.takeover.as_millis().to_string());
        table.row([figures.arm.clone(), ttl, takeover, late.to_owned()]);
    }
    stage.table(table);
}

fn tell_lock(stage: &Stage, instances: &[&Instance], service: &str, stored: &str) {
    let is_of = |instance: &&&Instance| holder_of(instance).is_some_and(|holder| stored.contains(&holder));
    match instances.iter().find(is_of) {
        Some(instance) => stage.tell(service, Mark::Note, format!("the lock is {}'s", instance.name())),
        None => stage.tell(service, Mark::Note, "nobody has the lock"),
    }
}

/// The id under which an instance asks for leases.
fn holder_of(instance: &Instance) -> Option<String> {
    let joined = instance.events().into_iter().find(|event| event["message"] == "run opened or joined")?;
    joined["holder.id"].as_str().map(str::to_owned)
}
