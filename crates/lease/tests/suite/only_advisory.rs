//! What is special about a grant that is a session: how it ends, who ends it, and what is between it and the server.

use super::child::{Child, Task};
use super::place::Place;
use super::weather::{Sky, Weather};
use super::{Case, FOR_EVER, SHORT, acquire, acquire_within, ask, backend, keeper, name, pause, run, someone, takes, until};
use lab::pgbouncer::{PgBouncer, PoolMode};
use lab::postgres::PostgresUrl;
use lab::proxy::{Proxy, Way};
use lease::{Connector, Keeper, KeeperSettings, LeaseError, LostWhy, PostgresAdvisoryConnector, Proof, Release, Renew};
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    ("a backend that is killed is a lease lost, known at the next beat (L20)", killed_backend),
    ("requests that timed out leave no lock and no session (L20)", nothing_left),
    ("a frozen process loses its session within the TTL (L20, R1)", frozen_process),
    ("a session lasts as long as its longest grant", longest_grant),
    ("the server's end is closed and the client's is not (L14)", half_open),
    ("cut off from the server, lost before another gets it (L2)", cut_off),
    ("a session is ended when the last of its grants is told (L10)", ended_after_the_last),
    ("the session says whose it is", shows_holder),
    ("a session is not granted its own lock twice (L29)", not_twice),
];

pub(crate) type PoolerCase = (&'static str, fn(&PostgresUrl) -> Result<(), lab::Error>);

pub(crate) const POOLER_CASES: &[PoolerCase] = &[
    ("a pooler of transactions is refused (L20)", |url| refused(url, PoolMode::Transaction)),
    ("a pooler of statements is refused (L20)", |url| refused(url, PoolMode::Statement)),
    ("a pooler of sessions will do", pooled_sessions),
    ("two databases of one server do not meet", two_databases),
];

const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'settled-lease%' AND datname = current_database()";

/// The network between a place and its server.
fn through_proxy(place: &Place) -> (Proxy, Place) {
    let Place::Advisory { url, .. } = place else { panic!("another service") };
    let (before, rest) = url.split_once('@').expect("user@host");
    let (server, database) = rest.split_once('/').expect("host:port/database");
    let proxy = Proxy::start(server.parse().expect("an address")).expect("a proxy");
    let url = format!("{before}@{}/{database}", proxy.address());
    (proxy, Place::Advisory { url, own: None })
}

fn killed_backend(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, SHORT * 3), keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        place.end_holding_sessions().await;
        // free at once: nothing of it is left, and what the holder still believes is the ledger's business
        let theirs = acquire(&yours).await;
        tokio::time::timeout(SHORT * 3, lease.lost()).await.expect("the next renewal says so");
        assert_eq!(lease.check().expect_err("killed").why, LostWhy::TakenOver);
        assert_eq!(lease.prove().await.expect("known"), Proof::NotOwner);
        assert_eq!(lease.release().await, Release::NotHeld);
        theirs.check().expect("the loser touched another's grant");
        assert_eq!(theirs.prove().await.expect("an answer"), Proof::Owner);
    });
}

fn nothing_left(place: &Place) {
    run(async {
        let weather = Weather::default();
        let mine = weather.keeper(place, SHORT * 5);
        for sky in [Sky::HangsAfter, Sky::LosesReply] {
            for doing in ["acquire", "renew"] {
                let lease = if doing == "renew" { Some(acquire_within(&mine, FOR_EVER).await) } else { None };
                weather.set(doing, sky);
                match &lease {
                    Some(lease) => drop(lease.prove().await.expect_err("no answer")),
                    None => drop(mine.try_acquire(&name()).await.expect_err("no answer")),
                }
                weather.clear();
                drop(lease);
                let begun = Instant::now();
                until("no lock is left", SHORT * 5, async || place.postgres_number(LOCKS).await == 0).await;
                assert!(begun.elapsed() < SHORT * 4, "it was not given back, it expired");
            }
        }
        until("one session", SHORT * 5, async || place.postgres_number(SESSIONS).await <= 1).await;
    });
}

fn frozen_process(place: &Place) {
    run(async {
        let mut child = Child::start(place, Task::HoldUntilLost { ttl: SHORT });
        assert_eq!(child.says(), "held");
        pause(u64::try_from(SHORT.as_millis()).expect("short")).await; // renewed meanwhile
        child.process.freeze().expect("frozen");
        let begun = Instant::now();
        assert_eq!(place.postgres_number(SESSIONS).await, 1);
        until("ended by the server", SHORT * 4, async || place.postgres_number(SESSIONS).await == 0).await;
        println!("a frozen session of TTL {SHORT:?} was ended after {:?}", begun.elapsed());
        let mut service = backend(place).await;
        assert!(takes(&mut *service, &ask(FOR_EVER)).await, "its lock went with it");
        child.process.wake().expect("awake");
        assert_eq!(child.says(), "first look after waking: lost");
    });
}

/// The connector was made for a shorter TTL than it is asked for.
fn longest_grant(place: &Place) {
    run(async {
        let mut mine = backend(place).await;
        let (long, begun) = (ask(SHORT * 3), Instant::now());
        assert!(takes(&mut *mine, &long).await);
        pause(u64::try_from((SHORT * 2).as_millis()).expect("short")).await;
        let mut yours = backend(place).await;
        assert!(!takes(&mut *yours, &ask(SHORT)).await, "its session ended before it");
        assert_eq!(mine.renew(&long).await.expect("an answer"), Renew::Renewed);
        until("over", SHORT * 6, async || takes(&mut *yours, &ask(SHORT)).await).await;
        assert!(begun.elapsed() >= SHORT * 5, "two TTLs of the longer one");
    });
}

fn half_open(place: &Place) {
    run(async {
        let (proxy, far) = through_proxy(place);
        let (mine, yours) = (keeper(&far, SHORT * 3), keeper(place, FOR_EVER));
        let lease = acquire(&mine).await;
        proxy.half_open();
        assert_eq!(acquire_within(&yours, SHORT).await.release().await, Release::Released);
        tokio::time::timeout(SHORT * 3, lease.lost()).await.expect("told, or by its deadline");
        lease.check().expect_err("lost");
        // and it goes on, on a connection that works
        acquire_within(&mine, SHORT * 6).await;
    });
}

fn cut_off(place: &Place) {
    run(async {
        let (proxy, far) = through_proxy(place);
        let (mine, mut service) = (keeper(&far, SHORT), backend(place).await);
        let lease = acquire(&mine).await;
        proxy.silence(Way::There);
        proxy.silence(Way::Back);
        let theirs = ask(FOR_EVER);
        until("free", SHORT * 4, async || takes(&mut *service, &theirs).await).await;
        assert_eq!(lease.check().expect_err("two holders").why, LostWhy::Deadline);
        proxy.heal();
        pause(500).await; // what was on the way arrives now
        assert_eq!(service.renew(&theirs).await.expect("an answer"), Renew::Renewed, "the loser touched another's grant");
        assert!(mine.try_acquire(&name()).await.expect("an answer").is_none());
    });
}

/// Two grants of one session that failed: neither is free before both are told.
fn ended_after_the_last(place: &Place) {
    run(async {
        let mut connector = place.connector();
        let (one, other) = (ask(FOR_EVER), lease::Ask { name: "x/unit/1".parse().expect("a name"), ..ask(FOR_EVER) });
        let mut first = connector.connect().await.expect("a connection");
        assert!(takes(&mut *first, &one).await && takes(&mut *first, &other).await);
        drop(first); // as after a request that failed
        let (mut second, mut yours) = (connector.connect().await.expect("another"), backend(place).await);
        let mut is_free = async |what: &lease::Ask| {
            let wanted = lease::Ask { name: what.name.clone(), ..ask(FOR_EVER) };
            takes(&mut *yours, &wanted).await
        };
        assert_eq!(second.renew(&one).await.expect("an answer"), Renew::Lost);
        assert!(!is_free(&one).await && !is_free(&other).await, "free while somebody believes in it");
        assert_eq!(second.renew(&other).await.expect("an answer"), Renew::Lost);
        assert!(!is_free(&other).await, "the answer may not have arrived");
        second.inspect("").await.expect("rows"); // whoever asks again has had his answer
        assert!(is_free(&one).await && is_free(&other).await);
    });
}

/// The server would: a session that has a lock gets it again, and must give it back as often.
fn not_twice(place: &Place) {
    run(async {
        let (mut service, mut yours, one) = (backend(place).await, backend(place).await, ask(FOR_EVER));
        let (other, theirs) = (lease::Ask { nonce: lease::Nonce::fresh(), ..one.clone() }, ask(FOR_EVER));
        assert!(takes(&mut *service, &one).await);
        assert!(!takes(&mut *service, &other).await, "another grant of the same holder");
        assert!(!takes(&mut *service, &ask(FOR_EVER)).await, "another holder");
        assert!(takes(&mut *service, &one).await, "the same grant");
        assert_eq!(service.release(&one).await.expect("an answer"), Release::Released);
        assert!(takes(&mut *yours, &theirs).await, "given back at once");
    });
}

fn shows_holder(place: &Place) {
    run(async {
        let holder = someone();
        let mine = Keeper::start(place.connector(), holder, KeeperSettings::new(FOR_EVER)).expect("a keeper");
        let _lease = acquire(&mine).await;
        let called = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'settled-lease {holder}'");
        assert_eq!(place.postgres_number(&called).await, 1);
        let rows = backend(place).await.inspect(name().as_str()).await.expect("rows");
        assert_eq!(rows.iter().map(|row| (&row.name, row.holder)).collect::<Vec<_>>(), [(&name(), Some(holder))]);
        // somebody else's program, in the same database, with a lock of its own
        let pool = place.postgres_pool().await;
        sqlx::query("SELECT pg_advisory_lock(1, 2), pg_advisory_lock(3)").execute(&pool).await.expect("locked");
        assert_eq!(backend(place).await.inspect(name().as_str()).await.expect("rows").len(), 1);
    });
}

/// The server's timers were set before: none of them takes the step for time that has passed.
pub(crate) fn stepped_clock() -> Result<(), lab::Error> {
    let place = Place::own_advisory()?;
    place.server().expect("its own").step_clocks(Duration::ZERO)?;
    run(async {
        let (mut mine, held) = (backend(&place).await, ask(FOR_EVER));
        assert!(takes(&mut *mine, &held).await);
        place.server().expect("its own").step_clocks(FOR_EVER * 10).expect("libfaketime");
        pause(6_000).await; // longer than any timer of a statement
        assert!(!takes(&mut *backend(&place).await, &ask(FOR_EVER)).await, "ended early");
        assert_eq!(mine.renew(&held).await.expect("an answer"), Renew::Renewed);
    });
    Ok(())
}

fn connector(url: &PostgresUrl) -> PostgresAdvisoryConnector {
    PostgresAdvisoryConnector::new(url.as_str(), SHORT).expect("a URL")
}

fn refused(url: &PostgresUrl, mode: PoolMode) -> Result<(), lab::Error> {
    let pooler = PgBouncer::start(url, mode)?;
    // others use it as well, so that it has sessions to choose from
    let busy: Vec<_> = (0..4).map(|_| pooler.url().query("select 1")).collect();
    busy.into_iter().collect::<Result<Vec<_>, _>>()?;
    run(async {
        let error = connector(pooler.url()).connect().await.err().expect("refused");
        let told = error.to_string();
        assert!(matches!(error, LeaseError::Invalid { .. }) && told.contains("pool_mode = session"), "{told}");
        let keeper = Keeper::start(Box::new(connector(pooler.url())), someone(), KeeperSettings::new(SHORT)).expect("a keeper");
        let error = keeper.try_acquire(&name()).await.expect_err("refused");
        assert!(error.to_string().contains("connect past the pooler"), "{error}");
    });
    assert_eq!(url.query(LOCKS)?, "0", "and it leaves nothing in a session of others");
    Ok(())
}

fn two_databases(url: &PostgresUrl) -> Result<(), lab::Error> {
    let name_of_other = format!("{}_2", url.query("select current_database()")?);
    let other = url.create_database(&name_of_other)?;
    run(async {
        let (mine, yours) = (keeper(&Place::advisory(url), FOR_EVER), keeper(&Place::advisory(&other), FOR_EVER));
        let (_one, _two) = (acquire(&mine).await, acquire(&yours).await);
        assert_eq!(mine.inspect(name().as_str()).await.expect("rows").len(), 1);
    });
    url.drop_database(&name_of_other)
}

fn pooled_sessions(url: &PostgresUrl) -> Result<(), lab::Error> {
    let pooler = PgBouncer::start(url, PoolMode::Session)?;
    let (pooled, place) = (Place::advisory(pooler.url()), Place::advisory(url));
    run(async {
        let (mine, yours) = (keeper(&pooled, SHORT), keeper(&place, SHORT));
        let lease = acquire(&mine).await;
        let begun = Instant::now();
        while begun.elapsed() < SHORT * 2 {
            assert!(yours.try_acquire(&name()).await.expect("an answer").is_none(), "two holders");
            lease.check().expect("renewed");
            pause(100).await;
        }
        assert_eq!(lease.release().await, Release::Released);
        let theirs = acquire(&yours).await;
        assert!(mine.try_acquire(&name()).await.expect("an answer").is_none());
        assert_eq!(theirs.release().await, Release::Released);
        // a process that dies behind a pooler is noticed by the pooler, which frees what its session held
        let mut child = Child::start(&pooled, Task::TryOnce { ttl: FOR_EVER });
        assert_eq!(child.says(), "granted");
        child.process.kill().expect("killed");
        acquire_within(&yours, Duration::from_secs(20)).await;
    });
    Ok(())
}
