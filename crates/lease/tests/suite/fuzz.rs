//! The black box of all black boxes: read, wait, write, under a lease. Knows nothing of the backend.

use super::place::Place;
use super::{FOR_EVER, acquire_within, keeper, pause, run};
use lease::Release;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn no_lost_update(place: &Place) {
    const WORKERS: u32 = 4;
    const ROUNDS: u32 = 25;
    run(async {
        let counter = Arc::new(AtomicU32::new(0));
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (keeper, counter) = (keeper(place, FOR_EVER), Arc::clone(&counter));
                tokio::spawn(async move {
                    for _ in 0..ROUNDS {
                        let lease = acquire_within(&keeper, FOR_EVER).await;
                        let read = counter.load(Ordering::SeqCst);
                        pause(rand::random_range(0..3)).await;
                        counter.store(read + 1, Ordering::SeqCst);
                        assert_eq!(lease.release().await, Release::Released);
                        pause(rand::random_range(0..40)).await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.expect("no panic");
        }
        assert_eq!(counter.load(Ordering::SeqCst), WORKERS * ROUNDS);
    });
}
