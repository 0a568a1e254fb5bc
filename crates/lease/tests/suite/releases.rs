//! What giving back does and says.

use super::place::Place;
use super::weather::{Sky, Weather};
use super::{FOR_EVER, SHORT, acquire, acquire_within, ask, backend, keeper, name, run, takes};
use domain::ids::LedgerId;
use lease::{LeaseName, LostWhy, Release, Renew};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;
use uuid::Uuid;

pub(crate) fn outcomes(place: &Place) {
    run(async {
        let weather = Weather::default();
        let mine = weather.keeper(place, SHORT);
        assert_eq!(acquire(&mine).await.release().await, Release::Released);

        // released after it expired unnoticed by anyone
        let lease = acquire(&mine).await;
        weather.set("renew", Sky::Hangs);
        weather.set("release", Sky::Fails);
        lease.lost().await;
        let mut service = backend(place).await;
        super::until("expired", SHORT * 3, async || {
            service.inspect(name().as_str()).await.expect("rows").iter().all(|row| row.expires_in_ms.is_some_and(|left| left < 0))
        })
        .await;
        weather.clear();
        let said = lease.release().await;
        // the keeper's own release after the loss may have come first
        assert!(matches!(said, Release::NotHeld), "{said:?}");
        acquire(&mine).await;
    });
}

pub(crate) fn unanswered(place: &Place) {
    run(async {
        for sky in [Sky::Fails, Sky::Hangs, Sky::LosesReply, Sky::HangsAfter] {
            let weather = Weather::default();
            let (mine, yours) = (weather.keeper(place, Duration::from_secs(5)), keeper(place, FOR_EVER));
            let lease = acquire(&mine).await;
            weather.set("release", sky);
            assert_eq!(lease.release().await, Release::Unknown, "{sky:?}");
            weather.clear();
            // it is repeated without us, long before the TTL is over
            let theirs = acquire_within(&yours, Duration::from_secs(3)).await;
            assert_eq!(theirs.release().await, Release::Released);
        }
    });
}

pub(crate) fn dropped(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, FOR_EVER), keeper(place, FOR_EVER));
        drop(acquire(&mine).await);
        drop(acquire_within(&yours, Duration::from_secs(10)).await);

        // a release that nobody waits for is a release
        let lease = acquire_within(&mine, Duration::from_secs(10)).await;
        poll_once(lease.release());
        drop(acquire_within(&yours, Duration::from_secs(10)).await);
    });
}

pub(crate) fn shutdown(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, FOR_EVER), keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        mine.shutdown().await;
        assert_eq!(lease.check().expect_err("given back").why, LostWhy::Released);
        acquire(&yours).await;
        assert_eq!(lease.release().await, Release::Unknown, "the keeper has ended");
    });
}

/// "Not held" to a repeat may be the repeat's own doing, so nobody is told more than "unknown"; but it is an answer.
pub(crate) fn shutdown_after_a_repeat(place: &Place) {
    run(async {
        let weather = Weather::default();
        let (mine, yours) = (weather.keeper(place, FOR_EVER), keeper(place, FOR_EVER));
        let other = LeaseName::unit(LedgerId(Uuid::from_u128(7)), 4);
        let first = acquire(&mine).await;
        let _second = mine.try_acquire(&other).await.expect("an answer").expect("a free lease");
        weather.set_for("release", &name(), Sky::LosesReply);
        assert_eq!(first.release().await, Release::Unknown);
        weather.clear();
        mine.shutdown().await;
        assert!(yours.try_acquire(&other).await.expect("an answer").is_some(), "it was not released");
    });
}

pub(crate) fn races(place: &Place) {
    run(async {
        let (mine, mut service) = (keeper(place, FOR_EVER), backend(place).await);
        for round in 0..1000 {
            let lease = acquire(&mine).await;
            poll_once(lease.prove()); // a renewal is under way now, and nobody waits for it
            if round % 3 == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(lease.release().await, Release::Released, "round {round}");
            let left = service.inspect(name().as_str()).await.expect("rows");
            assert_eq!(left, [], "round {round}: revived");
        }
    });
}

/// Two connections, as when a renewal was cut off but its request is still on the way.
pub(crate) fn races_at_the_service(place: &Place) {
    run(async {
        let (mut one, mut two) = (backend(place).await, backend(place).await);
        for round in 0..1000 {
            let ask = ask(FOR_EVER);
            assert!(takes(&mut *one, &ask).await, "round {round}");
            if !place.outlives_connection() {
                // nobody releases what another connection has; on its own there is no race
                let (renewed, released) = tokio::join!(one.renew(&ask), two.release(&ask));
                assert_eq!((renewed.expect("an answer"), released.expect("an answer")), (Renew::Renewed, Release::NotHeld));
                assert_eq!(one.release(&ask).await.expect("an answer"), Release::Released);
                assert_eq!(one.renew(&ask).await.expect("an answer"), Renew::Lost);
                assert_eq!(two.inspect(name().as_str()).await.expect("rows"), [], "round {round}: revived");
                continue;
            }
            // whichever is polled first tends to arrive first
            let (renewed, released) = if round % 2 == 0 {
                tokio::join!(one.renew(&ask), two.release(&ask))
            } else {
                let (released, renewed) = tokio::join!(two.release(&ask), one.renew(&ask));
                (renewed, released)
            };
            renewed.expect("an answer");
            assert_eq!(released.expect("an answer"), Release::Released, "round {round}");
            assert_eq!(two.inspect(name().as_str()).await.expect("rows"), [], "round {round}: revived");
        }
    });
}

/// Starts a future and drops it.
pub(super) fn poll_once(future: impl Future) {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    let _ = polled.is_ready();
}
