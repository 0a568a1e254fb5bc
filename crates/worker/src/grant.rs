//! Acquire → mint → prove → register: how a lease becomes a right that the ledger knows.
//!
//! The order is the point. A token minted *before* the lock is held, or by a holder that is not asked again afterwards, may be
//! newer than the live holder's: the stale one wakes, mints, and outranks it. Whoever is proven the owner *after* minting held
//! the lock while minting, so the order of tokens is the order of locks.

use crate::metric;
use crate::{Worker, WorkerError};
use domain::fence::{Fence, Stamp};
use domain::step::Step;
use domain::unit::Unit;
use lease::{Keeper, Lease, LeaseName, Proof, TokenSource};
use ledger::operate::Operator;
use ledger::{Operation, Rejection};
use metrics::counter;
use std::time::Duration;
use tracing::{info, warn};

/// The source of every token that the ledger mints, whichever lock service grants the leases.
pub const LEDGER_SOURCE: &str = "ledger";

/// A unit that is ours: the lease says until when to try, the stamp is what the ledger checks.
#[derive(Debug)]
pub struct Grant {
    /// The lease.
    pub lease: Lease,
    /// The unit.
    pub unit: Unit,
    /// Our fence, registered.
    pub stamp: Stamp,
}

/// What asking for a unit came to. Match it without `_`.
#[must_use]
#[derive(Debug)]
pub enum Take {
    /// It is ours.
    Granted(Box<Grant>),
    /// Another instance holds it.
    Busy,
    /// It was ours, and was lost before it was registered; nothing was written.
    Lost,
    /// A newer holder has registered; the refusal is kept in the ledger.
    Fenced,
}

/// The name under which the ledger knows where this lock service's tokens come from.
#[must_use]
pub fn source_name(source: &TokenSource) -> &str {
    match source {
        TokenSource::LedgerMinted => LEDGER_SOURCE,
        TokenSource::External { id } => id,
    }
}

impl Worker {
    /// Tries to make `unit` ours. Does not wait for it.
    ///
    /// # Errors
    /// Outages of ledger or lock service; a source that is not the newest, or whose tokens went back.
    pub async fn take(&self, keeper: &Keeper, unit: Unit) -> Result<Take, WorkerError> {
        self.take_within(keeper, unit, Duration::ZERO).await
    }

    /// The same, waiting for it at most `limit`, in line where the lock service keeps one, and no longer than until a drain is asked.
    ///
    /// # Errors
    /// As [`Worker::take`].
    pub async fn take_within(&self, keeper: &Keeper, unit: Unit, limit: Duration) -> Result<Take, WorkerError> {
        let source = keeper.source().await?;
        let generation = self.ledger.generation(source_name(&source)).await?;
        let name = LeaseName::unit(self.ledger.meta().ledger_id, unit.0);
        let lease = match limit.is_zero() {
            true => keeper.try_acquire(&name).await?,
            // dropped, it leaves the line
            false => tokio::select! {
                lease = keeper.acquire(&name, limit) => lease?,
                () = self.drain.asked() => None,
            },
        };
        let Some(lease) = lease else { return Ok(Take::Busy) };
        if *lease.source() != source {
            warn!(lease.name = %name, was = source_name(&source), is = source_name(lease.source()), "the lock service is another one now; starting over");
            let _ = lease.release().await;
            return Ok(Take::Busy);
        }
        self.probe.at(Step::LeaseAcquired);
        let token = match lease.token() {
            Some(token) => token,
            None => self.ledger.mint().await?,
        };
        if lease.prove().await? == Proof::NotOwner {
            info!(lease.name = %name, step = "prove", "not proven: the lease was lost before its token was registered");
            self.counters.lost.add(1);
            let _ = lease.release().await;
            return Ok(Take::Lost);
        }
        self.probe.at(Step::OwnershipProven);
        counter!(metric::LEASES_ACQUIRED).increment(1);
        let stamp = Stamp { fence: Fence { generation, token }, holder: self.holder };
        self.register(&source, Grant { lease, unit, stamp }).await
    }

    async fn register(&self, source: &TokenSource, grant: Grant) -> Result<Take, WorkerError> {
        let stored = self.ledger.register(grant.unit, grant.stamp).await?;
        if stored == grant.stamp {
            info!(unit = grant.unit.0, fence = %stored.fence, "registered: no older holder of this unit can write any more");
            self.probe.at(Step::FenceRegistered);
            return Ok(Take::Granted(Box::new(grant)));
        }
        if stored.fence.generation > grant.stamp.fence.generation {
            info!(unit = %grant.unit, "the generation was raised meanwhile; starting over");
            let _ = grant.lease.release().await;
            return Ok(Take::Busy);
        }
        let still_owner = *source != TokenSource::LedgerMinted && grant.lease.prove().await? == Proof::Owner;
        let Grant { lease, unit, stamp } = grant;
        let _ = lease.release().await;
        if still_owner {
            self.stop_source(source_name(source), unit, stamp, stored).await?;
            return Err(WorkerError::SourceWentBack {
                source_name: source_name(source).to_owned(),
                unit: unit.0,
                token: stamp.fence.token,
                stored: stored.fence.token,
            });
        }
        // Counted before it is kept: it was refused even where there is no room for the record.
        self.fenced("register", stamp, 1);
        self.ledger.record_rejections(&[Rejection { operation: Operation::Register, unit, batch: None, stamp, stored }]).await?;
        Ok(Take::Fenced)
    }

    /// Every try draws tokens, and so a source that went back catches up with what the ledger has seen, in the end unnoticed: by whoever
    /// starts instances again and again. So nobody's tokens are good from here on, until a person adopts a source.
    async fn stop_source(&self, source: &str, unit: Unit, stamp: Stamp, stored: Stamp) -> Result<(), WorkerError> {
        let (token, seen) = (stamp.fence.token, stored.fence.token);
        let operator = Operator {
            name: format!("instance {}", self.holder),
            reason: format!("{source} gave token {token} for unit {unit}, below {seen}: it was restored or rebuilt"),
        };
        self.ledger.adopt_source(&format!("nobody: the tokens of {source} went back"), &operator).await?;
        Ok(())
    }

    /// Refused writes are logged once, here, and counted. Who was newer is in the ledger's record (`settled fence list`).
    pub(crate) fn fenced(&self, step: &'static str, stamp: Stamp, writes: u64) {
        self.counters.fenced.add_at(step, writes);
        warn!(step, fence = %stamp.fence, holder.id = %stamp.holder, writes, "fenced: a newer holder has registered, the ledger refused");
    }
}
