//! Members that come and go.

use super::{connector, keeper_at, one, three};
use crate::suite::place::Place;
use crate::suite::{acquire, acquire_within, ask, keeper, name, pause, run, someone, takes, until};
use lab::ports;
use lab::proxy::Proxy;
use lease::{Keeper, KeeperSettings, LostWhy, TokenSource};
use std::time::{Duration, Instant};

/// An attempt is a fifth of it, and a new leader takes a second.
const TTL: Duration = Duration::from_secs(6);

pub(super) fn leader_killed() -> Result<(), lab::Error> {
    goes_on(|place, leader| place.cluster().kill(leader))
}

pub(super) fn leader_frozen() -> Result<(), lab::Error> {
    goes_on(|place, leader| place.cluster().freeze(leader))
}

/// Over a connection to the leader, and over all endpoints.
fn goes_on(end: fn(&Place, usize) -> Result<(), lab::Error>) -> Result<(), lab::Error> {
    let place = three()?;
    run(async {
        let leader = place.cluster().leader()?;
        let mut endpoints = place.cluster().endpoints();
        endpoints.rotate_left(leader);
        let (mine, yours) = (keeper_at(endpoints.clone(), TTL), keeper_at(endpoints, TTL));
        let lease = acquire(&mine).await;
        end(&place, leader)?;
        let start = Instant::now();
        let mut answers = 0;
        while start.elapsed() < TTL * 2 {
            lease.check().unwrap_or_else(|lost| panic!("{lost} after {:?}", start.elapsed()));
            match yours.try_acquire(&name()).await {
                Ok(got) => {
                    assert!(got.is_none(), "two holders");
                    answers += 1;
                }
                Err(error) => assert!(start.elapsed() < TTL, "{error}"),
            }
            pause(100).await;
        }
        assert!(answers > 0, "nothing was answered");
        Ok(())
    })
}

pub(super) fn bad_endpoints() -> Result<(), lab::Error> {
    let place = three()?;
    run(async {
        let frozen = (place.cluster().leader()? + 1) % 3;
        place.cluster().freeze(frozen)?;
        let mut endpoints = place.cluster().endpoints();
        endpoints.rotate_left(frozen);
        endpoints.insert(0, format!("127.0.0.1:{}", ports::free()?));
        // the shortest TTL, whose attempts are shortest
        let mine = Keeper::start(connector(endpoints), someone(), KeeperSettings::new(Duration::from_secs(2))).expect("a keeper");
        acquire_within(&mine, TTL).await;
        Ok(())
    })
}

/// It answers that it is well, and requests on it fail: nobody comes back to it at once.
pub(super) fn next_member() -> Result<(), lab::Error> {
    let place = three()?;
    run(async {
        let endpoints = place.cluster().endpoints();
        let networks: Vec<_> =
            endpoints.iter().map(|at| Proxy::start(at.parse().expect("an address")).expect("a proxy")).collect();
        let mut connector = connector(networks.iter().map(|network| network.address().to_string()).collect());
        for network in &networks {
            let before = network.accepted();
            connector.connect().await.expect("a connection");
            assert!(network.accepted() > before, "another one came first");
        }
        Ok(())
    })
}

/// The survivor of a cluster beside one that is well: a grant needs no second try.
pub(super) fn leaderless() -> Result<(), lab::Error> {
    let (place, well) = (three()?, one()?);
    run(async {
        place.cluster().kill(0)?;
        place.cluster().kill(1)?;
        let survivor = place.cluster().endpoints().remove(2);
        until("it follows nobody", TTL, async || connector(vec![survivor.clone()]).connect().await.is_err()).await;
        let mut both = connector(vec![survivor, well.cluster().endpoints().remove(0)]);
        let mut service = both.connect().await.expect("a connection");
        assert!(takes(&mut *service, &ask(TTL)).await);
        Ok(())
    })
}

pub(super) fn quorum() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(4);
    let place = three()?;
    run(async {
        let (mine, yours) = (keeper(&place, TTL), keeper(&place, TTL));
        let lease = acquire(&mine).await;
        place.cluster().kill(0)?;
        place.cluster().kill(1)?;
        lease.lost().await;
        assert_eq!(lease.check().expect_err("lost").why, LostWhy::Deadline);
        for keeper in [&mine, &yours, &yours] {
            let begun = Instant::now();
            keeper.try_acquire(&name()).await.map(|got| got.is_some()).expect_err("nothing is granted");
            assert!(begun.elapsed() < TTL, "{:?}", begun.elapsed());
            let begun = Instant::now();
            keeper.acquire(&name(), TTL * 10).await.map(|got| got.is_some()).expect_err("nothing is granted");
            assert!(begun.elapsed() < TTL, "{:?}", begun.elapsed());
        }
        place.cluster().start_all()?;
        acquire_within(&yours, TTL * 2).await;
        Ok(())
    })
}

pub(super) fn restored() -> Result<(), lab::Error> {
    let place = one()?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("snapshot");
    run(async {
        place.cluster().snapshot(&file)?;
        let mine = keeper(&place, TTL);
        for new_token in [false, true] {
            let before = mine.source().await.expect("an answer");
            let mut token = None;
            for _ in 0..5 {
                let lease = acquire_within(&mine, TTL * 2).await;
                assert!(lease.token() > token, "{:?} after {token:?}", lease.token());
                assert_eq!(lease.source(), &before);
                token = lease.token();
            }
            place.cluster().restore(&file, new_token)?;
            let lease = acquire_within(&mine, TTL * 2).await;
            assert!(lease.token() < token, "tokens went back");
            assert_eq!(lease.source() == &before, !new_token, "{:?} after {before:?}", lease.source());
            assert!(matches!(lease.source(), TokenSource::External { id } if id.starts_with("etcd:")));
        }
        Ok(())
    })
}
