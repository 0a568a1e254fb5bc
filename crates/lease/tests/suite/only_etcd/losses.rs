//! How a lease is lost in etcd, and what does not prove that it is not.

use super::{connector, keys, lease_of, left_s, line, one, three};
use crate::suite::place::Place;
use crate::suite::{FOR_EVER, acquire, ask, keeper, pause, run, takes};
use domain::ids::LedgerId;
use lease::{Ask, Backend, LeaseName, LostWhy, Proof, Release, Renew};
use std::time::Duration;
use uuid::Uuid;

pub(super) fn revoked() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(3);
    let place = one()?;
    run(async {
        let mine = keeper(&place, TTL);
        let lease = acquire(&mine).await;
        // also right after a beat, over a stream that was used before
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
        let key = line(&place.cluster()).remove(0);
        place.cluster().ctl(&["lease", "revoke", lease_of(&key)]).expect("revoked");
        tokio::time::timeout(TTL, lease.lost()).await.expect("the next renewal says so");
        assert_eq!(lease.check().expect_err("lost").why, LostWhy::TakenOver);
        assert_eq!(lease.release().await, Release::NotHeld);

        // on a connection that has no stream yet
        let mut connector = place.connector();
        let mut first = connector.connect().await.expect("a connection");
        let ask = ask(FOR_EVER);
        assert!(takes(&mut *first, &ask).await);
        let key = line(&place.cluster()).remove(0);
        place.cluster().ctl(&["lease", "revoke", lease_of(&key)]).expect("revoked");
        let mut second = connector.connect().await.expect("a connection");
        assert_eq!(second.renew(&ask).await.expect("an answer"), Renew::Lost);
        assert_eq!(second.renew(&ask).await.expect("an answer"), Renew::Lost);
    });
    Ok(())
}

pub(super) fn key_deleted() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let mine = keeper(&place, FOR_EVER);
        let lease = acquire(&mine).await;
        let key = line(&place.cluster()).remove(0);
        place.cluster().ctl(&["del", &key]).expect("deleted");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::NotOwner);
        assert!(left_s(&place.cluster(), lease_of(&key)) > 0, "etcd still says yes to a keepalive");
        assert_eq!(lease.check().expect_err("lost").why, LostWhy::TakenOver);
    });
    Ok(())
}

/// The key is there, under its etcd lease, and it is not ours.
pub(super) fn key_replaced() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let mine = keeper(&place, FOR_EVER);
        let lease = acquire(&mine).await;
        let key = line(&place.cluster()).remove(0);
        place.cluster().ctl(&["del", &key]).expect("deleted");
        place.cluster().ctl(&["put", &key, "", "--lease", lease_of(&key)]).expect("put");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::NotOwner);
        assert_eq!(lease.release().await, Release::NotHeld);
        assert_eq!(line(&place.cluster()), [key], "it is another's");
    });
    Ok(())
}

/// A connection to one member.
async fn at(place: &Place, member: usize) -> Box<dyn Backend> {
    let endpoint = place.cluster().endpoints().remove(member);
    connector(vec![endpoint]).connect().await.expect("a connection")
}

/// It wakes with the question before it and the key in its memory.
pub(super) fn paused_leader() -> Result<(), lab::Error> {
    let place = three()?;
    run(async {
        for _ in 0..3 {
            let leader = place.cluster().leader()?;
            let mut service = at(&place, leader).await;
            let ask = ask(FOR_EVER);
            assert!(takes(&mut *service, &ask).await);
            assert_eq!(service.renew(&ask).await.expect("an answer"), Renew::Renewed);
            place.cluster().freeze(leader)?;
            let next = place.cluster().leader_besides(Some(leader))?;
            let mut other = at(&place, next).await;
            assert_eq!(other.release(&ask).await.expect("an answer"), Release::Released);
            let (answer, ()) = tokio::join!(service.renew(&ask), async {
                pause(200).await;
                place.cluster().wake(leader).expect("awake");
            });
            assert!(!matches!(answer, Ok(Renew::Renewed)), "it was released");
            place.cluster().wait_ready(leader)?;
        }
        Ok(())
    })
}

/// Many at once, because the moment in which it does not know yet is short.
pub(super) fn paused_leader_prolongs_nothing() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(20);
    let place = three()?;
    run(async {
        let mut renewed = 0;
        for round in 0..2 {
            let leader = place.cluster().leader()?;
            let mut renewals = Vec::new();
            for unit in 0..12 {
                let (mut service, ledger) = (at(&place, leader).await, LedgerId(Uuid::from_u128(round)));
                let ask = Ask { name: LeaseName::unit(ledger, unit), ..ask(TTL) };
                assert!(takes(&mut *service, &ask).await);
                assert_eq!(service.renew(&ask).await.expect("an answer"), Renew::Renewed);
                renewals.push(async move { (service.renew(&ask).await, ask) });
            }
            place.cluster().freeze(leader)?;
            place.cluster().leader_besides(Some(leader))?;
            pause(4_000).await; // its successor has begun to count
            let renewals: Vec<_> = renewals.into_iter().map(tokio::spawn).collect();
            pause(200).await;
            place.cluster().wake(leader)?;
            for renewal in renewals {
                let (answer, ask) = renewal.await.expect("no panic");
                if matches!(answer, Ok(Renew::Renewed)) {
                    renewed += 1;
                    let key = keys(&place.cluster(), &format!("settled/{}/", ask.name)).remove(0);
                    let left = left_s(&place.cluster(), lease_of(&key));
                    assert!(left >= 18, "renewed for {TTL:?}, and {left} s are left");
                }
            }
            place.cluster().wait_ready(leader)?;
        }
        assert!(renewed > 0, "nobody asked the paused leader: nothing was tried");
        Ok(())
    })
}
