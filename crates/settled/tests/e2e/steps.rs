//! SIGKILL and SIGSTOP at each step of the protocol, three instances: what happens is what the design's table says.
//!
//! Under every lock that a deployment can choose: by day at each Step with leases in the ledger's own database, and at the step that
//! counts most with each of the others; by night at all of them.
//!
//! A freezes (or dies) at a step; B and C start and take everything over; A wakes when they are done. Tags: R1 (a frozen node
//! loses its claim, wakes, goes on), R4 (rows claimed by the dead), M13 (killed between every pair of steps), L23 (one that lost
//! stops at the first refusal and reports it).

use crate::locks::{Lock, is_told, on_every_lock};
use crate::world::{Engine, Instance, TTL_MS, World, nightly, number, on_both};
use chrono::{DateTime, Utc};
use domain::step::Step;
use lab::trials::Suite;
use std::time::Duration;

const BATCHES: u64 = 24;

/// What A meets when it wakes after the takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meets {
    /// The run's key: it joins the run, and nothing is left to do.
    TheKey,
    /// The lock service: ownership is not proven.
    NotProven,
    /// The ledger, when it registers.
    RefusedAtRegister,
    /// Its own deadline.
    ItsDeadline,
    /// The ledger, when it writes.
    RefusedAtSettle,
    /// The lock service, when it releases.
    NotHeld,
    /// Nobody could take over: it commits, legally (SQLite has no server to end a frozen client).
    Commits,
    /// What it had in hand, settled by another. There was no lease to lose, so there is nothing to refuse.
    AlreadySettled,
}

/// Whether a worker passes this step under this lock.
fn is_passed(step: Step, lock: Lock) -> bool {
    let of_leases = [Step::LeaseAcquired, Step::OwnershipProven, Step::FenceRegistered, Step::BeforeRelease];
    lock.has_leases() || !of_leases.contains(&step)
}

fn meets(step: Step, engine: Engine, lock: Lock) -> Meets {
    match (step, engine) {
        (Step::RunPlanned, _) => Meets::TheKey,
        (Step::InsideSettleTx, Engine::Sqlite) => Meets::Commits,
        _ if !lock.has_leases() => Meets::AlreadySettled,
        (Step::LeaseAcquired, _) => Meets::NotProven,
        (Step::OwnershipProven, _) => Meets::RefusedAtRegister,
        (Step::FenceRegistered | Step::BatchesClaimed | Step::Settled, _) => Meets::ItsDeadline,
        (Step::BeforeSettleTx | Step::InsideSettleTx, _) => Meets::RefusedAtSettle,
        (Step::BeforeRelease, _) => Meets::NotHeld,
    }
}

pub(crate) fn add(mut suite: Suite) -> Suite {
    for step in Step::ALL {
        let counts = move |lock: Lock| step == Step::BeforeSettleTx || step == Step::InsideSettleTx && !lock.has_leases();
        let wanted = move |lock| is_passed(step, lock) && is_told(lock, counts(lock));
        suite = on_every_lock(
            suite,
            &format!("R1 SIGSTOP at {step}, woken after the takeover"),
            wanted,
            move |world, engine, lock| {
                frozen_and_woken(world, engine, lock, step);
            },
        );
        suite = on_every_lock(suite, &format!("M13 R4 SIGKILL at {step}"), wanted, move |world, _, _| killed(world, step));
    }
    for step in [Step::BatchesClaimed, Step::BeforeSettleTx, Step::InsideSettleTx, Step::Settled] {
        for nth in (2..=7).filter(|_| nightly()) {
            suite = on_both(suite, &format!("M13 SIGKILL at {step}, the {nth}. time"), move |world, _| {
                killed_later(world, step, nth)
            });
        }
    }
    suite
}

/// Few units and one batch a transaction: A's unit has more due when A goes.
fn small_steps(world: &World) -> World {
    world.with_more(&[("SETTLED__WORKER__PARTITIONS", "2"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "1")])
}

/// R1, R4, L23: whoever was frozen meets exactly what the table says, stops at the first refusal, and goes on to the end of the run.
fn frozen_and_woken(world: &World, engine: Engine, lock: Lock, step: Step) {
    let (world, meets) = (small_steps(world), meets(step, engine, lock));
    world.import_sample(u32::try_from(BATCHES).expect("few"), 5);
    let mut a = world.start("a", &["run", "--json", "--signal-at", &format!("{step}=stop")]);
    a.wait_stopped();
    let (mut b, mut c) = (world.start("b", &["run", "--json"]), world.start("c", &["run", "--json"]));
    if meets == Meets::Commits {
        // longer than the lease: nobody can write meanwhile, so nobody takes over either
        std::thread::sleep(Duration::from_millis(TTL_MS + 500));
        assert!(b.process.ended().expect("a child").is_none() && c.process.ended().expect("a child").is_none());
        a.process.wake().expect("a child");
    }
    let (b_did, c_did) = (b.end_well(), c.end_well());
    if meets == Meets::NotHeld {
        // nobody needs its unit any more, so nobody waited for the lease to be over
        std::thread::sleep(Duration::from_millis(TTL_MS + 500));
    }
    if meets != Meets::Commits {
        a.process.wake().expect("a child");
    }
    let a_did = a.end_well();
    assert_eq!(a_did["run_id"], b_did["run_id"], "one run");
    let settled: u64 = [&a_did, &b_did, &c_did].iter().map(|did| number(did, "batches_settled")).sum();
    assert_eq!(settled, BATCHES, "each once: {a_did} {b_did} {c_did}");
    world.assert_all_settled(BATCHES);
    for (instance, did) in [(&a, &a_did), (&b, &b_did), (&c, &c_did)] {
        assert_eq!(stamped(&world, instance), number(did, "batches_settled"), "the ledger says otherwise than {did}");
    }
    judge(meets, &world, &a, number(&a_did, "fenced"));
    if engine == Engine::Postgres && matches!(meets, Meets::RefusedAtRegister | Meets::RefusedAtSettle | Meets::ItsDeadline) {
        assert_takeover_in_time(lock, &a, &[&b, &c]);
    }
}

/// Batches that the ledger says this instance settled. One that never came to a run settled none.
fn stamped(world: &World, instance: &Instance) -> u64 {
    let joined = instance.events().into_iter().find(|event| event["message"] == "run opened or joined");
    let Some(joined) = joined else { return 0 };
    let holder = &joined["holder.id"];
    assert!(holder.is_string(), "{joined}");
    let by_it = |batch: &u64| {
        let shown = world.json(&["batch", "show", &batch.to_string(), "--json"]);
        assert_eq!(shown["state"], "settled");
        shown["stamp"]["holder"] == *holder
    };
    (1..=BATCHES).filter(by_it).count() as u64
}

fn judge(meets: Meets, world: &World, a: &Instance, fenced: u64) {
    let (rejections, log) = (world.rejections(), a.log());
    let refused_at = |operation: &str| {
        assert!(
            fenced > 0 && rejections.iter().all(|refused| refused == operation) && !rejections.is_empty(),
            "{rejections:?} {log}"
        );
        assert_eq!(log.matches("fenced: a newer holder").count(), 1, "said once, and nothing more is tried: {log}");
    };
    let never_refused = |words: &str| {
        assert!(fenced == 0 && rejections.is_empty(), "{rejections:?} {log}");
        assert!(words.is_empty() || log.contains(words), "no {words:?} in {log}");
    };
    match meets {
        Meets::TheKey | Meets::Commits | Meets::AlreadySettled => never_refused(""),
        Meets::NotProven => never_refused("not proven"),
        Meets::ItsDeadline => never_refused("stopped by its own deadline"),
        Meets::NotHeld => never_refused("not held any more"),
        Meets::RefusedAtRegister => refused_at("register"),
        Meets::RefusedAtSettle => refused_at("settle"),
    }
}

/// How long after its TTL a frozen holder is succeeded at the latest. etcd looks for expired leases twice a second, then has them
/// revoked one after the other.
const fn slack_ms(lock: Lock) -> u64 {
    match lock {
        Lock::Etcd => 2_000,
        _ => 1_000,
    }
}

/// The unit of the frozen one is registered by another within the bound that is stated.
fn assert_takeover_in_time(lock: Lock, a: &Instance, others: &[&Instance]) {
    let at = |event: &serde_json::Value| {
        event["timestamp"].as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok()).expect("a timestamp")
    };
    let frozen = at(&a.wait_for("signalling this process"));
    let of = |instance: &Instance| {
        instance.events().into_iter().filter(|event| event["message"].as_str().is_some_and(|m| m.starts_with("registered")))
    };
    let unit_of = |event: &serde_json::Value| event["unit"].as_i64();
    // woken, it may take another
    let a_unit = of(a).rfind(|event| at(event) <= frozen).as_ref().and_then(unit_of);
    let mut takeovers: Vec<DateTime<Utc>> = others
        .iter()
        .flat_map(|other| of(other))
        // before A registered, its unit is not in its log: then the last takeover is the one
        .filter(|event| a_unit.is_none() || unit_of(event) == a_unit)
        .map(|event| at(&event))
        .collect();
    takeovers.sort();
    let taken = if a_unit.is_some() { takeovers.first() } else { takeovers.last() };
    let after = (*taken.expect("somebody took over") - frozen).num_milliseconds();
    println!("{lock:?}: takeover after {after} ms, TTL {TTL_MS} ms");
    assert!(after <= i64::try_from(TTL_MS + slack_ms(lock)).expect("small"), "taken over after {after} ms");
}

fn killed(world: &World, step: Step) {
    let world = small_steps(world);
    world.import_sample(u32::try_from(BATCHES).expect("few"), 5);
    let mut a = world.start("a", &["run", "--json", "--signal-at", &format!("{step}=kill")]);
    let (code, _) = a.end();
    assert_eq!(code, -1, "killed: {}", a.log());
    let (mut b, mut c) = (world.start("b", &["run", "--json"]), world.start("c", &["run", "--json"]));
    let (b_did, c_did) = (b.end_well(), c.end_well());
    world.assert_all_settled(BATCHES);
    // What A committed before it died stays settled; the others do the rest, once.
    let by_a = stamped(&world, &a);
    match step {
        Step::Settled => assert_eq!(by_a, 1),
        // all of its unit
        Step::BeforeRelease => assert!((1..BATCHES).contains(&by_a), "{by_a} by A"),
        _ => assert_eq!(by_a, 0),
    }
    for (other, did) in [(&b, &b_did), (&c, &c_did)] {
        assert_eq!(stamped(&world, other), number(did, "batches_settled"), "{did}");
    }
    assert_eq!(by_a + stamped(&world, &b) + stamped(&world, &c), BATCHES, "each by one of them: {b_did} {c_did}");
    assert!(world.rejections().is_empty(), "the dead write nothing");
}

/// As [`killed`], with some of its work committed before.
fn killed_later(world: &World, step: Step, nth: u32) {
    let world = small_steps(world);
    world.import_sample(u32::try_from(BATCHES).expect("few"), 5);
    let (code, _) = world.start("a", &["run", "--json", "--signal-at", &format!("{step}=kill@{nth}")]).end();
    assert_eq!(code, -1, "killed");
    let by_a = u64::from(if step == Step::Settled { nth } else { nth - 1 });
    let did = world.json(&["run", "--json"]);
    assert_eq!(number(&did, "batches_settled") + by_a, BATCHES, "{did}");
    world.assert_all_settled(BATCHES);
}
