//! One's own jobs: a unit for each, and the record of what is done.

use super::{SqliteLedger, stamp};
use crate::job::{JobEnd, unfinished};
use crate::{Jobs, LedgerError};
use async_trait::async_trait;
use domain::fence::Stamp;
use domain::ids::RunId;
use domain::unit::Unit;

const FIND: &str = "SELECT unit FROM job WHERE name = $1";
const NAME: &str = "INSERT INTO job (name, unit) SELECT $1, coalesce(max(unit), 999999) + 1 FROM job WHERE true
    ON CONFLICT (name) DO NOTHING";
/// Under the newest generation: a holder from before it must not find an empty row to register in.
const FENCE: &str = "INSERT INTO unit_fence (unit, generation)
    SELECT unit, coalesce((SELECT max(generation) FROM fence_source), 0) FROM job WHERE name = $1 ON CONFLICT DO NOTHING";
const DONE: &str =
    "SELECT fence_generation AS generation, fence_token AS token, holder FROM job_run WHERE job = $1 AND run_id = $2";
/// The fence is compared in the statement that writes, as everywhere.
const FINISH: &str = "INSERT INTO job_run (job, run_id, fence_generation, fence_token, holder)
    SELECT $1, $2, $4, $5, $6 WHERE EXISTS
        (SELECT 1 FROM unit_fence WHERE unit = $3 AND (generation, token, holder) = ($4, $5, $6))
    ON CONFLICT DO NOTHING";
/// A run of jobs alone, which has no sources, ends with its job: nobody else would note it.
const END_RUN: &str = "UPDATE run SET finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    WHERE id = $1 AND sources = '[]' AND finished_at IS NULL";

#[async_trait]
impl Jobs for SqliteLedger {
    async fn job_unit(&self, name: &str) -> Result<Unit, LedgerError> {
        if let Some(unit) = sqlx::query_scalar(FIND).bind(name).fetch_optional(&self.pool).await? {
            return Ok(Unit(unit));
        }
        let mut tx = self.write().await?;
        sqlx::query(NAME).bind(name).execute(&mut *tx).await?;
        sqlx::query(FENCE).bind(name).execute(&mut *tx).await?;
        let unit = sqlx::query_scalar(FIND).bind(name).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(Unit(unit))
    }

    async fn job_done(&self, name: &str, run: RunId) -> Result<Option<Stamp>, LedgerError> {
        let row = sqlx::query(DONE).bind(name).bind(run.0).fetch_optional(&self.pool).await?;
        Ok(row.as_ref().map(stamp).transpose()?)
    }

    async fn finish_job(&self, name: &str, run: RunId, unit: Unit, mine: Stamp) -> Result<JobEnd, LedgerError> {
        let mut tx = self.write().await?;
        let finished = sqlx::query(FINISH)
            .bind(name)
            .bind(run.0)
            .bind(unit.0)
            .bind(mine.fence.generation)
            .bind(mine.fence.token)
            .bind(mine.holder.0.hyphenated())
            .execute(&mut *tx)
            .await?;
        if finished.rows_affected() == 1 {
            sqlx::query(END_RUN).bind(run.0).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        if finished.rows_affected() == 1 {
            return Ok(JobEnd::Done);
        }
        unfinished(self, unit, mine, self.job_done(name, run).await?).await
    }
}
