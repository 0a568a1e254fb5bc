//! Primaries that change.

use super::super::{FOR_EVER, SHORT, acquire, acquire_within, ask, run, takes, until};
use super::{connector, keeper, pttl, redis_url, with};
use lab::proxy::{Proxy, Way};
use lab::redis::{PRIMARY_NAME, Redis, Trio};
use lease::{Connector, LostWhy, Proof, RedisOptions, Release, Renew};

fn options(trio: &Trio) -> RedisOptions {
    let sentinels = vec![format!("redis://{}", trio.sentinel_address())];
    RedisOptions { sentinels, ..RedisOptions::new(&format!("redis://{PRIMARY_NAME}/0")) }
}

fn by_sentinel(trio: &Trio) -> Box<dyn Connector> {
    with(options(trio))
}

pub(super) fn two_holders() -> Result<(), lab::Error> {
    let mut trio = Trio::start()?;
    let (mine, yours) = (keeper(by_sentinel(&trio), FOR_EVER), keeper(by_sentinel(&trio), FOR_EVER));
    trio.stop_replication()?;
    let lease = run(acquire(&mine));
    trio.first.kill()?;
    trio.wait_for_second()?;
    run(async {
        let theirs = acquire_within(&yours, SHORT).await;
        assert!(lease.check().is_ok() && theirs.check().is_ok(), "two holders, neither of whom knows");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::NotOwner);
        assert_eq!(lease.check().expect_err("now it knows").why, LostWhy::TakenOver);
        assert_eq!(lease.release().await, Release::NotHeld);
        assert_eq!(theirs.prove().await.expect("an answer"), Proof::Owner);
    });
    Ok(())
}

pub(super) fn demoted() -> Result<(), lab::Error> {
    let trio = Trio::start()?;
    let mine = keeper(by_sentinel(&trio), FOR_EVER);
    run(async {
        let lease = acquire(&mine).await;
        until("replicated", FOR_EVER, async || pttl(&trio.second) > 0).await;
        trio.fail_over().expect("a failover");
        // on the connection to the old primary, which answers READONLY
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
        lease.check().expect("held");
        assert!(!takes(&mut *by_sentinel(&trio).connect().await.expect("a connection"), &ask(FOR_EVER)).await);
        assert_eq!(lease.release().await, Release::Released);
        assert_eq!(pttl(&trio.second), -2, "released where the primary is now");
    });
    Ok(())
}

pub(super) fn read_only() -> Result<(), lab::Error> {
    let (server, other) = (Redis::start()?, Redis::start()?);
    run(async {
        let mut connector = connector(&redis_url(&server));
        let mut service = connector.connect().await.expect("a connection");
        assert!(takes(&mut *service, &ask(FOR_EVER)).await);
        server.command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).expect("a replica");
        until("it follows", FOR_EVER, async || {
            server.command(&["INFO", "replication"]).expect("an answer").contains("master_link_status:up")
        })
        .await;
        let shown = service.try_acquire(&ask(FOR_EVER)).await.expect_err("a replica").to_string();
        assert!(shown.to_uppercase().contains("READONLY") || shown.contains("read only"), "{shown}");
        let shown = connector.connect().await.err().expect("a replica").to_string();
        assert!(shown.contains("it is a replica"), "{shown}");
        server.command(&["REPLICAOF", "NO", "ONE"]).expect("a primary again");
        assert!(takes(&mut *connector.connect().await.expect("a connection"), &ask(FOR_EVER)).await);
    });
    Ok(())
}

pub(super) fn silent_sentinel() -> Result<(), lab::Error> {
    let trio = Trio::start()?;
    let proxy = Proxy::start(trio.sentinel_address())?;
    proxy.silence(Way::Back);
    let mut options = options(&trio);
    options.sentinels.insert(0, format!("redis://{}", proxy.address()));
    let mine = keeper(with(options), SHORT);
    run(acquire_within(&mine, SHORT * 4));

    let mut nowhere = self::options(&trio);
    nowhere.url = "redis://nobody".to_owned();
    let shown = run(with(nowhere).connect()).err().expect("no such primary").to_string();
    assert!(shown.contains("\"nobody\""), "{shown}");
    Ok(())
}

pub(super) fn not_replicated() -> Result<(), lab::Error> {
    let trio = Trio::start()?;
    let mut connector = with(RedisOptions { wait_replicas: 1, ..options(&trio) });
    run(async {
        let mut service = connector.connect().await.expect("a connection");
        let kept = ask(FOR_EVER);
        assert!(takes(&mut *service, &kept).await);
        assert!(pttl(&trio.second) > 0, "granted, so the replica has it");
        assert_eq!(service.renew(&kept).await.expect("an answer"), Renew::Renewed);

        trio.stop_replication().expect("stopped");
        let shown = service.renew(&kept).await.expect_err("it may be forgotten").to_string();
        assert!(shown.contains("0 of 1 replicas"), "{shown}");
        assert!(pttl(&trio.first) > 0, "a renewal gives nothing back");
        let mut service = connector.connect().await.expect("a connection");
        assert_eq!(service.release(&kept).await.expect("an answer"), Release::Released);

        let shown = service.try_acquire(&ask(FOR_EVER)).await.expect_err("nobody else has it").to_string();
        assert!(shown.contains("0 of 1 replicas"), "{shown}");
        assert_eq!(pttl(&trio.first), -2, "given back");
    });
    Ok(())
}
