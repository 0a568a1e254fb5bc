//! Claims: which batches are worked next, by whom, and what it costs them.
//!
//! An attempt is charged and committed *before* the work. So a batch that kills its worker is found out: whoever claims next
//! sees the charge. Never-charged batches are claimed many at a time; a charged one always comes alone, so that it takes no
//! neighbour along.

use super::{PostgresLedger, advisory, set_limits, stamp};
use crate::schedule::Due;
use crate::settle::{Charge, Claim, ClaimRequest, Claimed, ClaimedBatch, HAND_BACK, fitting};
use crate::{LedgerError, retry};
use domain::fence::{Stamp, Standing, standing};
use domain::ids::{BatchId, HolderId, LedgerId, RunId};
use domain::unit::Unit;
use sqlx::{PgConnection, Row};

/// The shared lock keeps a newer holder from registering until this transaction ends. Lock order: unit_fence, then batches.
const LOCK_FENCE: &str = "SELECT generation, token, holder FROM unit_fence WHERE unit = $1 FOR SHARE";

/// What this stamp claimed before, where the reply to that claim was lost.
const OWN: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE unit = $1 AND state = 'settling' AND fence_generation = $2 AND fence_token = $3 AND holder = $4 ORDER BY id";
const GIVE_UP: &str = "UPDATE settlement_batch b SET state = 'quarantined', holder = $4, fence_generation = $5, fence_token = $6
    FROM (SELECT id FROM settlement_batch WHERE unit = $1 AND state IN ('pending', 'settling') AND business_date <= $2
        AND ($7::text[] IS NULL OR source = ANY($7)) AND attempts >= $3 ORDER BY id FOR UPDATE) s
    WHERE b.id = s.id RETURNING b.id";
const FRESH: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE unit = $1 AND state = 'pending' AND business_date <= $2 AND ($4::text[] IS NULL OR source = ANY($4)) AND attempts = 0
    ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED";
const CHARGED: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE unit = $1 AND state IN ('pending', 'settling') AND business_date <= $2 AND ($3::text[] IS NULL OR source = ANY($3)) AND attempts > 0
    ORDER BY attempts, id LIMIT 1 FOR UPDATE SKIP LOCKED";
/// Of rows that are locked already.
const MARK: &str = "UPDATE settlement_batch SET state = 'settling', attempts = attempts + 1, fence_generation = $2,
    fence_token = $3, holder = $4, run_id = $5, claimed_at = clock_timestamp()
    WHERE id = ANY($1) AND state IN ('pending', 'settling')";

/// Only what this very stamp claimed, and only while it holds the unit.
const RELEASE: &str = "UPDATE settlement_batch b SET state = 'pending', attempts = b.attempts - $6
    FROM (SELECT id FROM settlement_batch WHERE id = ANY($1) AND state = 'settling'
        AND EXISTS (SELECT 1 FROM unit_fence WHERE unit = $5 AND generation = $2 AND token = $3 AND holder = $4 FOR SHARE)
        ORDER BY id FOR UPDATE) s
    WHERE b.id = s.id AND b.fence_generation = $2 AND b.fence_token = $3 AND b.holder = $4";

/// There is no fence under a row lock or an advisory one, so the guard itself is looked at: `config adopt` waits for us, or we see what it did.
const LOCK_CUT: &str = "SELECT partitions, guard FROM ledger_meta FOR SHARE";

// Under the row-lock guard, and the advisory-xact one, the state stays `pending`: the row lock is the claim, and `retry_at` keeps others from charging the
// batch again while it may still be worked.
const ROW_GIVE_UP: &str = "UPDATE settlement_batch SET state = 'quarantined' WHERE id IN (SELECT id FROM settlement_batch
    WHERE state = 'pending' AND business_date <= $1 AND ($3::text[] IS NULL OR source = ANY($3)) AND attempts >= $2
    AND (retry_at IS NULL OR retry_at <= clock_timestamp()) FOR UPDATE SKIP LOCKED) RETURNING id";
const ROW_FRESH: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE state = 'pending' AND business_date <= $1 AND ($3::text[] IS NULL OR source = ANY($3)) AND attempts = 0 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED";
const ROW_CHARGED: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE state = 'pending' AND business_date <= $1 AND ($2::text[] IS NULL OR source = ANY($2)) AND attempts > 0 AND (retry_at IS NULL OR retry_at <= clock_timestamp())
    ORDER BY attempts, id LIMIT 1 FOR UPDATE SKIP LOCKED";
const ROW_MARK: &str = "UPDATE settlement_batch SET attempts = attempts + 1, holder = $2, run_id = $3,
    claimed_at = clock_timestamp(), retry_at = clock_timestamp() + $4 * interval '1 millisecond'
    WHERE id = ANY($1) AND state = 'pending'";

/// Only while nobody else has charged it since.
const ROW_UNCHARGE: &str = "UPDATE settlement_batch b SET attempts = b.attempts - 1, retry_at = NULL
    FROM (SELECT id FROM settlement_batch WHERE id = ANY($1) AND state = 'pending' AND holder = $2 AND attempts > 0
        ORDER BY id FOR UPDATE) s WHERE b.id = s.id";

impl PostgresLedger {
    pub(super) async fn claim_in_one(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let mut tx = self.pool.begin().await?;
        set_limits(&mut tx, request.limits, request.limits.total).await?;
        let stored = lock_fence(&mut tx, request.unit).await?;
        let refused = match standing(request.stamp, stored) {
            Standing::Superseded => Some(Claim::Fenced { stored }),
            Standing::Unregistered => Some(Claim::ClaimLost),
            Standing::Current => None,
        };
        if let Some(refused) = refused {
            // At once: the shared lock on the fence row holds up the takeover.
            tx.rollback().await?;
            return Ok(refused);
        }
        let own = own(&mut tx, request.unit, request.stamp).await?;
        if !own.is_empty() {
            tx.rollback().await?;
            return Ok(Claim::Work(Claimed { batches: own, quarantined: Vec::new() }));
        }
        let quarantined = give_up(&mut tx, request).await?;
        let mut batches = fresh(&mut tx, request.unit, &request.due, request.most).await?;
        if batches.is_empty() {
            batches = charged(&mut tx, request).await?;
        }
        batches.truncate(fitting(&batches, request.most_items));
        mark(&mut tx, &mut batches, request.stamp, request.run).await?;
        tx.commit().await?;
        Ok(Claim::Work(Claimed { batches, quarantined }))
    }

    pub(super) async fn charge_batches(&self, request: &Charge) -> Result<Claimed, LedgerError> {
        retry::transaction_within(request.limits.window(), || self.charge_once(request)).await
    }

    async fn charge_once(&self, request: &Charge) -> Result<Claimed, LedgerError> {
        let mut tx = self.pool.begin().await?;
        set_limits(&mut tx, request.limits, request.limits.total).await?;
        self.check_still(&sqlx::query(LOCK_CUT).fetch_one(&mut *tx).await?)?;
        let (quarantined, mut batches) = match request.unit {
            Some(unit) => match of_unit(&mut tx, request, unit, self.meta.ledger_id).await {
                Err(LedgerError::Busy(_)) => return Ok(Claimed::default()),
                chosen => chosen?,
            },
            None => of_any_unit(&mut tx, request).await?,
        };
        batches.truncate(fitting(&batches, request.most_items));
        let ids: Vec<i64> = batches.iter().map(|batch| batch.id.0).collect();
        let retry_ms = i64::try_from(request.retry_after.as_millis()).unwrap_or(i64::MAX);
        let marked = sqlx::query(ROW_MARK).bind(&ids).bind(request.holder.0).bind(request.run.0).bind(retry_ms);
        marked.execute(&mut *tx).await?;
        tx.commit().await?;
        batches.iter_mut().for_each(|batch| batch.attempts += 1);
        Ok(Claimed { batches, quarantined })
    }

    pub(super) async fn release_in_one(
        &self,
        unit: Unit,
        stamp: Stamp,
        batches: &[BatchId],
        uncharge: bool,
    ) -> Result<u64, LedgerError> {
        let ids: Vec<i64> = batches.iter().map(|batch| batch.0).collect();
        let mut tx = self.pool.begin().await?;
        set_limits(&mut tx, HAND_BACK, HAND_BACK.total).await?;
        let released = sqlx::query(RELEASE)
            .bind(&ids)
            .bind(stamp.fence.generation)
            .bind(stamp.fence.token)
            .bind(stamp.holder.0)
            .bind(unit.0)
            .bind(i32::from(uncharge))
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(released.rows_affected())
    }
}

impl PostgresLedger {
    pub(super) async fn uncharge_in_one(&self, holder: HolderId, batches: &[BatchId]) -> Result<u64, LedgerError> {
        let ids: Vec<i64> = batches.iter().map(|batch| batch.0).collect();
        let mut tx = self.pool.begin().await?;
        set_limits(&mut tx, HAND_BACK, HAND_BACK.total).await?;
        let uncharged = sqlx::query(ROW_UNCHARGE).bind(&ids).bind(holder.0).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(uncharged.rows_affected())
    }
}

/// What is given up, and what is due: of any unit.
async fn of_any_unit(tx: &mut PgConnection, request: &Charge) -> Result<(Vec<BatchId>, Vec<ClaimedBatch>), LedgerError> {
    let (upto, sources) = (request.due.upto, request.due.sources.names());
    let give_up = sqlx::query_scalar(ROW_GIVE_UP).bind(upto).bind(request.max_attempts).bind(sources);
    let quarantined: Vec<i64> = give_up.fetch_all(&mut *tx).await?;
    let fresh = sqlx::query(ROW_FRESH).bind(upto).bind(i64::from(request.most)).bind(sources);
    let mut batches = claimed(&fresh.fetch_all(&mut *tx).await?)?;
    if batches.is_empty() {
        batches = claimed(&sqlx::query(ROW_CHARGED).bind(upto).bind(sources).fetch_all(tx).await?)?;
    }
    Ok((quarantined.into_iter().map(BatchId).collect(), batches))
}

/// The same of one unit, under its lock.
async fn of_unit(
    tx: &mut PgConnection,
    request: &Charge,
    unit: Unit,
    ledger: LedgerId,
) -> Result<(Vec<BatchId>, Vec<ClaimedBatch>), LedgerError> {
    advisory::lock(tx, ledger, unit).await?;
    let quarantined = advisory::give_up(tx, request, unit).await?;
    let mut batches = fresh(tx, unit, &request.due, request.most).await?;
    if batches.is_empty() {
        batches = advisory::charged(tx, request, unit).await?;
    }
    Ok((quarantined, batches))
}

pub(super) async fn lock_fence(tx: &mut PgConnection, unit: Unit) -> Result<Stamp, LedgerError> {
    Ok(stamp(&sqlx::query(LOCK_FENCE).bind(unit.0).fetch_one(tx).await?)?)
}

async fn own(tx: &mut PgConnection, unit: Unit, stamp: Stamp) -> Result<Vec<ClaimedBatch>, LedgerError> {
    let rows = sqlx::query(OWN)
        .bind(unit.0)
        .bind(stamp.fence.generation)
        .bind(stamp.fence.token)
        .bind(stamp.holder.0)
        .fetch_all(tx)
        .await?;
    claimed(&rows)
}

async fn give_up(tx: &mut PgConnection, request: &ClaimRequest) -> Result<Vec<BatchId>, LedgerError> {
    let ids: Vec<i64> = sqlx::query_scalar(GIVE_UP)
        .bind(request.unit.0)
        .bind(request.due.upto)
        .bind(request.max_attempts)
        .bind(request.stamp.holder.0)
        .bind(request.stamp.fence.generation)
        .bind(request.stamp.fence.token)
        .bind(request.due.sources.names())
        .fetch_all(tx)
        .await?;
    Ok(ids.into_iter().map(BatchId).collect())
}

async fn fresh(tx: &mut PgConnection, unit: Unit, due: &Due, most: u32) -> Result<Vec<ClaimedBatch>, LedgerError> {
    let query = sqlx::query(FRESH).bind(unit.0).bind(due.upto).bind(i64::from(most)).bind(due.sources.names());
    claimed(&query.fetch_all(tx).await?)
}

async fn charged(tx: &mut PgConnection, request: &ClaimRequest) -> Result<Vec<ClaimedBatch>, LedgerError> {
    claimed(
        &sqlx::query(CHARGED).bind(request.unit.0).bind(request.due.upto).bind(request.due.sources.names()).fetch_all(tx).await?,
    )
}

async fn mark(tx: &mut PgConnection, batches: &mut [ClaimedBatch], stamp: Stamp, run: RunId) -> Result<(), LedgerError> {
    let ids: Vec<i64> = batches.iter().map(|batch| batch.id.0).collect();
    sqlx::query(MARK)
        .bind(&ids)
        .bind(stamp.fence.generation)
        .bind(stamp.fence.token)
        .bind(stamp.holder.0)
        .bind(run.0)
        .execute(tx)
        .await?;
    batches.iter_mut().for_each(|batch| batch.attempts += 1);
    Ok(())
}

pub(super) fn claimed(rows: &[sqlx::postgres::PgRow]) -> Result<Vec<ClaimedBatch>, LedgerError> {
    let read = |row: &sqlx::postgres::PgRow| -> Result<ClaimedBatch, sqlx::Error> {
        Ok(ClaimedBatch { id: BatchId(row.try_get("id")?), items: row.try_get("items")?, attempts: row.try_get("attempts")? })
    };
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}
