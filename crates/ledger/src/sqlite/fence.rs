//! Tokens, sources, and the newest holder of each unit.

use super::{SqliteLedger, stamp, uuid};
use crate::operate::{FenceRow, Operator, RejectionRow, SourceRow};
use crate::{Fences, LedgerError, Rejection};
use async_trait::async_trait;
use domain::fence::{Fence, Stamp};
use domain::ids::{BatchId, HolderId};
use domain::unit::Unit;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

/// The first source of a ledger is adopted by asking; two that ask at once take turns, and the second finds the first.
const ADOPT_FIRST: &str = "INSERT INTO fence_source (generation, source, reason, adopted_by)
    SELECT 1, $1, 'first source of this ledger', 'settled' WHERE NOT EXISTS (SELECT 1 FROM fence_source)
    ON CONFLICT DO NOTHING";
/// With what the ledger is now: an instance that was opened before `config adopt` must not go on as if nothing had happened.
const NEWEST_SOURCE: &str =
    "SELECT generation, source, partitions, guard FROM fence_source, ledger_meta ORDER BY generation DESC LIMIT 1";

/// Its own committed transaction: a token that is rolled back would be given twice.
const MINT: &str = "UPDATE fence_counter SET token = token + 1 RETURNING token";

/// Newer, or the same holder once more (its reply was lost).
const REGISTER: &str = "UPDATE unit_fence SET generation = $2, token = $3, holder = $4,
        registered_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    WHERE unit = $1 AND ((generation, token) < ($2, $3) OR ((generation, token) = ($2, $3) AND holder = $4))";
const STORED: &str = "SELECT generation, token, holder FROM unit_fence WHERE unit = $1";

const INSERT_REJECTION: &str = "INSERT INTO fence_rejection
    (operation, unit, batch_id, generation, token, holder, stored_generation, stored_token, stored_holder)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

const ADOPT_SOURCE: &str = "INSERT INTO fence_source (generation, source, reason, adopted_by)
    SELECT coalesce(max(generation), 0) + 1, $1, $2, $3 FROM fence_source RETURNING generation";
/// Every unit at once: a holder of the old generation is refused everywhere from this commit on.
const RAISE_UNITS: &str = "UPDATE unit_fence SET generation = $1, token = 0,
    holder = '00000000-0000-0000-0000-000000000000', registered_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

const FENCES: &str = "SELECT unit, generation, token, holder, registered_at FROM unit_fence
    WHERE unit < (SELECT partitions FROM ledger_meta) ORDER BY unit";
const SOURCES: &str = "SELECT generation, source, reason, adopted_by, adopted_at FROM fence_source ORDER BY generation DESC";
const REJECTIONS: &str =
    "SELECT rejected_at, operation, unit, batch_id, generation, token, holder, stored_generation, stored_token,
        stored_holder FROM fence_rejection ORDER BY id DESC LIMIT $1";

impl SqliteLedger {
    pub(super) async fn stored(&self, unit: Unit) -> Result<Stamp, LedgerError> {
        Ok(stamp(&sqlx::query(STORED).bind(unit.0).fetch_one(&self.pool).await?)?)
    }
}

#[async_trait]
impl Fences for SqliteLedger {
    async fn generation(&self, source: &str) -> Result<i64, LedgerError> {
        let mut newest = sqlx::query(NEWEST_SOURCE).fetch_optional(&self.pool).await?;
        if newest.is_none() {
            let mut tx = self.write().await?;
            sqlx::query(ADOPT_FIRST).bind(source).execute(&mut *tx).await?;
            newest = sqlx::query(NEWEST_SOURCE).fetch_optional(&mut *tx).await?;
            tx.commit().await?;
        }
        let row = newest.ok_or(sqlx::Error::RowNotFound)?;
        self.check_still(&row)?;
        let (generation, newest): (i64, String) = (row.try_get("generation")?, row.try_get("source")?);
        if newest == source {
            return Ok(generation);
        }
        Err(LedgerError::SourceSuperseded { source_name: source.to_owned(), newest, generation })
    }

    async fn mint(&self) -> Result<i64, LedgerError> {
        let mut tx = self.write().await?;
        let token = sqlx::query_scalar(MINT).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(token)
    }

    async fn register(&self, unit: Unit, mine: Stamp) -> Result<Stamp, LedgerError> {
        let mut tx = self.write().await?;
        let registered = sqlx::query(REGISTER)
            .bind(unit.0)
            .bind(mine.fence.generation)
            .bind(mine.fence.token)
            .bind(mine.holder.0.hyphenated())
            .execute(&mut *tx)
            .await?;
        if registered.rows_affected() == 1 {
            tx.commit().await?;
            return Ok(mine);
        }
        let stored = stamp(&sqlx::query(STORED).bind(unit.0).fetch_one(&mut *tx).await?)?;
        tx.rollback().await?;
        Ok(stored)
    }

    async fn record_rejections(&self, rejections: &[Rejection]) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        for Rejection { operation, unit, batch, stamp, stored } in rejections {
            sqlx::query(INSERT_REJECTION)
                .bind(operation.as_str())
                .bind(unit.0)
                .bind(batch.map(|batch| batch.0))
                .bind(stamp.fence.generation)
                .bind(stamp.fence.token)
                .bind(stamp.holder.0.hyphenated())
                .bind(stored.fence.generation)
                .bind(stored.fence.token)
                .bind(stored.holder.0.hyphenated())
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await
    }

    async fn adopt_source(&self, source: &str, operator: &Operator) -> Result<i64, LedgerError> {
        let mut tx = self.write().await?;
        let generation: i64 =
            sqlx::query_scalar(ADOPT_SOURCE).bind(source).bind(&operator.reason).bind(&operator.name).fetch_one(&mut *tx).await?;
        sqlx::query(RAISE_UNITS).bind(generation).execute(&mut *tx).await?;
        super::operate::audit(&mut tx, operator, "fence adopt", source).await?;
        tx.commit().await?;
        Ok(generation)
    }

    async fn fence(&self, unit: Unit) -> Result<Stamp, LedgerError> {
        self.stored(unit).await
    }

    async fn fences(&self) -> Result<Vec<FenceRow>, LedgerError> {
        let rows = sqlx::query(FENCES).fetch_all(&self.pool).await?;
        let read = |row: &SqliteRow| -> Result<FenceRow, sqlx::Error> {
            Ok(FenceRow { unit: Unit(row.try_get("unit")?), stamp: stamp(row)?, registered_at: row.try_get("registered_at")? })
        };
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    async fn sources(&self) -> Result<Vec<SourceRow>, LedgerError> {
        let rows = sqlx::query(SOURCES).fetch_all(&self.pool).await?;
        let read = |row: &SqliteRow| -> Result<SourceRow, sqlx::Error> {
            Ok(SourceRow {
                generation: row.try_get("generation")?,
                source: row.try_get("source")?,
                reason: row.try_get("reason")?,
                adopted_by: row.try_get("adopted_by")?,
                adopted_at: row.try_get("adopted_at")?,
            })
        };
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    async fn rejections(&self, limit: u32) -> Result<Vec<RejectionRow>, LedgerError> {
        let rows = sqlx::query(REJECTIONS).bind(i64::from(limit)).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(rejection).collect::<Result<_, _>>()?)
    }
}

fn rejection(row: &SqliteRow) -> Result<RejectionRow, sqlx::Error> {
    let fence = Fence { generation: row.try_get("stored_generation")?, token: row.try_get("stored_token")? };
    Ok(RejectionRow {
        rejected_at: row.try_get("rejected_at")?,
        operation: row.try_get("operation")?,
        unit: Unit(row.try_get("unit")?),
        batch: row.try_get::<Option<i64>, _>("batch_id")?.map(BatchId),
        stamp: stamp(row)?,
        newer: Stamp { fence, holder: HolderId(uuid(row, "stored_holder")?) },
    })
}
