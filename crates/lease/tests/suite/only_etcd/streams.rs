//! Connections and streams that end, or do not.

use super::{keeper_at, line, one, proxy};
use crate::suite::place::Place;
use crate::suite::{acquire, acquire_within, name, pause, run};
use lab::proxy::Way;
use lease::{Lease, LostWhy, Proof, Release};
use std::time::Duration;

/// Long enough for a restart of etcd on a busy machine.
const TTL: Duration = Duration::from_secs(8);

pub(super) fn silence() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(4);
    let place = one()?;
    run(async {
        let network = proxy(&place);
        let keeper = keeper_at(vec![network.address().to_string()], TTL);
        let lease = acquire(&keeper).await;
        for way in [Way::Back, Way::There] {
            // short enough for an attempt to come in time
            network.silence(way);
            pause(1_500).await;
            network.heal();
            pause(u64::try_from(TTL.as_millis()).expect("short")).await;
            lease.check().unwrap_or_else(|lost| panic!("{lost} after {way:?}"));
        }
        network.silence(Way::Back);
        lease.lost().await;
        assert_eq!(lease.check().expect_err("lost").why, LostWhy::Deadline);
        network.heal();
        acquire_within(&keeper, TTL * 2).await;
    });
    Ok(())
}

pub(super) fn polite_end() -> Result<(), lab::Error> {
    survives(|place| place.cluster().terminate(0))
}

pub(super) fn killed() -> Result<(), lab::Error> {
    survives(|place| place.cluster().kill(0))
}

/// Twice: the client that was rebuilt must be one that can be rebuilt.
fn survives(end: fn(&Place) -> Result<(), lab::Error>) -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let mine = keeper_at(place.cluster().endpoints(), TTL);
        let lease = acquire(&mine).await;
        let before = line(&place.cluster());
        for _ in 0..2 {
            end(&place)?;
            place.cluster().start_again(0)?;
            still_held(&lease, TTL).await;
        }
        assert_eq!(line(&place.cluster()), before, "the same key, under the same etcd lease");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
        let yours = keeper_at(place.cluster().endpoints(), TTL);
        assert!(yours.try_acquire(&name()).await.expect("an answer").is_none());
        assert_eq!(lease.release().await, Release::Released);
        Ok(())
    })
}

async fn still_held(lease: &Lease, span: Duration) {
    let start = std::time::Instant::now();
    while start.elapsed() < span {
        lease.check().unwrap_or_else(|lost| panic!("{lost} after {:?}", start.elapsed()));
        pause(50).await;
    }
}
