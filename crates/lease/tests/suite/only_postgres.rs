//! What only the server has: a clock of its own, and sessions that it can end.

use super::child::{Child, Task};
use super::place::Place;
use super::weather::{Sky, Weather};
use super::{Case, FOR_EVER, SHORT, acquire, keeper, name, pause, run};
use lease::{LostWhy, Release};

pub(crate) const CASES: &[Case] = &[
    ("a killed session is replaced, the lease stays (L20)", killed_session),
    ("a timed-out request leaves no session behind (L20)", no_leaked_session),
    ("renewals stuck in the server revive nothing (L9, L27)", stuck_in_the_server),
];

/// A test that may be ignored where libfaketime is missing, hence the `Result`.
pub(crate) fn wrong_clocks(place: &Place) -> Result<(), lab::Error> {
    run(async {
        let mine = keeper(place, SHORT);
        for offset in ["+180s", "-180s"] {
            let lease = super::acquire_within(&mine, SHORT * 3).await;
            assert_eq!(try_with_clock(place, offset)?.says(), "held by another", "{offset}: took what is held");
            assert_eq!(lease.release().await, Release::Released);

            let mut other = try_with_clock(place, offset)?;
            assert_eq!(other.says(), "granted", "{offset}");
            let span = std::time::Instant::now();
            while span.elapsed() < SHORT * 2 {
                assert!(mine.try_acquire(&name()).await.expect("an answer").is_none(), "{offset}: took what is held");
                pause(50).await;
            }
            other.process.kill().expect("killed");
        }
        // the last one died with the lease: it is ours after a TTL, not after three minutes
        super::acquire_within(&mine, SHORT * 2).await;
        Ok(())
    })
}

fn try_with_clock(place: &Place, offset: &str) -> Result<Child, lab::Error> {
    let mut command = Child::command(place, Task::TryOnce { ttl: SHORT });
    lab::faketime::shift(&mut command, offset)?;
    Ok(Child::spawn(&mut command))
}

const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'settled-lease' AND datname = current_database()";
const KILL: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                    WHERE application_name = 'settled-lease' AND datname = current_database()";

fn killed_session(place: &Place) {
    run(async {
        let mine = keeper(place, SHORT);
        let lease = acquire(&mine).await;
        for _ in 0..6 {
            assert!(place.postgres_number(KILL).await >= 1);
            pause(1000).await;
            lease.check().expect("renewed on a new session");
        }
        assert_eq!(lease.release().await, Release::Released);
    });
}

fn no_leaked_session(place: &Place) {
    run(async {
        let weather = Weather::default();
        let mine = weather.keeper(place, FOR_EVER / 12);
        let lease = acquire(&mine).await;
        weather.set("renew", Sky::HangsAfter);
        lease.prove().await.expect_err("no answer");
        lease.prove().await.expect_err("no answer");
        weather.clear();
        assert_eq!(lease.release().await, Release::Released);
        super::until("one session", SHORT * 3, async || place.postgres_number(SESSIONS).await == 1).await;
    });
}

/// The requests wait in the server, behind a lock, with nobody left to hear their answers; then they all run.
fn stuck_in_the_server(place: &Place) {
    run(async {
        let mine = keeper(place, SHORT);
        let lease = acquire(&mine).await;
        let pool = place.postgres_pool().await;
        let mut lock = pool.begin().await.expect("a transaction");
        sqlx::query("LOCK TABLE lease IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.expect("the lock");
        lease.lost().await;
        assert_eq!(lease.check().expect_err("lost").why, LostWhy::Deadline);
        pause(500).await; // the lease expires in the table as well
        lock.rollback().await.expect("unlocked");
        pause(100).await;
        let yours = keeper(place, SHORT);
        super::acquire_within(&yours, SHORT / 2).await;
    });
}
