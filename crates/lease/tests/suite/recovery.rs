//! What happens after the lock service was away.

use super::place::Place;
use super::weather::{Sky, Weather};
use super::{SHORT, acquire_within, name, pause, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn after_everybody_lost(place: &Place) {
    run(async {
        let weather = Weather::default();
        let (grants, losses) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let keeper = weather.keeper(place, SHORT);
                let (grants, losses) = (Arc::clone(&grants), Arc::clone(&losses));
                tokio::spawn(async move {
                    loop {
                        if let Ok(Some(lease)) = keeper.try_acquire(&name()).await {
                            grants.fetch_add(1, Ordering::SeqCst);
                            lease.lost().await;
                            losses.fetch_add(1, Ordering::SeqCst);
                        }
                        pause(50).await;
                    }
                })
            })
            .collect();
        for outage in 1..=2 {
            super::until("granted", SHORT * 2, async || grants.load(Ordering::SeqCst) >= outage).await;
            weather.set_all(if outage == 1 { Sky::Hangs } else { Sky::Fails });
            super::until("lost", SHORT * 2, async || losses.load(Ordering::SeqCst) >= outage).await;
            pause(500).await;
            weather.clear();
        }
        super::until("progress", SHORT * 2, async || grants.load(Ordering::SeqCst) >= 3).await;
        workers.iter().for_each(tokio::task::JoinHandle::abort);
    });
}

pub(crate) fn starts_without_service(place: &Place) {
    run(async {
        let weather = Weather::default();
        weather.set_all(Sky::Fails);
        let keeper = weather.keeper(place, SHORT);
        for sky in [Sky::Fails, Sky::Hangs] {
            weather.set_all(sky);
            keeper.try_acquire(&name()).await.expect_err("nothing is granted without the service");
        }
        weather.clear();
        acquire_within(&keeper, SHORT * 2).await;
    });
}
