//! The key itself.

use super::super::{FOR_EVER, acquire, ask, name, run, takes};
use super::{connect, connector, keeper, key, pttl, redis_url};
use lab::proxy::{Proxy, Way};
use lab::redis::{Options, Redis};
use lease::{Acquire, LostWhy, Proof, Release, Renew};

/// A crash between any two bytes that we send. The whole of an acquisition with the script at its full length is below a thousand.
pub(super) fn no_eternal_lock() -> Result<(), lab::Error> {
    let server = Redis::start()?;
    let proxy = Proxy::start(server.address())?;
    let url = format!("redis://{}", proxy.address());
    run(async {
        let (mut held, mut free) = (0, 0);
        for bytes in (1..900).step_by(11) {
            for occupied in [false, true] {
                // in the way, or ours as after a lost reply: that is where the script comes in
                let ask = ask(FOR_EVER);
                server.command(&["FLUSHALL"]).expect("empty");
                server.command(&["SCRIPT", "FLUSH"]).expect("no script");
                let mut service = connect(&url).await;
                if occupied {
                    assert!(takes(&mut *service, &ask).await);
                }
                proxy.cut_after(Way::There, bytes);
                let _ = service.try_acquire(&ask).await;
                let _ = service.renew(&ask).await;
                match pttl(&server) {
                    -2 => free += 1,
                    left => {
                        assert!(left > 0, "PTTL {left} after {bytes} bytes");
                        held += 1;
                    }
                }
                proxy.heal();
            }
        }
        assert!(held > 80 && free > 5, "{held} were set, {free} were not: the cut has moved");
    });
    Ok(())
}

pub(super) fn foreign() -> Result<(), lab::Error> {
    let server = Redis::start()?;
    run(async {
        let (mut service, mine) = (connect(&redis_url(&server)).await, ask(FOR_EVER));
        server.command(&["SET", &key(), "somebody else"]).expect("set");
        let answer = service.try_acquire(&mine).await.expect("an answer");
        assert_eq!(answer, Acquire::HeldByAnother { holder: None, remaining: None });
        assert_eq!(service.renew(&mine).await.expect("an answer"), Renew::Lost);
        assert_eq!(service.release(&mine).await.expect("an answer"), Release::NotHeld);
        assert_eq!(server.command(&["GET", &key()]).expect("an answer"), "somebody else");

        server.command(&["RPUSH", "settled:a/list", "x"]).expect("set");
        server.command(&["SET", "settled:no name", "x"]).expect("set");
        let rows = service.inspect("").await.expect("rows");
        let seen: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.holder, row.expires_in_ms)).collect();
        assert_eq!(seen, [(name().as_str(), None, None), ("a/list", None, None)]);
    });
    Ok(())
}

pub(super) fn clock_step() -> Result<(), lab::Error> {
    let server = Redis::start_with(Options { own_clock: true, ..Options::default() })?;
    run(async {
        let url = redis_url(&server);
        let (mine, yours) = (keeper(connector(&url), FOR_EVER), keeper(connector(&url), FOR_EVER));
        let lease = acquire(&mine).await;
        server.set_clock("+3600s").expect("set");
        let theirs = acquire(&yours).await;
        assert!(lease.check().is_ok() && theirs.check().is_ok(), "two holders, neither of whom knows");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::NotOwner);
        assert_eq!(lease.check().expect_err("now it knows").why, LostWhy::TakenOver);
        assert_eq!(theirs.prove().await.expect("an answer"), Proof::Owner);
    });
    Ok(())
}
