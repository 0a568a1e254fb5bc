//! Grants that nobody takes: the caller went away, the reply was lost, or it came too late.

use super::clocks::Watch;
use super::place::Place;
use super::releases::poll_once;
use super::weather::{Sky, Weather};
use super::{FOR_EVER, acquire, acquire_within, backend, keeper, name, pause, run, someone, until};
use lease::{Keeper, KeeperSettings, LeaseError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Far below the TTL: what is free by then was released.
const SOON: Duration = Duration::from_secs(15);

pub(crate) fn cancelled(place: &Place) {
    run(async {
        let weather = Weather::default();
        let (mine, yours) = (weather.keeper(place, FOR_EVER), keeper(place, FOR_EVER));

        let wanted = name();

        // while it waits behind another request
        weather.set("inspect", Sky::Slow(200, 0));
        poll_once(mine.inspect(""));
        poll_once(mine.try_acquire(&name()));
        mine.inspect("").await.expect("rows");
        assert_eq!(weather.begun("acquire"), 0, "asked for nobody");

        // on the way there, on the way back, and after the reply came but before it was taken
        weather.set("acquire", Sky::Slow(200, 200));
        for (round, moment) in ["there", "back", "arrived"].into_iter().enumerate() {
            let times = u32::try_from(round).expect("few") + 1;
            let mut attempt = Box::pin(mine.try_acquire(&wanted));
            poll_once(attempt.as_mut());
            weather.until_begun("acquire", times).await;
            if moment != "there" {
                weather.until_done("acquire", times).await;
            }
            if moment == "arrived" {
                pause(400).await;
            }
            drop(attempt);
            weather.until_done("acquire", times).await;
            let theirs = acquire_within(&yours, SOON).await;
            assert_eq!(theirs.release().await, lease::Release::Released, "{moment}");
        }
    });
}

pub(crate) fn cancelled_at_random(place: &Place) {
    run(async {
        let (mine, mut service) = (keeper(place, FOR_EVER), backend(place).await);
        for round in 0..300u64 {
            let limit = Duration::from_micros(round * 10 % 3000);
            drop(tokio::time::timeout(limit, mine.try_acquire(&name())).await);
        }
        until("nothing is owned", SOON, async || service.inspect(name().as_str()).await.expect("rows").is_empty()).await;
        acquire(&mine).await;
    });
}

pub(crate) fn unanswered(place: &Place) {
    const TTL: Duration = Duration::from_secs(10);
    for sky in [Sky::HangsAfter, Sky::LosesReply] {
        run(async {
            let weather = Weather::default();
            let (mine, yours) = (weather.keeper(place, TTL), keeper(place, FOR_EVER));
            weather.set("acquire", sky);
            mine.try_acquire(&name()).await.expect_err("no answer");
            let asked = Instant::now();
            acquire_within(&yours, TTL).await;
            assert!(asked.elapsed() < TTL / 2, "it was not released, it expired");
        });
    }
}

pub(crate) fn lost_reply(place: &Place) {
    run(async {
        let weather = Weather::default();
        let mine = weather.keeper(place, FOR_EVER);
        mine.inspect("").await.expect("rows"); // a connection that has been used, and may have been closed unseen
        weather.set("acquire", Sky::LosesReply);
        weather.set("connect", Sky::Slow(500, 0)); // so that the weather has changed before the repeat
        let clears_up = async {
            weather.until_done("acquire", 1).await;
            weather.clear();
        };
        let (lease, ()) = tokio::join!(acquire(&mine), clears_up);
        assert_eq!(weather.begun("acquire"), 2);
        lease.check().expect("held");
        drop(lease);
    });
}

pub(crate) fn granted_too_late(place: &Place) {
    run(async {
        let (weather, watch) = (Weather::default(), Arc::new(Watch::default()));
        let settings = KeeperSettings::new(FOR_EVER);
        let mine = Keeper::start_with_clock(weather.connector(place), someone(), settings, watch.clone()).expect("a keeper");
        weather.set("acquire", Sky::Slow(0, 300));
        let suspend = async {
            weather.until_done("acquire", 1).await;
            watch.suspend(FOR_EVER);
        };
        let name = name();
        let (answer, ()) = tokio::join!(mine.try_acquire(&name), suspend);
        let error = answer.map(|lease| lease.is_some()).expect_err("too late");
        assert!(matches!(error, LeaseError::TimedOut { .. }), "{error}");
        let mut service = backend(place).await;
        until("given back", SOON, async || service.inspect(name.as_str()).await.expect("rows").is_empty()).await;
    });
}
