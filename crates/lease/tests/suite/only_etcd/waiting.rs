//! The line, and what becomes of it.

use super::{lease_of, line, one};
use crate::suite::{FOR_EVER, acquire, acquire_within, ask, backend, keeper, name, pause, run, takes, until};
use lab::etcd::Etcd;
use lease::{Ask, Backend, Keeper, KeeperSettings, LeaseError, Line, Release, Renew, Turn};
use std::time::{Duration, Instant};

/// Longer than any of it takes on a busy machine, and a third of the TTL of who waits: what is told by then was told unasked.
const SOON: Duration = Duration::from_secs(15);

pub(super) fn place_revoked() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let (mine, yours) = (keeper(&place, FOR_EVER), keeper(&place, FOR_EVER));
        let lease = acquire(&mine).await;
        let wait = tokio::spawn(async move { yours.acquire(&name(), FOR_EVER).await });
        until("in line", SOON, async || line(&place.cluster()).len() == 2).await;
        let rows = mine.inspect("").await.expect("rows");
        assert!(rows.len() == 1 && rows[0].holder == Some(lease.holder()), "who waits is no holder: {rows:?}");
        let second = line(&place.cluster()).remove(1);
        place.cluster().ctl(&["lease", "revoke", lease_of(&second)]).expect("revoked");
        let told = tokio::time::timeout(SOON, wait).await.expect("at once").expect("no panic");
        assert!(matches!(told, Err(LeaseError::Unavailable { .. })), "{told:?}");
        lease.check().expect("untouched");
        assert_eq!(lease.release().await, Release::Released);
        pause(300).await;
        assert_eq!(line(&place.cluster()), Vec::<String>::new(), "a grant to whom it was refused");
    });
    Ok(())
}

/// Twice, because an error on a connection that sat idle is asked again on a new one.
pub(super) fn place_gone_twice() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        for with_its_lease in [true, false] {
            let (mut mine, mut connector) = (backend(&place).await, place.connector());
            let (holds, waits) = (ask(FOR_EVER), ask(FOR_EVER));
            assert!(takes(&mut *mine, &holds).await);
            let mut yours = connector.connect().await.expect("a connection");
            let turn = turn_of(&mut *yours, &waits).await;
            let second = line(&place.cluster()).remove(1);
            let taken_away =
                if with_its_lease { ["lease", "revoke", lease_of(&second)].to_vec() } else { ["del", &second].to_vec() };
            place.cluster().ctl(&taken_away).expect("done");
            tokio::time::timeout(SOON, turn).await.expect("told that something changed");
            assert_eq!(mine.release(&holds).await.expect("an answer"), Release::Released);
            // the lock is free, and still they have waited in vain
            for _ in 0..2 {
                yours.try_acquire(&waits).await.expect_err("a grant out of a place that is gone");
                assert!(yours.stand_in_line(&waits).await.is_err());
                yours = connector.connect().await.expect("a connection");
            }
            assert_eq!(yours.release(&waits).await.expect("an answer"), Release::NotHeld);
            let next = ask(FOR_EVER);
            assert!(takes(&mut *yours, &next).await);
            assert_eq!(yours.release(&next).await.expect("an answer"), Release::Released);
        }
    });
    Ok(())
}

/// Also those that were asked for again follow the one before them and no other.
pub(super) fn order() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let (mut first, mut second, mut third) = (backend(&place).await, backend(&place).await, backend(&place).await);
        let (a, b, c) = (ask(FOR_EVER), ask(FOR_EVER), ask(FOR_EVER));
        assert!(takes(&mut *first, &a).await);
        let _ = (turn_of(&mut *second, &b).await, turn_of(&mut *third, &c).await);
        for _ in 0..2 {
            assert!(!takes(&mut *second, &b).await, "a place in line is no grant");
            assert_eq!(second.renew(&b).await.expect("an answer"), Renew::Lost, "nor is it owned");
        }
        let (seconds, mut thirds) = (turn_of(&mut *second, &b).await, turn_of(&mut *third, &c).await);
        assert_eq!(first.release(&a).await.expect("an answer"), Release::Released);
        tokio::time::timeout(SOON, seconds).await.expect("it is the second's turn");
        tokio::time::timeout(SOON / 30, &mut thirds).await.expect_err("and not the third's");
        assert!(!takes(&mut *third, &c).await);
        assert!(takes(&mut *second, &b).await);
        assert_eq!(second.release(&b).await.expect("an answer"), Release::Released);
        tokio::time::timeout(SOON, thirds).await.expect("now it is");
        assert!(takes(&mut *third, &c).await);
        assert_eq!(third.renew(&c).await.expect("an answer"), Renew::Renewed);
    });
    Ok(())
}

async fn turn_of(service: &mut dyn Backend, ask: &Ask) -> Turn {
    match service.stand_in_line(ask).await.expect("an answer") {
        Line::Place(turn) => turn,
        Line::None => panic!("no place"),
    }
}

pub(super) fn compaction() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let mine = keeper(&place, FOR_EVER);
        let lease = acquire(&mine).await;
        // a turn that nobody has begun to wait for
        let (mut service, waits) = (backend(&place).await, ask(FOR_EVER));
        let early = turn_of(&mut *service, &waits).await;
        let yours = keeper(&place, FOR_EVER);
        let wait = tokio::spawn(async move { (yours.acquire(&name(), FOR_EVER).await, yours) });
        until("in line", SOON, async || line(&place.cluster()).len() == 3).await;
        for n in ["1", "2", "3"] {
            place.cluster().ctl(&["put", "other", n]).expect("written");
        }
        place.cluster().compact().expect("compacted");
        // what it was to watch from is gone: it is not waited for silently
        tokio::time::timeout(SOON, early).await.expect("told");
        service.release(&waits).await.expect("an answer");
        assert!(!wait.is_finished(), "it is held");
        assert_eq!(lease.release().await, Release::Released);
        let (got, _yours) = tokio::time::timeout(SOON, wait).await.expect("soon").expect("no panic");
        got.expect("an answer").expect("free");
    });
    Ok(())
}

pub(super) fn cancelled() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let (mine, yours) = (keeper(&place, FOR_EVER), keeper(&place, FOR_EVER));
        let _lease = acquire(&mine).await;
        for limit in [500, 1_000] {
            let limit = Duration::from_millis(limit);
            assert!(yours.acquire(&name(), limit).await.expect("an answer").is_none());
            until("given up", SOON, async || line(&place.cluster()).len() == 1).await;
            tokio::time::timeout(limit, yours.acquire(&name(), FOR_EVER)).await.expect_err("it is held");
            until("given up", SOON, async || line(&place.cluster()).len() == 1).await;
        }
    });
    Ok(())
}

/// Two hundred processes, as etcd sees them.
pub(super) fn counted() -> Result<(), lab::Error> {
    const WAITERS: usize = 200;
    const RELEASES: u64 = 10;
    let place = one()?;
    run(async {
        let ttl = Duration::from_secs(600); // none of them asks again meanwhile
        let start = || Keeper::start(place.connector(), crate::suite::someone(), KeeperSettings::new(ttl)).expect("a keeper");
        let mine = start();
        let mut held = acquire_within(&mine, SOON).await;
        let (said, mut granted) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..WAITERS {
            let (keeper, said) = (start(), said.clone());
            tokio::spawn(async move {
                if let Ok(Some(lease)) = keeper.acquire(&name(), ttl).await {
                    let _ = said.send((lease, keeper));
                }
            });
        }
        until("all in line", SOON * 4, async || line(&place.cluster()).len() == WAITERS + 1).await;
        pause(1_000).await;
        let (before, begun) = (asked(&place.cluster()), Instant::now());
        let mut served = Vec::new();
        for _ in 0..RELEASES {
            assert_eq!(held.release().await, Release::Released);
            let (next, keeper) = tokio::time::timeout(SOON, granted.recv()).await.expect("soon").expect("a waiter");
            served.push(keeper);
            held = next;
        }
        let per_release = (asked(&place.cluster()) - before) / RELEASES;
        println!("{per_release} requests per release and grant, {WAITERS} in line, {RELEASES} releases in {:?}", begun.elapsed());
        // the delete; the successor's keepalive and transaction, and its keepalives' first on a new stream
        assert!((2..=8).contains(&per_release), "{per_release} requests per release");
    });
    Ok(())
}

/// Requests that came in, those in streams included.
fn asked(etcd: &Etcd) -> u64 {
    let metrics = etcd.metrics(0).expect("metrics");
    let received = metrics.lines().filter(|line| line.starts_with("grpc_server_msg_received_total"));
    let numbers = received.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    let sum: f64 = numbers.sum();
    format!("{sum:.0}").parse().expect("a whole number")
}
