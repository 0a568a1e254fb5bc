//! Connections that die without a word, or in the middle of one.

use super::super::{FOR_EVER, acquire, ask, name, pause, run, takes, until};
use super::{connect, connector, keeper, pttl, redis_url};
use lab::proxy::{Proxy, Way};
use lab::redis::Redis;
use lease::{Proof, Release, Renew};
use std::time::{Duration, Instant};

/// Far below the TTL: what is gone by then did not expire.
const SOON: Duration = Duration::from_secs(15);

fn behind_a_proxy() -> Result<(Redis, Proxy, String), lab::Error> {
    let server = Redis::start()?;
    let proxy = Proxy::start(server.address())?;
    let url = format!("redis://{}", proxy.address());
    Ok((server, proxy, url))
}

pub(super) fn half_open() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(4);
    let (_server, proxy, url) = behind_a_proxy()?;
    run(async {
        // without a keeper the driver's own limit ends it
        let (mut service, asked) = (connect(&url).await, ask(TTL));
        proxy.half_open();
        let begun = Instant::now();
        service.try_acquire(&asked).await.expect_err("nobody is there");
        assert!(begun.elapsed() < TTL, "hung for {:?}", begun.elapsed());
        drop(service);

        let mine = keeper(connector(&url), TTL);
        let lease = acquire(&mine).await;
        for _ in 0..2 {
            let connections = proxy.accepted();
            proxy.half_open();
            while proxy.accepted() == connections {
                lease.check().expect("renewed on another connection in time");
                pause(20).await;
            }
        }
        pause(u64::try_from(TTL.as_millis()).expect("short")).await;
        lease.check().expect("renewed since");
        assert_eq!(lease.release().await, Release::Released);
    });
    Ok(())
}

pub(super) fn frozen() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(2);
    let mut server = Redis::start()?;
    let mine = keeper(connector(&redis_url(&server)), TTL);
    run(async { drop(acquire(&mine).await) });
    server.freeze()?;
    let begun = Instant::now();
    run(async { mine.try_acquire(&name()).await.map(|lease| lease.is_some()) }).expect_err("nobody answers");
    assert!(begun.elapsed() < TTL, "hung for {:?}", begun.elapsed());
    server.wake()?;
    run(async { super::super::acquire_within(&mine, TTL * 4).await });
    Ok(())
}

pub(super) fn lost_reply() -> Result<(), lab::Error> {
    let (server, proxy, url) = behind_a_proxy()?;
    run(async {
        for knows_scripts in [true, false] {
            let ask = ask(FOR_EVER);
            let forget = || {
                if !knows_scripts {
                    server.command(&["SCRIPT", "FLUSH"]).expect("no script");
                }
            };
            let mut service = connect(&url).await;
            proxy.cut_after(Way::Back, 1);
            service.try_acquire(&ask).await.expect_err("its answer was cut");
            until("it took effect", SOON, async || pttl(&server) > 0).await;

            forget();
            let mut again = connect(&url).await;
            assert!(takes(&mut *again, &ask).await, "it is ours already");
            assert!(!takes(&mut *again, &super::super::ask(FOR_EVER)).await, "and nobody else's");
            forget();
            assert_eq!(again.renew(&ask).await.expect("an answer"), Renew::Renewed);

            // a stranger's release shows how long the answers are; the last of them, `:0`, is the one to cut
            again.release(&super::super::ask(FOR_EVER)).await.expect("an answer");
            forget();
            let before = proxy.passed(Way::Back);
            again.release(&super::super::ask(FOR_EVER)).await.expect("an answer");
            let answers = proxy.passed(Way::Back) - before;
            assert_eq!(answers > 4, !knows_scripts, "{answers} bytes");
            forget();
            proxy.cut_after(Way::Back, answers - 3);
            again.release(&ask).await.expect_err("its answer was cut");
            until("it took effect", SOON, async || pttl(&server) == -2).await;
            assert_eq!(connect(&url).await.release(&ask).await.expect("an answer"), Release::NotHeld);
        }

        // the keeper does that by itself, once
        let mine = keeper(connector(&url), FOR_EVER);
        mine.inspect("").await.expect("rows");
        proxy.cut_after(Way::Back, 1);
        let lease = acquire(&mine).await;
        proxy.cut_after(Way::Back, 1);
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
    });
    Ok(())
}
