//! The one etcd lease of a process, and what must not stay under it.

use super::{keeper_at, keys, lease_of, leases, line, one, proxy};
use crate::suite::place::Place;
use crate::suite::{FOR_EVER, acquire, acquire_within, ask, backend, keeper, name, pause, run, takes, until};
use domain::ids::LedgerId;
use lab::etcd::Etcd;
use lab::proxy::{Proxy, Way};
use lease::{Keeper, LeaseName, Proof, Release};
use std::time::Duration;
use uuid::Uuid;

const SOON: Duration = Duration::from_secs(15);

fn other(unit: i32) -> LeaseName {
    LeaseName::unit(LedgerId(Uuid::from_u128(9)), unit)
}

pub(super) fn one_lease() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let mine = keeper(&place, FOR_EVER);
        let mut held = Vec::new();
        for unit in 0..20 {
            held.push(mine.try_acquire(&other(unit)).await.expect("an answer").expect("free"));
        }
        assert_eq!(leases(&place.cluster()).len(), 1);
        held.truncate(1);
        until("released", SOON, async || keys(&place.cluster(), "settled/").len() == 1).await;
        assert_eq!(leases(&place.cluster()).len(), 1, "the others' end is not its own");
        mine.shutdown().await;
        assert_eq!(leases(&place.cluster()), Vec::<String>::new(), "given up at the end");
    });
    Ok(())
}

/// Its attempts take four seconds.
const LONG: Duration = Duration::from_secs(20);

/// An acquisition whose request is on its way when nobody waits for it any more. The old etcd lease is returned.
async fn cut_off(place: &Place, network: &Proxy, mine: &Keeper) -> String {
    for _ in 0..2 {
        drop(acquire_within(mine, SOON).await); // an etcd lease is there, then a stream is open as well
    }
    let old = leases(&place.cluster()).remove(0);
    for _ in 0..5 {
        until("released", SOON, async || line(&place.cluster()).is_empty()).await;
        network.delay(Duration::from_millis(500));
        let before = beats(&place.cluster());
        let silence = async {
            // the question for time has arrived; its answer and the key are under way
            until("asked for time", SOON, async || beats(&place.cluster()) > before).await;
            pause(500).await;
            network.silence(Way::There);
        };
        let name = name();
        let (got, ()) = tokio::join!(mine.try_acquire(&name), silence);
        assert_eq!(line(&place.cluster()).len(), usize::from(got.is_ok()));
        network.heal();
        if got.is_err() {
            return old;
        }
        // a busy machine was late: again
    }
    panic!("never cut off");
}

/// How many questions for more time have arrived.
fn beats(etcd: &Etcd) -> u32 {
    let metrics = etcd.metrics(0).expect("metrics");
    let line =
        metrics.lines().find(|line| line.starts_with("grpc_server_msg_received_total") && line.contains("\"LeaseKeepAlive\""));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// The request without an answer, once more and by hand, when everybody has forgotten it.
fn arrives_late(place: &Place, lease: &str) -> Result<String, lab::Error> {
    let key = format!("settled/{}/{lease}", name());
    place.cluster().ctl(&["put", &key, "late", "--lease", lease])
}

pub(super) fn late_put() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let network = proxy(&place);
        let (mine, yours) = (keeper_at(vec![network.address().to_string()], LONG), keeper(&place, FOR_EVER));
        let old = cut_off(&place, &network, &mine).await;
        until("revoked", SOON, async || !leases(&place.cluster()).contains(&old)).await;
        arrives_late(&place, &old).expect_err("it has no effect any more");
        acquire_within(&yours, SOON).await;
    });
    Ok(())
}

pub(super) fn late_put_beside_others() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let network = proxy(&place);
        let (mine, yours) = (keeper_at(vec![network.address().to_string()], LONG), keeper(&place, FOR_EVER));
        let kept = mine.try_acquire(&other(1)).await.expect("an answer").expect("free");
        let token = kept.token();
        let old = cut_off(&place, &network, &mine).await;
        if arrives_late(&place, &old).is_ok() {
            until("gone with its lease", SOON, async || line(&place.cluster()).is_empty()).await;
        }
        assert!(!leases(&place.cluster()).contains(&old), "the old one is revoked");
        acquire_within(&yours, SOON).await;
        assert_eq!(kept.prove().await.expect("an answer"), Proof::Owner);
        assert_eq!(kept.token(), token);
        assert_eq!(kept.release().await, Release::Released);
    });
    Ok(())
}

/// etcd is away for longer than anybody's patience, and gives every lease its whole time again when it is back.
pub(super) fn orphan() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(4);
    let place = one()?;
    run(async {
        let mine = keeper(&place, TTL);
        let lost = acquire(&mine).await;
        let old = line(&place.cluster());
        place.cluster().kill(0)?;
        lost.lost().await;
        tokio::time::sleep(TTL + TTL / 4).await; // its release is given up
        place.cluster().start_again(0)?;
        assert_eq!(line(&place.cluster()), old, "it came back with etcd");
        let kept = tokio::time::timeout(TTL, async {
            loop {
                if let Ok(Some(lease)) = mine.try_acquire(&other(1)).await {
                    break lease;
                }
            }
        });
        let kept = kept.await.expect("soon");
        let yours = keeper(&place, FOR_EVER);
        acquire_within(&yours, TTL * 3).await;
        kept.check().expect("still held, and so is its etcd lease");
        Ok(())
    })
}

pub(super) fn release_by_revision() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let (mut service, ask) = (backend(&place).await, ask(FOR_EVER));
        assert!(takes(&mut *service, &ask).await);
        let key = line(&place.cluster()).remove(0);
        place.cluster().ctl(&["del", &key]).expect("deleted");
        place.cluster().ctl(&["put", &key, "another's", "--lease", lease_of(&key)]).expect("put");
        assert_eq!(service.release(&ask).await.expect("an answer"), Release::NotHeld);
        assert_eq!(line(&place.cluster()), [key]);
    });
    Ok(())
}
