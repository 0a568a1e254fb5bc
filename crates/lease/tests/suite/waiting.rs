//! Waiting for a lease that somebody else has.

use super::place::Place;
use super::weather::{Sky, Weather};
use super::{FOR_EVER, acquire, acquire_within, keeper, name, pause, run};
use lease::{LeaseError, Release};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any of it takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn after_a_release(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, FOR_EVER), keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        let wait = tokio::spawn(async move { (yours.acquire(&name(), LIMIT).await, yours) });
        pause(700).await;
        assert!(!wait.is_finished(), "it is held");
        assert_eq!(lease.release().await, Release::Released);
        let (got, _yours) = wait.await.expect("no panic");
        got.expect("an answer").expect("free").check().expect("ours");
    });
}

pub(crate) fn limit(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, FOR_EVER), keeper(place, FOR_EVER));
        let _lease = acquire(&mine).await;
        let (limit, begun) = (Duration::from_millis(700), Instant::now());
        assert!(yours.acquire(&name(), limit).await.expect("an answer").is_none());
        assert!((limit..LIMIT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    });
}

/// Also in line: a place that nobody stands in any more must not hold up those behind it.
pub(crate) fn cancelled(place: &Place) {
    run(async {
        let (mine, yours, third) = (keeper(place, FOR_EVER), keeper(place, FOR_EVER), keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        for at in 0..12 {
            let span = Duration::from_millis(3 * at * at);
            tokio::time::timeout(span, yours.acquire(&name(), LIMIT)).await.expect_err("it is held");
        }
        assert_eq!(lease.release().await, Release::Released);
        acquire_within(&third, LIMIT).await;
    });
}

pub(crate) fn outage(place: &Place) {
    run(async {
        let weather = Weather::default();
        let (mine, yours) = (keeper(place, FOR_EVER), weather.keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        let wait = async {
            let answer = yours.acquire(&name(), LIMIT * 10).await;
            assert!(matches!(answer, Err(LeaseError::Unavailable { .. })), "{answer:?}");
        };
        let failure = async {
            weather.until_begun("acquire", 1).await;
            weather.set_all(Sky::Fails);
        };
        tokio::time::timeout(LIMIT * 2, async { tokio::join!(wait, failure) }).await.expect("told at once");
        weather.clear();
        drop(lease);
        acquire_within(&yours, LIMIT).await;
    });
}

/// As where a service refuses to tell us when it is our turn.
pub(crate) fn turns_in_vain(place: &Place) {
    run(async {
        let weather = Weather::default();
        let (mine, yours) = (keeper(place, FOR_EVER), weather.keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        weather.set("line", Sky::Restless);
        assert!(yours.acquire(&name(), Duration::from_secs(2)).await.expect("an answer").is_none());
        let asked = weather.begun("line");
        assert!((2..40).contains(&asked), "asked {asked} times in two seconds");
        assert_eq!(lease.release().await, Release::Released);
        acquire_within(&mine, LIMIT).await;
    });
}

/// Two hundred waiters in twenty-five processes: what a release costs does not grow with them.
pub(crate) fn no_herd(place: &Place) {
    const PROCESSES: usize = 25;
    const WAITERS: usize = 200;
    const RELEASES: u32 = 20;
    run(async {
        let weather = Weather::default();
        let mine = keeper(place, FOR_EVER);
        let first = acquire(&mine).await;
        let keepers: Vec<_> = (0..PROCESSES).map(|_| Arc::new(weather.keeper(place, FOR_EVER))).collect();
        let (said, mut granted) = tokio::sync::mpsc::unbounded_channel();
        let waiters: Vec<_> = (0..WAITERS)
            .map(|at| {
                let (keeper, said) = (Arc::clone(&keepers[at % PROCESSES]), said.clone());
                tokio::spawn(async move {
                    if let Ok(Some(lease)) = keeper.acquire(&name(), LIMIT * 10).await {
                        let _ = said.send(lease);
                    }
                })
            })
            .collect();
        weather.until_begun("acquire", u32::try_from(WAITERS).expect("few")).await;
        pause(2_000).await; // by now everybody's pauses are as long as they get
        let (mut held, mut asked, begun) = (first, 0, Instant::now());
        for _ in 0..RELEASES {
            let before = weather.begun("acquire") + weather.begun("line");
            assert_eq!(held.release().await, Release::Released);
            held = tokio::time::timeout(LIMIT, granted.recv()).await.expect("soon").expect("a waiter");
            asked += weather.begun("acquire") + weather.begun("line") - before;
        }
        waiters.iter().for_each(tokio::task::JoinHandle::abort);
        println!("{} requests per release, {WAITERS} waiters", asked / RELEASES);
        // Who waits without a line asks four times a second on average, released or not. If a release made everybody ask, there would be
        // two hundred more for each.
        let by_the_way = WAITERS as u128 * begun.elapsed().as_millis() / 250;
        let most = by_the_way * 3 / 2 + u128::from(RELEASES) * 20;
        assert!(
            u128::from(asked) < most,
            "{asked} requests in {RELEASES} releases, {by_the_way} by the way: everybody asks at once"
        );
    });
}
