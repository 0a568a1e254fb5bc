//! What claims and settlements are asked and answer, and the decisions that all engines share. Needs `domain::outcome`.

use crate::schedule::Due;
use crate::{Fences, LedgerError, Operation, Rejection, retry};
use async_trait::async_trait;
use domain::batch::BatchState;
use domain::fence::{Fence, Stamp, Standing, standing};
use domain::ids::{BatchId, HolderId, RunId};
use domain::item::{FeeMode, ItemKind};
use domain::journal::{Measure, template};
use domain::outcome::{Seen, SettleOutcome, classify};
use domain::step::Probe;
use domain::unit::Unit;
use std::time::Duration;

/// Asks for batches of one unit.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The unit whose lease is held.
    pub unit: Unit,
    /// Under which registered stamp.
    pub stamp: Stamp,
    /// The run that the work is for.
    pub run: RunId,
    /// Only batches that are due.
    pub due: Due,
    /// At most so many never-charged batches; a charged one always comes alone.
    pub most: u32,
    /// At most so many items together, so that what is claimed settles in one transaction; a larger batch comes alone.
    pub most_items: i64,
    /// Charged so often and still not settled: quarantined.
    pub max_attempts: i32,
    /// Limits of the transaction.
    pub limits: TxLimits,
}

/// Asks for due batches under the guards that have no lease.
#[derive(Debug, Clone)]
pub struct Charge {
    /// Who asks.
    pub holder: HolderId,
    /// Of which unit, under its lock (advisory-xact); of any (row-lock).
    pub unit: Option<Unit>,
    /// The run that the work is for.
    pub run: RunId,
    /// Only batches that are due.
    pub due: Due,
    /// At most so many never-charged batches; a charged one always comes alone.
    pub most: u32,
    /// At most so many items together, so that what is claimed settles in one transaction; a larger batch comes alone.
    pub most_items: i64,
    /// Charged so often and still not settled: quarantined.
    pub max_attempts: i32,
    /// For so long nobody else is given them: the settle timeout, by the database's clock.
    pub retry_after: Duration,
    /// Limits of the transaction.
    pub limits: TxLimits,
}

/// Batches that were claimed and charged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claimed {
    /// In order of id.
    pub batches: Vec<ClaimedBatch>,
    /// Given up in the same transaction, because they were charged too often.
    pub quarantined: Vec<BatchId>,
}

/// One claimed batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedBatch {
    /// Its row.
    pub id: BatchId,
    /// Its lines, to bound what one transaction does.
    pub items: i64,
    /// How often it has been charged, this time included.
    pub attempts: i32,
}

/// The answer to a claim. Match it without `_`.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// What was claimed; nothing means that nothing is due.
    Work(Claimed),
    /// A newer holder has the unit. Kept as a rejection.
    Fenced {
        /// Who.
        stored: Stamp,
    },
    /// The ledger does not know this stamp: release and acquire anew.
    ClaimLost,
}

/// How long a transaction may take, so that a frozen client cannot hold row locks for ever: the server ends it. SQLite has no
/// server and ignores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxLimits {
    /// For all its statements together.
    pub total: Duration,
    /// For the pauses between them (the client is frozen).
    pub idle: Duration,
}

/// Limits of handing batches back: it is done where somebody waits for our end.
pub(crate) const HAND_BACK: TxLimits = TxLimits { total: Duration::from_secs(10), idle: Duration::from_secs(5) };

impl TxLimits {
    /// How long a contended transaction is begun again: as long as one waits for a lock. A later try would have too little left, or
    /// make all of them together take longer than a stop may.
    pub(crate) fn window(self) -> Duration {
        self.total / 2
    }
}

/// By what right a batch is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The unit's lease, registered under this stamp.
    Lease {
        /// The unit.
        unit: Unit,
        /// The stamp.
        stamp: Stamp,
    },
    /// The row lock itself.
    RowLock {
        /// Who asks.
        holder: HolderId,
    },
    /// The row lock, and above it the advisory lock of the unit, which the transaction takes first.
    AdvisoryXact {
        /// Who asks.
        holder: HolderId,
        /// The unit that all the batches are of; another's are not settled.
        unit: Unit,
    },
}

impl Authority {
    /// What the settled rows are marked with. Without a lease there is no fence, only the holder.
    #[must_use]
    pub const fn stamp(self) -> Stamp {
        match self {
            Authority::Lease { stamp, .. } => stamp,
            Authority::RowLock { holder } | Authority::AdvisoryXact { holder, .. } => {
                Stamp { fence: Fence { generation: 0, token: 0 }, holder }
            }
        }
    }
}

/// Batches to settle in one transaction.
#[derive(Debug, Clone, Copy)]
pub struct SettleWork<'a> {
    /// By what right.
    pub authority: Authority,
    /// For which run.
    pub run: RunId,
    /// Which, in order of id.
    pub batches: &'a [BatchId],
    /// Limits of the transaction.
    pub limits: TxLimits,
}

/// What a locking read shows of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSeen {
    /// Its row.
    pub id: BatchId,
    /// Its state.
    pub state: BatchState,
    /// The stamp on the row.
    pub stamp: Stamp,
}

/// What an engine brings to claims and settlements: single transactions. What follows from their outcomes is decided below,
/// once for all engines.
#[async_trait]
pub(crate) trait Transactions: Fences {
    /// One claim transaction.
    async fn claim_once(&self, request: &ClaimRequest) -> Result<Claim, LedgerError>;

    /// One settle transaction; the batches it settled. Those it did not return are untouched.
    async fn settle_once(&self, work: &SettleWork<'_>, probe: &dyn Probe) -> Result<Vec<BatchId>, LedgerError>;

    /// One transaction that hands claimed batches back; how many it did.
    async fn release_once(&self, unit: Unit, stamp: Stamp, batches: &[BatchId], uncharge: bool) -> Result<u64, LedgerError>;

    /// The stamp registered for a unit.
    async fn registered(&self, unit: Unit) -> Result<Stamp, LedgerError>;

    /// A locking read: it waits for a transaction in flight on these rows, so that what it shows is final.
    async fn read_back(&self, work: &SettleWork<'_>, batches: &[BatchId]) -> Result<ReadBack, LedgerError>;
}

/// How many of the first batches stay within `items` together; at least one.
pub(crate) fn fitting(batches: &[ClaimedBatch], items: i64) -> usize {
    let mut sum = 0_i64;
    let within = batches.iter().take_while(|batch| {
        sum = sum.saturating_add(batch.items);
        sum <= items
    });
    within.count().max(1).min(batches.len())
}

/// What a locking read shows.
#[derive(Debug)]
pub(crate) struct ReadBack {
    /// The stamp registered for the unit; without a lease there is none.
    pub(crate) stored: Option<Stamp>,
    /// The batches, in order of id.
    pub(crate) batches: Vec<BatchSeen>,
}

/// Claims, and keeps a refusal.
pub(crate) async fn claim(engine: &impl Transactions, request: &ClaimRequest) -> Result<Claim, LedgerError> {
    let claim = retry::transaction_within(request.limits.window(), || engine.claim_once(request)).await?;
    if let Claim::Fenced { stored } = claim {
        let ClaimRequest { unit, stamp, .. } = *request;
        engine.record_rejections(&[Rejection { operation: Operation::Claim, unit, batch: None, stamp, stored }]).await?;
    }
    Ok(claim)
}

/// Hands batches back, and keeps a refusal.
pub(crate) async fn release(
    engine: &impl Transactions,
    unit: Unit,
    stamp: Stamp,
    batches: &[BatchId],
    uncharge: bool,
) -> Result<u64, LedgerError> {
    let released = retry::transaction_within(HAND_BACK.window(), || engine.release_once(unit, stamp, batches, uncharge)).await?;
    if released < batches.len() as u64 {
        let stored = engine.registered(unit).await?;
        if standing(stamp, stored) == Standing::Superseded {
            engine.record_rejections(&[Rejection { operation: Operation::Release, unit, batch: None, stamp, stored }]).await?;
        }
    }
    Ok(released)
}

/// Settles, reads back what the transaction did not settle or whose reply was lost, and keeps refusals.
pub(crate) async fn settle(
    engine: &impl Transactions,
    work: &SettleWork<'_>,
    probe: &dyn Probe,
) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError> {
    let posted = retry::transaction_within(work.limits.window(), || engine.settle_once(work, probe)).await;
    let posted = match posted {
        // Definite, and to read back is to wait for the same lock once more.
        Err(error) if error.is_contention() => return Err(error),
        posted => posted,
    };
    let settled = posted.as_ref().map_or(&[][..], Vec::as_slice);
    let open: Vec<BatchId> = work.batches.iter().copied().filter(|batch| !settled.contains(batch)).collect();
    let mut outcomes: Vec<(BatchId, SettleOutcome)> = settled.iter().map(|batch| (*batch, SettleOutcome::Settled)).collect();
    if !open.is_empty() {
        let read = match retry::transaction_within(work.limits.window(), || engine.read_back(work, &open)).await {
            Ok(read) => read,
            // What was settled is known and must be told; the others come back with the next claim.
            Err(_) if !outcomes.is_empty() => return Ok(outcomes),
            Err(error) => return Err(error),
        };
        let resolved: Vec<(BatchId, SettleOutcome)> =
            read.batches.iter().map(|seen| (seen.id, outcome_of(work.authority, *seen, read.stored))).collect();
        // A definite error, or a lost reply to a transaction of which nothing is there.
        if let Err(error) = posted
            && resolved.iter().any(|(_, outcome)| is_still_open(*outcome))
        {
            return Err(error);
        }
        record_refused(engine, work.authority, read.stored, &resolved).await?;
        outcomes.extend(resolved);
    }
    outcomes.sort_by_key(|(batch, _)| *batch);
    Ok(outcomes)
}

async fn record_refused(
    engine: &impl Transactions,
    authority: Authority,
    stored: Option<Stamp>,
    resolved: &[(BatchId, SettleOutcome)],
) -> Result<(), LedgerError> {
    let (Authority::Lease { unit, stamp }, Some(stored)) = (authority, stored) else { return Ok(()) };
    let refused = resolved.iter().filter(|(_, outcome)| matches!(outcome, SettleOutcome::Fenced { .. }));
    let rejection = |batch: &BatchId| Rejection { operation: Operation::Settle, unit, batch: Some(*batch), stamp, stored };
    let rejections: Vec<Rejection> = refused.map(|(batch, _)| rejection(batch)).collect();
    if rejections.is_empty() { Ok(()) } else { engine.record_rejections(&rejections).await }
}

/// Classifies a batch that a settle transaction did not return. `stored` is the unit's registered stamp; without a lease
/// there is none and nothing can be superseded.
pub fn outcome_of(authority: Authority, seen: BatchSeen, stored: Option<Stamp>) -> SettleOutcome {
    let mine = authority.stamp();
    let settled_by = (seen.state == BatchState::Settled).then_some(seen.stamp);
    classify(mine, Seen { state: seen.state, settled_by, unit: stored.unwrap_or(mine) })
}

/// Whether a read-back says that the lost transaction left nothing: the batch is still ours to settle.
pub(crate) fn is_still_open(outcome: SettleOutcome) -> bool {
    match outcome {
        SettleOutcome::NotClaimable { state } => matches!(state, BatchState::Settling | BatchState::Pending),
        SettleOutcome::Settled | SettleOutcome::AlreadySettled | SettleOutcome::Fenced { .. } | SettleOutcome::ClaimLost => false,
    }
}

/// The posting templates of `domain::journal` as columns, to be joined in SQL: one source of truth for what is posted.
#[derive(Debug, Clone, Default)]
pub struct TemplateColumns {
    /// Kind of the line.
    pub kind: Vec<&'static str>,
    /// Fee mode of the batch.
    pub fee_mode: Vec<&'static str>,
    /// Account role.
    pub role: Vec<&'static str>,
    /// `gross`, `fee` or `net`.
    pub measure: Vec<&'static str>,
    /// +1 debit, −1 credit, for a positive measure.
    pub sign: Vec<i16>,
}

impl TemplateColumns {
    /// All templates.
    #[must_use]
    pub fn all() -> TemplateColumns {
        let mut columns = TemplateColumns::default();
        for kind in ItemKind::ALL {
            for fee_mode in [FeeMode::Withheld, FeeMode::Charged] {
                for line in template(kind, fee_mode) {
                    columns.kind.push(kind.as_str());
                    columns.fee_mode.push(fee_mode.as_str());
                    columns.role.push(line.role.code());
                    columns.measure.push(match line.measure {
                        Measure::Gross => "gross",
                        Measure::Fee => "fee",
                        Measure::Net => "net",
                    });
                    columns.sign.push(i16::from(line.sign));
                }
            }
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(items: i64) -> ClaimedBatch {
        ClaimedBatch { id: BatchId(1), items, attempts: 1 }
    }

    #[test]
    fn a_transaction_is_bounded_in_items_but_never_empty() {
        assert_eq!(fitting(&[batch(10), batch(10), batch(10)], 20), 2);
        assert_eq!(fitting(&[batch(500), batch(10)], 20), 1);
        assert_eq!(fitting(&[batch(10), batch(i64::MAX)], 20), 1);
        assert_eq!(fitting(&[batch(0), batch(0)], 20), 2);
        assert_eq!(fitting(&[], 20), 0);
    }
}
