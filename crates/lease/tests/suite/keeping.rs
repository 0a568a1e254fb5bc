//! What a lease survives.

use super::place::Place;
use super::weather::{Sky, Weather};
use super::{FOR_EVER, SHORT, acquire, keeper, name, pause, run};
use domain::ids::LedgerId;
use lease::{Keeper, Lease, LeaseName, LostWhy};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Nobody else gets it for `span`, and its holder never doubts.
async fn stays_held(lease: &Lease, other: &Keeper, span: Duration) {
    let start = Instant::now();
    while start.elapsed() < span {
        assert!(other.try_acquire(&name()).await.expect("an answer").is_none(), "two holders after {:?}", start.elapsed());
        lease.check().unwrap_or_else(|lost| panic!("{lost} after {:?}", start.elapsed()));
        pause(50).await;
    }
}

pub(crate) fn several_ttls(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, SHORT), keeper(place, SHORT));
        let lease = acquire(&mine).await;
        stays_held(&lease, &yours, SHORT * 3).await;
    });
}

pub(crate) fn blocked_workers(place: &Place) {
    let other = keeper(place, SHORT);
    run(async {
        let mine = keeper(place, SHORT);
        let lease = acquire(&mine).await;
        // both worker threads of this runtime, and the thread that drives it
        let spin = || {
            let start = Instant::now();
            while start.elapsed() < SHORT * 3 {
                std::hint::spin_loop();
            }
        };
        let busy: Vec<_> = (0..2).map(|_| tokio::spawn(async move { spin() })).collect();
        std::thread::sleep(SHORT * 3);
        lease.check().expect("still held");
        for task in busy {
            task.await.expect("no panic");
        }
        assert!(other.try_acquire(&name()).await.expect("an answer").is_none());
        lease.check().expect("still held");
    });
}

/// R7: work that has taken every connection of its pool takes none of the keeper's.
pub(crate) fn exhausted_pool(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, SHORT), keeper(place, SHORT));
        let _busy = place.busy_pool().await;
        let lease = acquire(&mine).await;
        stays_held(&lease, &yours, SHORT * 3).await;
    });
}

pub(crate) fn slow_neighbour(place: &Place) {
    const TTL: Duration = Duration::from_secs(3);
    run(async {
        let weather = Weather::default();
        let keeper = weather.keeper(place, TTL);
        let mut leases = Vec::new();
        for unit in 0..4 {
            let name = LeaseName::unit(LedgerId(Uuid::from_u128(9)), unit);
            leases.push(keeper.try_acquire(&name).await.expect("an answer").expect("free"));
        }
        let stuck = leases.swap_remove(0);
        weather.set_for("renew", stuck.name(), Sky::Hangs);
        let start = Instant::now();
        while start.elapsed() < TTL * 3 {
            for lease in &leases {
                assert!(lease.check().is_ok() || !place.outlives_connection(), "its own renewals are answered");
            }
            pause(20).await;
        }
        assert!(stuck.check().is_err());
        if !place.outlives_connection() {
            // what was asked over the connection that did not answer went with it, and everybody was told
            assert!(leases.iter().all(|lease| lease.check().is_err_and(|lost| lost.why == LostWhy::TakenOver)), "{leases:?}");
        }
    });
}

pub(crate) fn keeper_dropped(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, SHORT), keeper(place, SHORT));
        let lease = acquire(&mine).await;
        drop(mine);
        stays_held(&lease, &yours, SHORT * 2).await;
        drop(lease);
        super::acquire_within(&yours, SHORT / 2).await;
    });
}

pub(crate) fn failures_in_between(place: &Place) {
    if !place.outlives_connection() {
        return one_failure_is_a_loss(place);
    }
    const TTL: Duration = Duration::from_secs(4);
    run(async {
        let weather = Weather::default();
        let (mine, yours) = (weather.keeper(place, TTL), keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        for (sky, failed) in [(Sky::Fails, 2), (Sky::LosesReply, 4), (Sky::Hangs, 5), (Sky::HangsAfter, 6)] {
            weather.set("renew", sky);
            weather.until_begun("renew", weather.begun("renew") + failed.min(2)).await;
            weather.clear();
            let renewed = weather.begun("renew") + 1;
            weather.until_begun("renew", renewed).await;
            assert!(yours.try_acquire(&name()).await.expect("an answer").is_none(), "given up after {sky:?}");
            lease.check().unwrap_or_else(|lost| panic!("{lost} after {sky:?}"));
        }
        stays_held(&lease, &yours, TTL).await;
    });
}

/// The connection that failed was the grant: its holder is told at the next try, nobody has it before, and it is free then.
fn one_failure_is_a_loss(place: &Place) {
    const TTL: Duration = Duration::from_secs(4);
    for sky in [Sky::Fails, Sky::LosesReply, Sky::Hangs, Sky::HangsAfter] {
        run(async {
            let weather = Weather::default();
            let (mine, yours) = (weather.keeper(place, TTL), keeper(place, FOR_EVER));
            let lease = acquire(&mine).await;
            weather.set("renew", sky);
            weather.until_begun("renew", 1).await;
            assert!(
                yours.try_acquire(&name()).await.expect("an answer").is_none(),
                "free while its holder believes in it: {sky:?}"
            );
            lease.check().unwrap_or_else(|lost| panic!("{lost} after {sky:?}"));
            pause(1_000).await; // by now it has failed, whichever way
            weather.clear();
            super::until("told", FOR_EVER, async || lease.check().is_err()).await;
            assert_eq!(lease.check().expect_err("lost").why, LostWhy::TakenOver, "{sky:?}");
            super::acquire_within(&yours, TTL * 2).await;
        });
    }
}
