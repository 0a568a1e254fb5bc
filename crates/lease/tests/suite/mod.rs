//! The cases, and what they share.

pub(crate) mod capabilities;
pub(crate) mod child;
mod clocks;
mod fuzz;
mod grants;
mod keeping;
mod losses;
pub(crate) mod only_advisory;
pub(crate) mod only_etcd;
pub(crate) mod only_postgres;
pub(crate) mod only_redis;
pub(crate) mod only_redlock;
pub(crate) mod only_sqlite;
pub(crate) mod place;
mod recovery;
mod releases;
mod unclaimed;
mod waiting;
pub(crate) mod weather;

use domain::ids::{HolderId, LedgerId};
use lease::{Acquire, Ask, Backend, Keeper, KeeperSettings, Lease, LeaseName, Nonce};
use place::Place;
use std::future::Future;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A case gets a lock service of its own, empty.
pub(crate) type Case = (&'static str, fn(&Place));

/// Long enough that nothing expires while a case runs: what becomes free was released.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(60);
/// For cases that wait for an expiry: as short as a busy machine with two cores keeps reliably.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

pub(crate) const CASES: &[Case] = &[
    ("only one of many holders gets it", grants::exclusion),
    ("granted after a release", grants::after_release),
    ("granted after expiry, not before", grants::after_expiry),
    ("the same grant asked twice is granted", grants::same_nonce_again),
    ("the same holder under another nonce is another (L25)", grants::holder_is_not_identity),
    ("one of two tasks of a process gets it (L29)", grants::two_tasks),
    ("inspect shows what is stored", grants::inspect),
    ("renewed beyond several TTLs", keeping::several_ttls),
    ("renewed while every worker thread is blocked (R6)", keeping::blocked_workers),
    ("a hanging renewal does not take other leases along (L9)", keeping::slow_neighbour),
    ("kept as long as the handle lives, without its keeper", keeping::keeper_dropped),
    ("failed renewals are repeated (L10)", keeping::failures_in_between),
    ("lost by deadline before another gets it (L9)", losses::by_deadline),
    ("lost when taken over, and stays lost", losses::by_takeover),
    ("a late renewal revives nothing (L27)", losses::late_renewal),
    ("a renewal does not extend another's grant (L26)", losses::foreign_renewal),
    ("proof of ownership", losses::proof),
    ("release says what it found (L18)", releases::outcomes),
    ("release without an answer", releases::unanswered),
    ("a dropped handle releases", releases::dropped),
    ("shutdown releases everything", releases::shutdown),
    ("shutdown goes on after a release that was done before", releases::shutdown_after_a_repeat),
    ("release joins the renewal in flight, 1,000 races (L12)", releases::races),
    ("a renewal that races a release at the service, 1,000 times (L12)", releases::races_at_the_service),
    ("a cancelled acquire leaves nothing, wherever it was (L11)", unclaimed::cancelled),
    ("an acquire dropped at any instant leaves nothing (L11)", unclaimed::cancelled_at_random),
    ("an acquire without an answer leaves nothing (L11)", unclaimed::unanswered),
    ("a lost reply is asked again under the same nonce", unclaimed::lost_reply),
    ("a grant after its own deadline is not handed out (L22)", unclaimed::granted_too_late),
    ("a suspended machine knows that it lost (L22)", clocks::suspend),
    ("a frozen process knows that it lost when it wakes (R1)", clocks::frozen),
    ("progress within two TTLs after everybody lost (L24)", recovery::after_everybody_lost),
    ("starts while the service is down", recovery::starts_without_service),
    ("who waits gets it after a release", waiting::after_a_release),
    ("a wait has a limit", waiting::limit),
    ("a cancelled wait leaves nothing (L11)", waiting::cancelled),
    ("who waits is told of an outage at once", waiting::outage),
    ("a turn that comes to nothing is not asked for again at once", waiting::turns_in_vain),
    ("two hundred waiters do not stampede", waiting::no_herd),
    ("no update is lost", fuzz::no_lost_update),
];

/// Of services that are a database, in which work has connections of its own.
pub(crate) const DATABASE_CASES: &[Case] = &[("renewed while work has taken every connection (R7)", keeping::exhausted_pool)];

/// Two threads, like the machines this runs on at least.
pub(crate) fn run<T>(case: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let result = runtime.block_on(case);
    runtime.shutdown_timeout(Duration::from_secs(5));
    result
}

pub(crate) fn someone() -> HolderId {
    HolderId(Uuid::new_v4())
}

pub(crate) fn name() -> LeaseName {
    LeaseName::unit(LedgerId(Uuid::from_u128(7)), 3)
}

pub(crate) fn keeper(place: &Place, ttl: Duration) -> Keeper {
    Keeper::start(place.connector(), someone(), KeeperSettings::new(ttl)).expect("a keeper")
}

/// A question of somebody new.
pub(crate) fn ask(ttl: Duration) -> Ask {
    Ask { name: name(), holder: someone(), nonce: Nonce::fresh(), ttl }
}

/// A connection without a keeper, which does exactly what it is told.
pub(crate) async fn backend(place: &Place) -> Box<dyn Backend> {
    place.connector().connect().await.expect("a connection")
}

/// Whether the service grants it. It must answer.
pub(crate) async fn takes(service: &mut dyn Backend, ask: &Ask) -> bool {
    matches!(service.try_acquire(ask).await.expect("an answer"), Acquire::Granted { .. })
}

/// The lease, which must be free or become free within `limit`.
pub(crate) async fn acquire_within(keeper: &Keeper, limit: Duration) -> Lease {
    let start = Instant::now();
    loop {
        if let Ok(Some(lease)) = keeper.try_acquire(&name()).await {
            return lease;
        }
        assert!(start.elapsed() < limit, "not free within {limit:?}");
        pause(20).await;
    }
}

/// The lease, which must be free now.
pub(crate) async fn acquire(keeper: &Keeper) -> Lease {
    keeper.try_acquire(&name()).await.expect("an answer").expect("a free lease")
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, limit: Duration, mut so: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !so().await {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        pause(10).await;
    }
}

pub(crate) async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
