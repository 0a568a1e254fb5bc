//! What a service declares beyond the contract is tried on the service; what it does not declare must be seen to be missing.

use super::child::{Child, Task};
use super::place::Place;
use super::{Case, acquire_within, ask, backend, keeper, name, pause, run, someone};
use lease::capability::{self, Capabilities};
use lease::{Acquire, Ask, Keeper, KeeperSettings, LeaseError, Line, Release, Renew, SERVICES, TokenSource};
use std::time::Duration;

/// Each gets a service of its own, which it may break.
pub(crate) const CASES: &[Case] = &[
    ("tokens are the service's own, or the ledger's (L21)", tokens),
    ("a grant and its connection", connection),
    ("a grant and a restart of the service", restart),
    ("a grant and the loss of a server", one_server_less),
    ("waiters and their line", line),
    ("a holder that dies", death),
    ("the shortest TTL is kept, a shorter one refused", shortest_ttl),
];

/// As [`CASES`], where the clocks of a service can be set: those of etcd cannot, for programs in Go read them without any library that
/// could be put before them. What it declares is what its sources say.
pub(crate) const CLOCK_CASES: &[Case] = &[("a grant and clocks that step forward (L16)", clock_step)];

/// Longer than a restart takes on a busy machine.
const LONG: Duration = Duration::from_secs(40);

/// The service behind a place, for those who break it.
pub(crate) trait Server {
    /// Kills every server of it and starts them again; returns when they answer.
    fn restart(&self);
    /// Kills one server of it.
    fn lose_one(&self);
    /// Sets the wall clocks of its servers forward while they run.
    fn step_clocks(&self, by: Duration) -> Result<(), lab::Error>;
}

fn of(place: &Place) -> Capabilities {
    place.connector().capabilities()
}

/// A renewal on a connection that works, once there is one.
async fn renewed(place: &Place, ask: &Ask) -> Result<Renew, LeaseError> {
    let mut connector = place.connector();
    let begun = std::time::Instant::now();
    loop {
        let answer = match connector.connect().await {
            Ok(mut backend) => backend.renew(ask).await,
            Err(error) => Err(error),
        };
        if answer.is_ok() || begun.elapsed() > LONG / 4 {
            return answer;
        }
        pause(100).await;
    }
}

async fn token_of(place: &Place) -> Option<i64> {
    let mine = keeper(place, LONG);
    let lease = acquire_within(&mine, LONG).await;
    let token = lease.token();
    assert_eq!(lease.release().await, Release::Released);
    mine.shutdown().await;
    token
}

fn tokens(place: &Place) {
    run(async {
        let declared = of(place).makes_tokens;
        let source = keeper(place, LONG).source().await.expect("an answer");
        assert_eq!(matches!(source, TokenSource::External { .. }), declared, "{source:?}");
        let mut last = None;
        for step in ["first", "after a release", "after a crash of the holder", "after a restart of the service"] {
            match step {
                "after a crash of the holder" => {
                    let mut child = Child::start(place, Task::TryOnce { ttl: of(place).shortest_ttl * 2 });
                    assert_eq!(child.says(), "granted");
                    child.process.kill().expect("killed");
                }
                "after a restart of the service" => {
                    let Some(server) = place.server() else { continue };
                    server.restart();
                }
                _ => {}
            }
            let token = token_of(place).await;
            assert_eq!(token.is_some(), declared, "{step}");
            assert!(!declared || token > last, "{step}: {token:?} after {last:?}");
            last = token;
        }
    });
}

fn connection(place: &Place) {
    run(async {
        let (ask, mut connector) = (ask(LONG), place.connector());
        let mut first = connector.connect().await.expect("a connection");
        assert!(matches!(first.try_acquire(&ask).await, Ok(Acquire::Granted { .. })));
        drop(first);
        let mut second = connector.connect().await.expect("another connection");
        let expected = if of(place).outlives_connection { Renew::Renewed } else { Renew::Lost };
        assert_eq!(second.renew(&ask).await.expect("an answer"), expected);
    });
}

fn restart(place: &Place) {
    run(async {
        let (ask, mut service) = (ask(LONG), backend(place).await);
        assert!(matches!(service.try_acquire(&ask).await, Ok(Acquire::Granted { .. })));
        if let Some(server) = place.server() {
            pause(1_000).await; // what a service flushes behind its answers is flushed by now
            server.restart();
        }
        let expected = if of(place).outlives_restart { Renew::Renewed } else { Renew::Lost };
        assert_eq!(renewed(place, &ask).await.expect("an answer"), expected);
    });
}

fn one_server_less(place: &Place) {
    run(async {
        let Some(server) = place.server() else {
            assert!(!of(place).outlives_minority, "there is no server to lose");
            return;
        };
        let (ask, mut service) = (ask(LONG), backend(place).await);
        assert!(matches!(service.try_acquire(&ask).await, Ok(Acquire::Granted { .. })));
        server.lose_one();
        let answer = renewed(place, &ask).await;
        assert_eq!(matches!(answer, Ok(Renew::Renewed)), of(place).outlives_minority, "{answer:?}");
    });
}

/// A test that may be ignored where libfaketime is missing.
fn clock_step(place: &Place) {
    run(async {
        let Some(server) = place.server() else {
            assert!(!of(place).withstands_clock_step, "whose clock should it be?");
            return;
        };
        let (mine, mut service) = (ask(LONG), backend(place).await);
        assert!(matches!(service.try_acquire(&mine).await, Ok(Acquire::Granted { .. })));
        server.step_clocks(LONG * 10).expect("libfaketime");
        pause(1_500).await; // for a service that looks for expired leases only now and then
        let withstands = of(place).withstands_clock_step;
        let (theirs, mut other, begun) = (ask(LONG), backend(place).await, std::time::Instant::now());
        let taken = loop {
            let answer = other.try_acquire(&theirs).await.expect("an answer");
            let taken = matches!(answer, Acquire::Granted { .. });
            if taken || withstands || begun.elapsed() > LONG / 4 {
                break taken;
            }
            pause(100).await;
        };
        assert_eq!(taken, !withstands);
        let expected = if taken { Renew::Lost } else { Renew::Renewed };
        // a connection that was the grant went with it
        let is_gone = taken && !of(place).outlives_connection;
        let answer = if is_gone { renewed(place, &mine).await } else { service.renew(&mine).await };
        assert_eq!(answer.expect("an answer"), expected);
    });
}

fn line(place: &Place) {
    run(async {
        let declared = of(place).keeps_line;
        let mine = keeper(place, LONG);
        let mut lease = acquire_within(&mine, LONG).await;
        let (theirs, mut service) = (ask(LONG), backend(place).await);
        let stands = service.stand_in_line(&theirs).await.expect("an answer");
        assert_eq!(matches!(stands, Line::Place(_)), declared);
        assert_ne!(service.release(&theirs).await.expect("an answer"), Release::Unknown);
        if !declared {
            return;
        }
        // first come, first served
        let waiters: Vec<Keeper> = (0..4).map(|_| keeper(place, LONG)).collect();
        let (said, mut served) = tokio::sync::mpsc::unbounded_channel();
        for (at, waiter) in waiters.into_iter().enumerate() {
            let said = said.clone();
            tokio::spawn(async move {
                let lease = waiter.acquire(&name(), LONG).await.expect("an answer").expect("in time");
                said.send((at, waiter, lease)).expect("somebody listens");
            });
            pause(400).await;
        }
        for expected in 0..4 {
            assert_eq!(lease.release().await, Release::Released);
            let (at, _waiter, next) = served.recv().await.expect("somebody is next");
            assert_eq!(at, expected, "who came first is served first");
            lease = next;
        }
    });
}

fn death(place: &Place) {
    run(async {
        let mut child = Child::start(place, Task::TryOnce { ttl: LONG });
        assert_eq!(child.says(), "granted");
        child.process.kill().expect("killed");
        let mut service = backend(place).await;
        let (theirs, begun) = (ask(LONG), std::time::Instant::now());
        let mut freed = false;
        while !freed && begun.elapsed() < LONG / 10 {
            freed = matches!(service.try_acquire(&theirs).await.expect("an answer"), Acquire::Granted { .. });
            pause(50).await;
        }
        assert_eq!(freed, of(place).notices_death);
    });
}

fn shortest_ttl(place: &Place) {
    let shortest = of(place).shortest_ttl;
    let start = |ttl| Keeper::start(place.connector(), someone(), KeeperSettings::new(ttl));
    let refused = start(shortest - Duration::from_millis(1)).err().expect("too short").to_string();
    assert!(refused.contains("TTL"), "{refused}");
    run(async {
        let mine = start(shortest).expect("a keeper");
        // a busy machine may stand still for half of a second: one of several must be kept
        for _ in 0..4 {
            let lease = acquire_within(&mine, LONG).await;
            pause(u64::try_from(shortest.as_millis() * 3).expect("short")).await;
            if lease.check().is_ok() {
                return;
            }
        }
        panic!("never kept for three TTLs of {shortest:?}");
    });
}

/// The table of the README, from what the services declare; printed for those who look.
pub(crate) fn matrix() {
    let table = capability::matrix(SERVICES);
    println!("{table}");
    assert_eq!(table.lines().count(), 11, "{table}");
    for of in SERVICES {
        assert!(table.contains(of.name));
    }
}
