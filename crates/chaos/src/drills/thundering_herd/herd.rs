//! The waiters: of keepers as this program has one in each instance, and of clients that ask every 10 ms.

use super::counts::Counts;
use crate::DrillError;
use crate::articles::{Held, Lock};
use crate::instance::PATIENCE;
use crate::measure::per_second;
use domain::ids::{HolderId, LedgerId};
use lease::{Connector, Keeper, KeeperSettings, LeaseName, Release};
use redis::Client;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Who wants the lease: as many instances, with a keeper each.
pub(super) const WAITERS: usize = 1_000;
/// What PostgreSQL has connections for.
pub(super) const WAITERS_OF_DATABASE: usize = 250;
/// How long each holds it.
pub(super) const HELD_MS: u64 = 100;

const RELEASES: u64 = 20;
/// How long is looked at while nothing is released.
const IDLE: Duration = Duration::from_millis(1_000);
/// Between an error and the next try, chosen anew each time.
const AFTER_AN_ERROR_MS: RangeInclusive<u64> = 500..=3_000;
/// They come one after the other: a busy server answers none of a thousand that connect at once.
const APART: Duration = Duration::from_millis(3);
const EVERY: Duration = Duration::from_millis(10);
/// Nobody loses it by time.
const TTL: Duration = Duration::from_secs(600);

/// Connections that so many pollers share.
const CONNECTIONS: usize = 50;
/// Files that they need.
const FILES: u64 = 16_384;

/// What it came to.
pub(super) struct Ran {
    pub(super) waiters: usize,
    /// In a second in which nothing was released, before or after, whichever had more.
    pub(super) idle_rate: u64,
    pub(super) requests: u64,
    pub(super) releases: u64,
    pub(super) took: Duration,
    /// Errors after which a waiter asked again.
    pub(super) again: u64,
}

/// Instances with a keeper each.
pub(super) async fn keepers(
    counts: &Counts<'_>,
    waiters: usize,
    connect: impl Fn() -> Result<Box<dyn Connector>, lease::LeaseError>,
) -> Result<Ran, DrillError> {
    let start = || Keeper::start(connect()?, HolderId(Uuid::new_v4()), KeeperSettings::new(TTL));
    let keepers = (0..waiters).map(|_| start().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let name = LeaseName::unit(LedgerId(Uuid::new_v4()), 0);
    let (got, mut granted) = unbounded_channel();
    let (mut waiting, errors) = (JoinSet::new(), Arc::new(AtomicU64::new(0)));
    for keeper in &keepers {
        let (keeper, name, got, errors) = (Arc::clone(keeper), name.clone(), got.clone(), Arc::clone(&errors));
        waiting.spawn(async move {
            let lease = loop {
                match keeper.acquire(&name, TTL).await {
                    Ok(lease) => break lease,
                    // a busy server; whoever waits asks again
                    Err(_) => errors.fetch_add(1, Ordering::Relaxed),
                };
                tokio::time::sleep(Duration::from_millis(rand::random_range(AFTER_AN_ERROR_MS))).await;
            };
            let _ = got.send(lease);
        });
        tokio::time::sleep(APART).await;
    }
    let mut held = Some(next(&mut granted).await?);
    let ran = measure(counts, waiters, async || {
        if let Some(Some(lease)) = held.take()
            && lease.release().await != Release::Released
        {
            return Err(DrillError::Story("a lease was lost while it was held".to_owned()));
        }
        held = Some(next(&mut granted).await?);
        Ok(())
    });
    let ran = ran.await.map(|ran| Ran { again: errors.load(Ordering::Relaxed), ..ran });
    waiting.shutdown().await;
    drop(held);
    for keeper in keepers {
        if let Some(keeper) = Arc::into_inner(keeper) {
            keeper.shutdown().await;
        }
    }
    ran
}

/// Clients that ask every 10 ms, each by itself.
pub(super) async fn pollers(counts: &Counts<'_>, redis: &str) -> Result<Ran, DrillError> {
    let client = Client::open(redis)?;
    let (got, mut granted) = unbounded_channel();
    let mut waiting = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let connection = client.get_multiplexed_async_connection().await?;
        for _ in 0..WAITERS / CONNECTIONS {
            let (mut lock, got) = (Lock::on(connection.clone(), "herd", TTL), got.clone());
            waiting.spawn(async move {
                let held = loop {
                    match lock.try_take().await {
                        Ok(None) => tokio::time::sleep(EVERY).await,
                        Ok(Some(held)) => break Ok((lock, held)),
                        Err(error) => break Err(error),
                    }
                };
                let _ = got.send(held);
            });
        }
    }
    let mut held: Option<(Lock, Held)> = Some(next(&mut granted).await??);
    let ran = measure(counts, WAITERS, async || {
        if let Some((mut lock, held)) = held.take() {
            lock.release(&held).await?;
        }
        held = Some(next(&mut granted).await??);
        Ok(())
    });
    let ran = ran.await;
    waiting.shutdown().await;
    ran
}

/// Requests while nothing happens, and while the lease changes hands.
async fn measure(
    counts: &Counts<'_>,
    waiters: usize,
    mut hand_over: impl AsyncFnMut() -> Result<(), DrillError>,
) -> Result<Ran, DrillError> {
    counts.until_all_wait(waiters).await?;
    let first = Reading::take(counts).await?;
    tokio::time::sleep(IDLE).await;
    let begun = Reading::take(counts).await?;
    for _ in 0..RELEASES {
        hand_over().await?;
        tokio::time::sleep(Duration::from_millis(HELD_MS)).await;
    }
    let ended = Reading::take(counts).await?;
    tokio::time::sleep(IDLE).await;
    let last = Reading::take(counts).await?;
    let idle_rate = begun.rate_since(&first).max(last.rate_since(&ended));
    let (requests, took) = (ended.requests - begun.requests, ended.at - begun.at);
    Ok(Ran { waiters, idle_rate, requests, releases: RELEASES, took, again: 0 })
}

/// How many requests by then.
struct Reading {
    requests: u64,
    at: Instant,
}

impl Reading {
    async fn take(counts: &Counts<'_>) -> Result<Reading, DrillError> {
        Ok(Reading { requests: counts.so_far().await?, at: Instant::now() })
    }

    fn rate_since(&self, before: &Reading) -> u64 {
        per_second(self.requests - before.requests, self.at - before.at)
    }
}

/// As many open files as a thousand keepers need, where the machine lets us.
pub(super) fn more_files() -> Result<(), DrillError> {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES, |most| most.min(FILES));
    if limit.current.is_some_and(|now| now < wanted) {
        limit.current = Some(wanted);
        setrlimit(Resource::Nofile, limit).map_err(|error| DrillError::io("raising the limit of open files")(error.into()))?;
    }
    Ok(())
}

async fn next<T>(granted: &mut UnboundedReceiver<T>) -> Result<T, DrillError> {
    let next = tokio::time::timeout(PATIENCE, granted.recv()).await;
    next.ok().flatten().ok_or_else(|| DrillError::Story("nobody got the lease that was released".to_owned()))
}
