//! Suspended machines, frozen processes.

use super::child::{Child, Task};
use super::place::Place;
use super::{FOR_EVER, SHORT, acquire, acquire_within, ask, backend, run, someone, takes};
use lease::{BootClock, BootInstant, Clock, Keeper, KeeperSettings, LostWhy, Renew};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The clock of a machine that can be suspended.
#[derive(Default)]
pub(crate) struct Watch(AtomicU64);

impl Watch {
    /// Everything but this clock stood still for `span`.
    pub(crate) fn suspend(&self, span: Duration) {
        self.0.fetch_add(u64::try_from(span.as_nanos()).expect("short"), Ordering::SeqCst);
    }
}

impl Clock for Watch {
    fn now(&self) -> BootInstant {
        BootClock.now() + Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) fn suspend(place: &Place) {
    run(async {
        let watch = Arc::new(Watch::default());
        let settings = KeeperSettings::new(FOR_EVER);
        let mine = Keeper::start_with_clock(place.connector(), someone(), settings, watch.clone()).expect("a keeper");
        let lease = acquire(&mine).await;
        watch.suspend(FOR_EVER / 2);
        lease.check().expect("not yet");
        watch.suspend(FOR_EVER / 2);
        // at once: no timer has fired, the keeper sleeps
        assert_eq!(lease.check().expect_err("lost").why, LostWhy::Deadline);
        tokio::time::timeout(Duration::from_secs(5), lease.lost()).await.expect("seen soon after waking");
        // nobody is waited for: the keeper gives the stale grant back, and the name is free
        acquire_within(&mine, Duration::from_secs(20)).await;
    });
}

pub(crate) fn frozen(place: &Place) {
    run(async {
        let mut child = Child::start(place, Task::HoldUntilLost { ttl: SHORT });
        assert_eq!(child.says(), "held");
        child.process.freeze().expect("frozen");
        let mut service = backend(place).await;
        let theirs = ask(FOR_EVER);
        super::until("expired", SHORT * 4, async || takes(&mut *service, &theirs).await).await;
        child.process.wake().expect("awake");
        assert_eq!(child.says(), "first look after waking: lost");
        assert_eq!(child.says(), "release: NotHeld");
        assert_eq!(service.renew(&theirs).await.expect("an answer"), Renew::Renewed, "the sleeper touched another's grant");
    });
}
