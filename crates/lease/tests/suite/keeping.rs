//! What a lease survives.

use super::place::Place;
use super::weather::{Sky, Weather};
use super::{FOR_EVER, SHORT, acquire, keeper, name, pause, run};
use domain::ids::LedgerId;
use lease::{Keeper, Lease, LeaseName};
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
                lease.check().expect("its own renewals are answered");
            }
            pause(20).await;
        }
        assert!(stuck.check().is_err());
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
