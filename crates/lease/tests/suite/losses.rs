//! How a lease is lost.

use super::place::Place;
use super::weather::{Sky, Weather};
use super::{FOR_EVER, SHORT, acquire, ask, backend, name, pause, run, takes, until};
use lease::{Acquire, Ask, LostWhy, Proof, Release, Renew};
use std::time::Instant;

pub(crate) fn by_deadline(place: &Place) {
    for sky in [Sky::Hangs, Sky::Fails] {
        run(async {
            let weather = Weather::default();
            let mine = weather.keeper(place, SHORT);
            let lease = super::acquire_within(&mine, SHORT * 3).await;
            weather.set_all(sky);
            let mut yours = backend(place).await;
            let start = Instant::now();
            let theirs = ask(SHORT);
            while !matches!(yours.try_acquire(&theirs).await.expect("an answer"), Acquire::Granted { .. }) {
                assert!(start.elapsed() < SHORT * 4, "never granted");
                pause(5).await;
            }
            // the one thing a lease is for: whoever holds it next, the last one knew before
            assert_eq!(lease.check().expect_err("two holders").why, LostWhy::Deadline);
            lease.lost().await;
            assert!(weather.begun("renew") + weather.begun("connect") >= 3, "one attempt hung for all of the TTL");

            weather.clear();
            pause(300).await;
            assert_eq!(lease.check().expect_err("loss is final").why, LostWhy::Deadline);
            assert_eq!(lease.prove().await.expect("known without asking"), Proof::NotOwner);
            assert_eq!(lease.release().await, Release::NotHeld);
            assert_eq!(yours.renew(&theirs).await.expect("an answer"), Renew::Renewed, "the loser touched another's grant");
        });
    }
}

pub(crate) fn by_takeover(place: &Place) {
    run(async {
        let weather = Weather::default();
        let mine = weather.keeper(place, SHORT);
        let lease = acquire(&mine).await;
        let mut service = backend(place).await;
        let theirs = ask(FOR_EVER);
        take(place, &mut *service, &theirs).await;

        tokio::time::timeout(SHORT, lease.lost()).await.expect("the next renewal says so");
        assert_eq!(lease.check().expect_err("taken over").why, LostWhy::TakenOver);
        let asked = weather.begun("renew");
        pause(u64::try_from(SHORT.as_millis()).expect("short")).await;
        assert_eq!(weather.begun("renew"), asked, "renewals go on after a loss");
        assert_eq!(lease.check().expect_err("final").why, LostWhy::TakenOver);
        assert_eq!(lease.release().await, Release::NotHeld);
        assert_eq!(service.renew(&theirs).await.expect("an answer"), Renew::Renewed, "the loser touched another's grant");
    });
}

/// Makes the stored grant vanish and puts another in its place, as an expiry that only the service noticed would.
async fn take(place: &Place, service: &mut dyn lease::Backend, theirs: &Ask) {
    if !place.outlives_connection() {
        place.end_holding_sessions().await;
        assert_eq!(service.try_acquire(theirs).await.expect("an answer"), Acquire::Granted { token: None });
        return;
    }
    let row = service.inspect(name().as_str()).await.expect("rows").remove(0);
    let (holder, nonce) = (row.holder.expect("a holder"), row.nonce.expect("a nonce"));
    let stored = Ask { name: row.name, holder, nonce, ttl: FOR_EVER };
    assert_eq!(service.release(&stored).await.expect("an answer"), Release::Released);
    assert!(takes(&mut *service, theirs).await);
}

pub(crate) fn late_renewal(place: &Place) {
    run(async {
        let mut service = backend(place).await;
        let mine = ask(SHORT);
        assert!(takes(&mut *service, &mine).await);
        until("expired", SHORT * 4, async || {
            service.inspect(name().as_str()).await.expect("rows").iter().all(|row| row.expires_in_ms.is_some_and(|left| left < 0))
        })
        .await;
        assert_eq!(service.renew(&mine).await.expect("an answer"), Renew::Lost);
        let rows = service.inspect(name().as_str()).await.expect("rows");
        assert!(rows.iter().all(|row| row.expires_in_ms.is_some_and(|left| left <= 0)), "revived: {rows:?}");
        assert!(takes(&mut *service, &ask(SHORT)).await);
        assert_eq!(service.renew(&mine).await.expect("an answer"), Renew::Lost);
    });
}

pub(crate) fn foreign_renewal(place: &Place) {
    run(async {
        let mut service = backend(place).await;
        let mine = ask(FOR_EVER);
        assert!(takes(&mut *service, &mine).await);
        let other_holder = Ask { holder: super::someone(), ..mine.clone() };
        let other_grant = Ask { nonce: lease::Nonce::fresh(), ..mine.clone() };
        for foreign in [other_holder, other_grant] {
            assert_eq!(service.renew(&foreign).await.expect("an answer"), Renew::Lost);
            assert_eq!(service.release(&foreign).await.expect("an answer"), Release::NotHeld);
        }
        assert_eq!(service.renew(&mine).await.expect("an answer"), Renew::Renewed);
    });
}

pub(crate) fn proof(place: &Place) {
    run(async {
        let weather = Weather::default();
        let mine = weather.keeper(place, FOR_EVER);
        let lease = acquire(&mine).await;
        pause(50).await;
        let before = lease.check().expect("held");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
        assert!(lease.check().expect("held") > before, "a proof extends");

        weather.set("renew", Sky::Fails);
        lease.prove().await.expect_err("no answer is no proof");
        lease.check().expect("and no loss");
        weather.clear();

        let mut service = backend(place).await;
        take(place, &mut *service, &ask(FOR_EVER)).await;
        lease.check().expect("nobody has told us yet");
        assert_eq!(lease.prove().await.expect("an answer"), Proof::NotOwner);
        assert_eq!(lease.check().expect_err("now we know").why, LostWhy::TakenOver);
    });
}
