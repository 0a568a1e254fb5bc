//! Claims: which batches are worked next, by whom, and what it costs them.
//!
//! An attempt is charged and committed *before* the work. So a batch that kills its worker is found out: whoever claims next
//! sees the charge. Never-charged batches are claimed many at a time; a charged one always comes alone, so that it takes no
//! neighbour along.

use super::{SqliteLedger, json, listed, no_advisory_locks, stamp};
use crate::settle::{Charge, Claim, ClaimRequest, Claimed, ClaimedBatch, fitting};
use crate::{LedgerError, retry};
use domain::fence::{Stamp, Standing, standing};
use domain::ids::{BatchId, HolderId, RunId};
use domain::unit::Unit;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

/// The write transaction keeps a newer holder from registering until it ends.
const READ_FENCE: &str = "SELECT generation, token, holder FROM unit_fence WHERE unit = $1";

// The condition of settlement_batch_due is repeated word for word where it is meant to be used (see the migration). Nobody has
// locked a row, so there is nothing to skip.

/// What this stamp claimed before, where the reply to that claim was lost.
pub(super) const OWN: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE unit = $1 AND state IN ('pending', 'settling') AND state = 'settling'
    AND fence_generation = $2 AND fence_token = $3 AND holder = $4 ORDER BY id";
pub(super) const GIVE_UP: &str =
    "UPDATE settlement_batch SET state = 'quarantined', holder = $4, fence_generation = $5, fence_token = $6
    WHERE unit = $1 AND state IN ('pending', 'settling') AND business_date <= $2 AND ($7 IS NULL OR source IN (SELECT value FROM json_each($7))) AND attempts >= $3 RETURNING id";
pub(super) const FRESH: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE unit = $1 AND state IN ('pending', 'settling') AND state = 'pending' AND business_date <= $2 AND ($4 IS NULL OR source IN (SELECT value FROM json_each($4))) AND attempts = 0
    ORDER BY id LIMIT $3";
pub(super) const CHARGED: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE unit = $1 AND state IN ('pending', 'settling') AND business_date <= $2 AND ($3 IS NULL OR source IN (SELECT value FROM json_each($3))) AND attempts > 0
    ORDER BY attempts, id LIMIT 1";
pub(super) const MARK: &str = "UPDATE settlement_batch SET state = 'settling', attempts = attempts + 1, fence_generation = $2,
    fence_token = $3, holder = $4, run_id = $5, claimed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    WHERE id IN (SELECT value FROM json_each($1)) AND state IN ('pending', 'settling')";

/// Only what this very stamp claimed, and only while it holds the unit.
pub(super) const RELEASE: &str = "UPDATE settlement_batch SET state = 'pending', attempts = attempts - $6
    WHERE id IN (SELECT value FROM json_each($1)) AND state = 'settling'
    AND fence_generation = $2 AND fence_token = $3 AND holder = $4
    AND EXISTS (SELECT 1 FROM unit_fence WHERE unit = $5 AND generation = $2 AND token = $3 AND holder = $4)";

/// There is no fence under a row lock, so the guard itself is looked at: `config adopt` waits for us, or we see what it did.
pub(super) const LOCK_CUT: &str = "SELECT partitions, guard FROM ledger_meta";

// Under the row-lock guard the state stays `pending`. There is no row lock here, so it is `retry_at` alone that keeps others from
// charging the batch again while it may still be worked.
pub(super) const ROW_GIVE_UP: &str = "UPDATE settlement_batch SET state = 'quarantined'
    WHERE state = 'pending' AND business_date <= $1 AND ($3 IS NULL OR source IN (SELECT value FROM json_each($3))) AND attempts >= $2
    AND (retry_at IS NULL OR retry_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) RETURNING id";
pub(super) const ROW_FRESH: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE state = 'pending' AND business_date <= $1 AND ($3 IS NULL OR source IN (SELECT value FROM json_each($3))) AND attempts = 0 ORDER BY id LIMIT $2";
pub(super) const ROW_CHARGED: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE state = 'pending' AND business_date <= $1 AND ($2 IS NULL OR source IN (SELECT value FROM json_each($2))) AND attempts > 0
    AND (retry_at IS NULL OR retry_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ORDER BY attempts, id LIMIT 1";
const ROW_MARK: &str = "UPDATE settlement_batch SET attempts = attempts + 1, holder = $2, run_id = $3,
        claimed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
        retry_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', format('%+.3f seconds', $4 / 1000.0))
    WHERE id IN (SELECT value FROM json_each($1)) AND state = 'pending'";

/// Only while nobody else has charged it since.
pub(super) const ROW_UNCHARGE: &str = "UPDATE settlement_batch SET attempts = attempts - 1, retry_at = NULL
    WHERE id IN (SELECT value FROM json_each($1)) AND state = 'pending' AND holder = $2 AND attempts > 0";

impl SqliteLedger {
    pub(super) async fn claim_in_one(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let mut tx = self.write().await?;
        let stored = read_fence(&mut tx, request.unit).await?;
        let refused = match standing(request.stamp, stored) {
            Standing::Superseded => Some(Claim::Fenced { stored }),
            Standing::Unregistered => Some(Claim::ClaimLost),
            Standing::Current => None,
        };
        if let Some(refused) = refused {
            tx.rollback().await?;
            return Ok(refused);
        }
        let own = own(&mut tx, request.unit, request.stamp).await?;
        if !own.is_empty() {
            tx.rollback().await?;
            return Ok(Claim::Work(Claimed { batches: own, quarantined: Vec::new() }));
        }
        let quarantined = give_up(&mut tx, request).await?;
        let mut batches = fresh(&mut tx, request).await?;
        if batches.is_empty() {
            batches = charged(&mut tx, request).await?;
        }
        batches.truncate(fitting(&batches, request.most_items));
        mark(&mut tx, &mut batches, request.stamp, request.run).await?;
        tx.commit().await?;
        Ok(Claim::Work(Claimed { batches, quarantined }))
    }

    pub(super) async fn charge_batches(&self, request: &Charge) -> Result<Claimed, LedgerError> {
        retry::transaction(|| self.charge_once(request)).await
    }

    async fn charge_once(&self, request: &Charge) -> Result<Claimed, LedgerError> {
        if request.unit.is_some() {
            return Err(no_advisory_locks());
        }
        let mut tx = self.write().await?;
        self.check_still(&sqlx::query(LOCK_CUT).fetch_one(&mut *tx).await?)?;
        let quarantined: Vec<i64> = sqlx::query_scalar(ROW_GIVE_UP)
            .bind(request.due.upto)
            .bind(request.max_attempts)
            .bind(listed(&request.due.sources))
            .fetch_all(&mut *tx)
            .await?;
        let fresh = sqlx::query(ROW_FRESH)
            .bind(request.due.upto)
            .bind(i64::from(request.most))
            .bind(listed(&request.due.sources))
            .fetch_all(&mut *tx)
            .await?;
        let rows = if fresh.is_empty() {
            sqlx::query(ROW_CHARGED).bind(request.due.upto).bind(listed(&request.due.sources)).fetch_all(&mut *tx).await?
        } else {
            fresh
        };
        let mut batches = claimed(&rows)?;
        batches.truncate(fitting(&batches, request.most_items));
        let ids: Vec<i64> = batches.iter().map(|batch| batch.id.0).collect();
        let retry_ms = i64::try_from(request.retry_after.as_millis()).unwrap_or(i64::MAX);
        let marked =
            sqlx::query(ROW_MARK).bind(json(&ids)).bind(request.holder.0.hyphenated()).bind(request.run.0).bind(retry_ms);
        marked.execute(&mut *tx).await?;
        tx.commit().await?;
        batches.iter_mut().for_each(|batch| batch.attempts += 1);
        Ok(Claimed { batches, quarantined: quarantined.into_iter().map(BatchId).collect() })
    }

    pub(super) async fn release_in_one(
        &self,
        unit: Unit,
        stamp: Stamp,
        batches: &[BatchId],
        uncharge: bool,
    ) -> Result<u64, LedgerError> {
        let ids: Vec<i64> = batches.iter().map(|batch| batch.0).collect();
        let mut tx = self.write().await?;
        let released = sqlx::query(RELEASE)
            .bind(json(&ids))
            .bind(stamp.fence.generation)
            .bind(stamp.fence.token)
            .bind(stamp.holder.0.hyphenated())
            .bind(unit.0)
            .bind(i32::from(uncharge))
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(released.rows_affected())
    }
}

impl SqliteLedger {
    pub(super) async fn uncharge_in_one(&self, holder: HolderId, batches: &[BatchId]) -> Result<u64, LedgerError> {
        let ids: Vec<i64> = batches.iter().map(|batch| batch.0).collect();
        let mut tx = self.write().await?;
        let uncharged = sqlx::query(ROW_UNCHARGE).bind(json(&ids)).bind(holder.0.hyphenated()).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(uncharged.rows_affected())
    }
}

pub(super) async fn read_fence(tx: &mut SqliteConnection, unit: Unit) -> Result<Stamp, LedgerError> {
    Ok(stamp(&sqlx::query(READ_FENCE).bind(unit.0).fetch_one(tx).await?)?)
}

async fn own(tx: &mut SqliteConnection, unit: Unit, stamp: Stamp) -> Result<Vec<ClaimedBatch>, LedgerError> {
    let rows = sqlx::query(OWN)
        .bind(unit.0)
        .bind(stamp.fence.generation)
        .bind(stamp.fence.token)
        .bind(stamp.holder.0.hyphenated())
        .fetch_all(tx)
        .await?;
    claimed(&rows)
}

async fn give_up(tx: &mut SqliteConnection, request: &ClaimRequest) -> Result<Vec<BatchId>, LedgerError> {
    let ids: Vec<i64> = sqlx::query_scalar(GIVE_UP)
        .bind(request.unit.0)
        .bind(request.due.upto)
        .bind(request.max_attempts)
        .bind(request.stamp.holder.0.hyphenated())
        .bind(request.stamp.fence.generation)
        .bind(request.stamp.fence.token)
        .bind(listed(&request.due.sources))
        .fetch_all(tx)
        .await?;
    Ok(ids.into_iter().map(BatchId).collect())
}

async fn fresh(tx: &mut SqliteConnection, request: &ClaimRequest) -> Result<Vec<ClaimedBatch>, LedgerError> {
    let query = sqlx::query(FRESH)
        .bind(request.unit.0)
        .bind(request.due.upto)
        .bind(i64::from(request.most))
        .bind(listed(&request.due.sources));
    claimed(&query.fetch_all(tx).await?)
}

async fn charged(tx: &mut SqliteConnection, request: &ClaimRequest) -> Result<Vec<ClaimedBatch>, LedgerError> {
    claimed(
        &sqlx::query(CHARGED)
            .bind(request.unit.0)
            .bind(request.due.upto)
            .bind(listed(&request.due.sources))
            .fetch_all(tx)
            .await?,
    )
}

async fn mark(tx: &mut SqliteConnection, batches: &mut [ClaimedBatch], stamp: Stamp, run: RunId) -> Result<(), LedgerError> {
    let ids: Vec<i64> = batches.iter().map(|batch| batch.id.0).collect();
    sqlx::query(MARK)
        .bind(json(&ids))
        .bind(stamp.fence.generation)
        .bind(stamp.fence.token)
        .bind(stamp.holder.0.hyphenated())
        .bind(run.0)
        .execute(tx)
        .await?;
    batches.iter_mut().for_each(|batch| batch.attempts += 1);
    Ok(())
}

fn claimed(rows: &[SqliteRow]) -> Result<Vec<ClaimedBatch>, LedgerError> {
    let read = |row: &SqliteRow| -> Result<ClaimedBatch, sqlx::Error> {
        Ok(ClaimedBatch { id: BatchId(row.try_get("id")?), items: row.try_get("items")?, attempts: row.try_get("attempts")? })
    };
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}
