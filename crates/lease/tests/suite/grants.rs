//! Who gets a lease.

use super::place::Place;
use super::{FOR_EVER, SHORT, acquire, ask, backend, keeper, name, pause, run, someone, takes};
use domain::ids::LedgerId;
use lease::{Acquire, Ask, Keeper, KeeperSettings, LeaseName, Nonce, Release, TokenSource};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

pub(crate) fn exclusion(place: &Place) {
    run(async {
        let keepers: Vec<Keeper> = (0..8).map(|_| keeper(place, FOR_EVER)).collect();
        let tries: Vec<_> = keepers
            .into_iter()
            .map(|keeper| tokio::spawn(async move { keeper.try_acquire(&name()).await.expect("an answer") }))
            .collect();
        // held until the last of them has its answer
        let mut leases = Vec::new();
        for got in tries {
            leases.extend(got.await.expect("no panic"));
        }
        assert_eq!(leases.len(), 1);
    });
}

pub(crate) fn after_release(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, FOR_EVER), keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        let source = mine.source().await.expect("an answer");
        assert_eq!(lease.token().is_none(), source == TokenSource::LedgerMinted, "{:?} of {source:?}", lease.token());
        assert!(yours.try_acquire(&name()).await.expect("an answer").is_none());
        assert_eq!(lease.release().await, Release::Released);
        acquire(&yours).await;
    });
}

pub(crate) fn after_expiry(place: &Place) {
    run(async {
        let (mut mine, mut yours) = (backend(place).await, backend(place).await);
        let before = Instant::now();
        assert!(takes(&mut *mine, &ask(SHORT)).await);
        let ask = ask(SHORT);
        while let Acquire::HeldByAnother { remaining, .. } = yours.try_acquire(&ask).await.expect("an answer") {
            assert!(remaining.is_none_or(|left| left <= SHORT), "{remaining:?}");
            assert!(before.elapsed() < SHORT * 4, "never granted");
            pause(5).await;
        }
        // one clock counts whole milliseconds
        let waited = before.elapsed() + Duration::from_millis(2);
        assert!(waited >= SHORT, "granted after {waited:?}");
    });
}

pub(crate) fn same_nonce_again(place: &Place) {
    run(async {
        let (mut first, mut second) = (backend(place).await, backend(place).await);
        let ask = ask(FOR_EVER);
        assert!(takes(&mut *first, &ask).await);
        if !place.outlives_connection() {
            assert!(takes(&mut *first, &ask).await);
            let other = second.try_acquire(&ask).await.expect("an answer");
            assert!(matches!(other, Acquire::HeldByAnother { .. }), "its connection is there, and has it: {other:?}");
            drop(first);
            super::until("gone with its connection", SHORT * 4, async || takes(&mut *second, &ask).await).await;
        }
        // the reply was lost, and so was the connection
        assert!(takes(&mut *second, &ask).await);
        assert_eq!(second.inspect(name().as_str()).await.expect("rows").len(), 1);
    });
}

/// A stable worker name instead of a UUID per process start: the restarted process must not take its predecessor's lease for its
/// own, nor two processes of one name share it.
pub(crate) fn holder_is_not_identity(place: &Place) {
    run(async {
        let (mut before, mut after) = (backend(place).await, backend(place).await);
        let first = ask(FOR_EVER);
        let restarted = Ask { nonce: Nonce::fresh(), ..first.clone() };
        assert!(takes(&mut *before, &first).await);
        let answer = after.try_acquire(&restarted).await.expect("an answer");
        assert!(matches!(answer, Acquire::HeldByAnother { holder: Some(holder), .. } if holder == first.holder), "{answer:?}");
        assert_eq!(after.release(&restarted).await.expect("an answer"), Release::NotHeld);
        assert_eq!(before.release(&first).await.expect("an answer"), Release::Released);
    });
}

pub(crate) fn two_tasks(place: &Place) {
    run(async {
        let keeper = Arc::new(keeper(place, FOR_EVER));
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let keeper = Arc::clone(&keeper);
                tokio::spawn(async move { keeper.try_acquire(&name()).await.expect("an answer") })
            })
            .collect();
        let mut got = Vec::new();
        for task in tasks {
            got.extend(task.await.expect("no panic"));
        }
        assert_eq!(got.len(), 1, "two tasks own one lease");
        drop(got);
        acquire(&keeper).await;
    });
}

pub(crate) fn inspect(place: &Place) {
    run(async {
        let holder = someone();
        let keeper = Keeper::start(place.connector(), holder, KeeperSettings::new(FOR_EVER)).expect("a keeper");
        let ledger = LedgerId(Uuid::from_u128(9));
        let mut kept = Vec::new();
        for unit in [2, 1] {
            kept.extend(keeper.try_acquire(&LeaseName::unit(ledger, unit)).await.expect("an answer"));
        }
        kept.extend(keeper.try_acquire(&name()).await.expect("an answer"));
        let rows = keeper.inspect(&ledger.to_string()).await.expect("rows");
        let names: Vec<_> = rows.iter().map(|row| row.name.clone()).collect();
        assert_eq!(names, [LeaseName::unit(ledger, 1), LeaseName::unit(ledger, 2)]);
        assert!(
            rows.iter()
                .all(|row| row.holder == Some(holder) && row.expires_in_ms.is_some_and(|left| (1..=60_000).contains(&left))),
            "{rows:?}"
        );
        assert_eq!(keeper.inspect("%").await.expect("rows"), [], "a prefix is no pattern");
    });
}
