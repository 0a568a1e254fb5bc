//! Sessions that did not answer: what is said of their grants, and that they cost no other session anything.

use super::super::place::Place;
use super::super::{FOR_EVER, acquire, ask, backend, keeper, pause, run, takes, until};
use super::through_proxy;
use lab::proxy::Way;
use lease::{Acquire, Ask, Backend, Connector, LeaseError, Proof, Release, Renew};
use std::process::Command;
use std::time::Duration;

/// Less than a server is waited for that does not end a session, and much more than anything else takes here.
const AT_ONCE: Duration = Duration::from_millis(2_500);

/// Another unit, for the same holder: the session is called after him.
fn also(of: &Ask, unit: u32) -> Ask {
    Ask { name: format!("x/unit/{unit}").parse().expect("a name"), nonce: lease::Nonce::fresh(), ..of.clone() }
}

async fn is_free(service: &mut dyn Backend, what: &Ask) -> bool {
    let wanted = Ask { name: what.name.clone(), ..ask(FOR_EVER) };
    takes(service, &wanted).await
}

/// A session that has these, and a connector that was told that it does not answer.
async fn given_up(place: &Place, grants: &[&Ask]) -> Box<dyn Connector> {
    let mut connector = place.connector();
    let mut session = connector.connect().await.expect("a connection");
    for ask in grants {
        assert!(takes(&mut *session, ask).await);
    }
    connector
}

/// The keeper has no reason to look for a third of the TTL.
pub(super) fn ended_unseen(place: &Place) {
    run(async {
        for gives_back in [true, false] {
            let (mine, yours) = (keeper(place, FOR_EVER), keeper(place, FOR_EVER));
            let lease = acquire(&mine).await;
            place.end_holding_sessions().await;
            let theirs = acquire(&yours).await;
            if gives_back {
                assert_eq!(theirs.release().await, Release::Released);
                assert_ne!(lease.release().await, Release::Released, "another had it meanwhile");
            } else {
                assert_ne!(lease.release().await, Release::Released, "another has it");
                assert_eq!(theirs.prove().await.expect("an answer"), Proof::Owner);
                assert_eq!(theirs.release().await, Release::Released);
            }
        }
    });
}

/// The session is there, and its lock is not: the first release arrived.
pub(super) fn released_unheard(place: &Place) {
    run(async {
        let (proxy, far) = through_proxy(place);
        let (mut connector, mut yours) = (far.connector(), backend(place).await);
        let (one, theirs) = (ask(FOR_EVER), ask(FOR_EVER));
        let mut first = connector.connect().await.expect("a connection");
        // a statement that is known to the server goes there in one message
        let before = also(&one, 1);
        assert!(takes(&mut *first, &before).await);
        assert_eq!(first.release(&before).await.expect("an answer"), Release::Released);
        assert!(takes(&mut *first, &one).await);
        proxy.silence(Way::Back);
        let unheard = tokio::time::timeout(Duration::from_millis(300), first.release(&one)).await;
        unheard.expect_err("its reply is lost");
        drop(first);
        until("the release arrived", FOR_EVER / 4, async || takes(&mut *yours, &theirs).await).await;
        proxy.heal();
        let mut second = connector.connect().await.expect("another");
        assert_eq!(second.release(&one).await.expect("an answer"), Release::NotHeld, "another has it");
        assert_eq!(yours.renew(&theirs).await.expect("an answer"), Renew::Renewed);
    });
}

/// Two grants of one session that failed. Neither may be called free, or another's, while the session must stay.
pub(super) fn shared(place: &Place) {
    run(async {
        let one = ask(FOR_EVER);
        let (other, third) = (also(&one, 1), also(&one, 2));
        let (mut connector, mut yours) = (given_up(place, &[&one, &other]).await, backend(place).await);
        let mut now = connector.connect().await.expect("another");
        assert!(takes(&mut *now, &third).await);
        for _ in 0..2 {
            let error = now.try_acquire(&one).await.expect_err("the lock is there, and not another's");
            assert!(matches!(error, LeaseError::Unavailable { .. }), "{error}");
            now = connector.connect().await.expect("the next");
            let error = now.release(&one).await.expect_err("the lock is there");
            assert!(error.to_string().contains("still believe in"), "{error}");
            now = connector.connect().await.expect("the next");
            assert_eq!(now.renew(&third).await.expect("an answer"), Renew::Renewed, "it has nothing to do with this");
        }
        assert!(!is_free(&mut *yours, &other).await, "free while somebody believes in it");
        assert_eq!(now.renew(&other).await.expect("an answer"), Renew::Lost);
        assert!(takes(&mut *now, &one).await, "the same grant, once its session can be ended");
        assert_eq!(now.release(&other).await.expect("an answer"), Release::NotHeld);
        assert!(is_free(&mut *yours, &other).await);
        assert_eq!(now.release(&one).await.expect("an answer"), Release::Released);
        assert_eq!(now.renew(&third).await.expect("an answer"), Renew::Renewed);
    });
}

/// A process of the server that does nothing until this goes out of scope, also when a case fails.
struct Stopped(i64);

impl Stopped {
    fn stop(pid: i64) -> Stopped {
        signal("STOP", pid);
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("CONT", self.0);
    }
}

fn signal(name: &str, pid: i64) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().expect("kill");
    assert!(sent.success() || name == "CONT", "no such process: {pid}");
}

/// The server is told to end a session, and takes its time.
pub(super) fn slow_to_die(place: &Place) {
    run(async {
        let one = ask(FOR_EVER);
        let healthy = also(&one, 1);
        let mut connector = place.connector();
        let mut first = connector.connect().await.expect("a connection");
        assert!(takes(&mut *first, &one).await);
        let pid = "SELECT pid::bigint FROM pg_stat_activity WHERE application_name LIKE 'settled-lease %' AND datname = current_database()";
        let stopped = Stopped::stop(place.postgres_number(pid).await);
        drop(first);
        let mut now = connector.connect().await.expect("another");
        assert!(takes(&mut *now, &healthy).await);
        assert_eq!(now.renew(&one).await.expect("an answer"), Renew::Lost);
        for _ in 0..2 {
            let renewed = tokio::time::timeout(AT_ONCE, now.renew(&healthy)).await.expect("it waits for another session");
            assert_eq!(renewed.expect("an answer"), Renew::Renewed);
        }
        let said = tokio::time::timeout(AT_ONCE, now.release(&one)).await.expect("it waits longer than an attempt");
        said.expect_err("its lock is still there");
        now = connector.connect().await.expect("the next");
        assert_eq!(now.renew(&healthy).await.expect("an answer"), Renew::Renewed);
        drop(stopped);
        let mut yours = backend(place).await;
        until("ended", FOR_EVER / 4, async || is_free(&mut *yours, &one).await).await;
        assert_eq!(now.release(&one).await.expect("an answer"), Release::NotHeld);
        assert_eq!(now.renew(&healthy).await.expect("an answer"), Renew::Renewed);
    });
}

/// One grant is over when the session fails, another is not.
pub(super) fn over_beside_another(place: &Place) {
    run(async {
        let long = ask(FOR_EVER);
        let short = Ask { ttl: Duration::from_millis(500), ..also(&long, 1) };
        let (mut connector, mut yours, pool) = (place.connector(), backend(place).await, place.postgres_pool().await);
        let mut first = connector.connect().await.expect("a connection");
        assert!(takes(&mut *first, &long).await && takes(&mut *first, &short).await);
        pause(600).await;
        // in this database only
        let fails = "SET allow_system_table_mods = on; ALTER FUNCTION pg_catalog.pg_advisory_unlock(int, int) RENAME TO another";
        sqlx::raw_sql(fails).execute(&pool).await.expect("a superuser");
        // whatever it says
        let _ = first.release(&short).await;
        drop(first);
        assert!(!is_free(&mut *yours, &long).await, "somebody believes in it");
        let works = "ALTER FUNCTION pg_catalog.another(int, int) RENAME TO pg_advisory_unlock";
        sqlx::raw_sql(works).execute(&pool).await.expect("a superuser");
        let mut second = connector.connect().await.expect("another");
        assert_eq!(second.renew(&long).await.expect("an answer"), Renew::Lost);
        assert_eq!(second.release(&short).await.expect("an answer"), Release::NotHeld, "it was over");
        until("both are free", FOR_EVER / 4, async || is_free(&mut *yours, &short).await && is_free(&mut *yours, &long).await)
            .await;
    });
}

/// Who has a name is no more than a hint.
pub(super) fn hint(place: &Place) {
    run(async {
        let one = ask(FOR_EVER);
        let (mut mine, mut yours) = (backend(place).await, backend(place).await);
        let mut poor = backend(place).await;
        let other = also(&ask(FOR_EVER), 1);
        assert!(takes(&mut *mine, &one).await && takes(&mut *yours, &other).await);
        let nobody = Acquire::HeldByAnother { holder: None, remaining: None };
        let answer = poor.try_acquire(&ask(FOR_EVER)).await.expect("an answer");
        assert!(
            matches!(answer, Acquire::HeldByAnother { holder, remaining: Some(_) } if holder == Some(one.holder)),
            "{answer:?}"
        );
        // everybody else's locks, in this database only: slow to read, then not to be read at all
        let pool = place.postgres_pool().await;
        let slow = "SET allow_system_table_mods = on; ALTER VIEW pg_catalog.pg_locks RENAME TO pg_locks_of_old;
            CREATE VIEW pg_catalog.pg_locks AS SELECT l.* FROM pg_catalog.pg_locks_of_old l, (SELECT pg_sleep(3) OFFSET 0) s;
            GRANT SELECT ON pg_catalog.pg_locks TO PUBLIC";
        sqlx::raw_sql(slow).execute(&pool).await.expect("a slow view");
        for (service, why) in [(&mut yours, "who has a grant does not ask"), (&mut poor, "asked a moment ago")] {
            let denied = Ask { name: one.name.clone(), ..ask(FOR_EVER) };
            let answer = tokio::time::timeout(AT_ONCE, service.try_acquire(&denied)).await.expect(why);
            assert_eq!(answer.expect("an answer"), nobody, "{why}");
        }
        sqlx::raw_sql("DROP VIEW pg_catalog.pg_locks").execute(&pool).await.expect("no view");
        let mut late = backend(place).await;
        assert_eq!(late.try_acquire(&ask(FOR_EVER)).await.expect("its failure is none"), nobody);
        assert_eq!(mine.release(&one).await.expect("an answer"), Release::Released);
        assert!(takes(&mut *late, &ask(FOR_EVER)).await, "its session is as good as before");
    });
}
