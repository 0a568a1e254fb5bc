//! What only several servers have: majorities.

use super::only_redis::RedisCase;
use super::place::redis_url;
use super::{FOR_EVER, acquire, acquire_within, ask, name, run, takes};
use lab::proxy::{Proxy, Way};
use lab::redis::{Options, Redis, fleet};
use lease::{Acquire, Ask, Backend, Connector, Keeper, KeeperSettings, Proof, RedlockConnector, RedlockOptions, Release, Renew};
use std::time::{Duration, Instant};

pub(crate) const CASES: &[RedisCase] = &[
    ("two of five down works, three refuse, and it resumes when one is back", down),
    ("a restarted minority is missed, a restarted majority loses, and none is set anew", restarted),
    ("a server that fails at a renewal takes no other along", failing),
    ("a failed acquisition leaves nothing on any server", leaves_nothing),
    ("where nobody has a majority it is asked for again, for a while", split),
    ("slow and frozen servers do not make a grant late", slow),
    ("one clock that steps forward ends nothing (L16)", one_clock),
];

fn connector(urls: &[String]) -> Box<dyn Connector> {
    Box::new(RedlockConnector::new(RedlockOptions::new(urls)).expect("options that fit"))
}

fn urls(servers: &[Redis]) -> Vec<String> {
    servers.iter().map(redis_url).collect()
}

async fn connect(urls: &[String]) -> Box<dyn Backend> {
    connector(urls).connect().await.expect("a backend")
}

fn keeper(urls: &[String], ttl: Duration) -> Keeper {
    Keeper::start(connector(urls), super::someone(), KeeperSettings::new(ttl)).expect("a keeper")
}

fn key() -> String {
    format!("settled:{}", name())
}

fn value(of: &Ask) -> String {
    format!("{} {}", of.holder, of.nonce.0)
}

/// What is stored on each of them.
fn stored(servers: &[Redis]) -> Vec<String> {
    servers.iter().map(|server| server.command(&["GET", &key()]).expect("an answer")).collect()
}

fn down() -> Result<(), lab::Error> {
    let mut servers = fleet(5)?;
    let mine = keeper(&urls(&servers), Duration::from_secs(10));
    servers[0].kill()?;
    servers[3].kill()?;
    run(async {
        let lease = acquire(&mine).await;
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
        assert_eq!(mine.inspect("").await.expect("rows").len(), 1);
        assert_eq!(lease.release().await, Release::Released);
    });
    servers[1].kill()?;
    let refused = run(async { mine.try_acquire(&name()).await.map(|lease| lease.is_some()) }).expect_err("no majority");
    assert!(refused.to_string().contains("redlock of 5 servers: acquire: 2 answered"), "{refused}");
    run(async { mine.inspect("").await.map(|rows| rows.len()) }).expect_err("no majority");
    servers[3].start_again()?;
    run(acquire_within(&mine, Duration::from_secs(10)));
    Ok(())
}

fn restarted() -> Result<(), lab::Error> {
    let mut servers = fleet(5)?;
    let (urls, ask) = (urls(&servers), ask(FOR_EVER));
    let restart = |server: &mut Redis| server.kill().and_then(|()| server.start_again()).expect("started again");
    run(async {
        let mut service = connect(&urls).await;
        assert!(takes(&mut *service, &ask).await);
        servers[..2].iter_mut().for_each(restart);
        // on connections that ended with them, then on new ones
        assert_eq!(service.renew(&ask).await.expect("three answer"), Renew::Renewed);
        assert_eq!(service.renew(&ask).await.expect("five answer"), Renew::Renewed);
        let ours = value(&ask);
        assert_eq!(stored(&servers), ["(nil)", "(nil)", &ours, &ours, &ours]);
        restart(&mut servers[2]);
        service.renew(&ask).await.expect_err("the third says nothing on a connection that ended");
        assert_eq!(stored(&servers), ["(nil)", "(nil)", "(nil)", &ours, &ours], "nothing is given up before it is known");
        assert_eq!(service.renew(&ask).await.expect("five answer"), Renew::Lost);
        assert_eq!(stored(&servers), ["(nil)"; 5], "set anew, or left in everybody's way");
    });
    Ok(())
}

fn failing() -> Result<(), lab::Error> {
    let mut servers = fleet(5)?;
    let (urls, ask) = (urls(&servers), ask(FOR_EVER));
    run(async {
        let mut service = connect(&urls).await;
        assert!(takes(&mut *service, &ask).await);
        let ours = value(&ask);
        servers[0].kill().expect("killed");
        assert_eq!(service.renew(&ask).await.expect("four answer"), Renew::Renewed);
        assert_eq!(stored(&servers[1..]), [&*ours; 4]);
        // now it cannot be known, so nothing is given up
        servers[1].kill().expect("killed");
        servers[2].command(&["FLUSHALL"]).expect("forgotten");
        service.renew(&ask).await.expect_err("no majority either way");
        assert_eq!(stored(&servers[2..]), ["(nil)", &ours, &ours]);
        service.release(&ask).await.expect_err("a majority may have had it");
        assert_eq!(stored(&servers[2..]), ["(nil)"; 3]);
    });
    Ok(())
}

fn leaves_nothing() -> Result<(), lab::Error> {
    let servers = fleet(5)?;
    let proxy = Proxy::start(servers[0].address())?;
    let mut urls = urls(&servers);
    urls[0] = format!("redis://{}/0", proxy.address());
    for server in &servers[2..] {
        server.command(&["SET", &key(), "somebody else", "PX", "60000"])?;
    }
    run(async {
        let mut service = connect(&urls).await;
        service.inspect("").await.expect("rows"); // everybody is connected
        proxy.cut_after(Way::Back, 1);
        let answer = service.try_acquire(&ask(FOR_EVER)).await.expect("an answer");
        assert!(matches!(answer, Acquire::HeldByAnother { holder: None, remaining: Some(_) }), "{answer:?}");
        assert!(proxy.accepted() > 1, "its answer was not cut");
    });
    let left = stored(&servers);
    assert_eq!(left[..2], ["(nil)", "(nil)"], "the first set it and did not answer, the second set it");
    assert_eq!(left[2..], ["somebody else"; 3]);
    Ok(())
}

fn split() -> Result<(), lab::Error> {
    let servers = fleet(5)?;
    let occupy = |ms: &str| {
        for (server, who) in servers.iter().zip(["one", "one", "another", "another"]) {
            server.command(&["SET", &key(), who, "PX", ms]).expect("set");
        }
    };
    run(async {
        let mut service = connect(&urls(&servers)).await;
        occupy("60000");
        let answer = service.try_acquire(&ask(Duration::from_secs(4))).await.expect("an answer");
        assert_eq!(answer, Acquire::HeldByAnother { holder: None, remaining: None }, "nobody known");
        assert_eq!(stored(&servers)[4], "(nil)", "each try is given back");
        // a twentieth of this TTL is a second
        occupy("300");
        assert!(takes(&mut *service, &ask(FOR_EVER)).await, "asked once only");
    });
    Ok(())
}

fn slow() -> Result<(), lab::Error> {
    const TTL: Duration = Duration::from_secs(20);
    let mut servers = fleet(5)?;
    let proxy = Proxy::start(servers[0].address())?;
    let mut urls = urls(&servers);
    urls[0] = format!("redis://{}/0", proxy.address());
    proxy.delay(TTL / 4);
    servers[4].freeze()?;
    run(async {
        let mine = keeper(&urls, TTL);
        let begun = Instant::now();
        let lease = acquire(&mine).await;
        let (left, spent) = (lease.check().expect("held"), begun.elapsed());
        assert!(spent < TTL / 5, "granted after {spent:?}");
        assert!(left + spent <= TTL, "the time it took is not taken from it: {left:?} after {spent:?}");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
        assert_eq!(lease.release().await, Release::Released);
    });
    Ok(())
}

fn one_clock() -> Result<(), lab::Error> {
    let mut servers = fleet(4)?;
    servers.push(Redis::start_with(Options { own_clock: true, ..Options::default() })?);
    let urls = urls(&servers);
    run(async {
        let (mine, mut other) = (keeper(&urls, FOR_EVER), connect(&urls).await);
        let lease = acquire(&mine).await;
        servers[4].set_clock("+3600s").expect("set");
        assert!(!takes(&mut *other, &ask(FOR_EVER)).await);
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
    });
    Ok(())
}
