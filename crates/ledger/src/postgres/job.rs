//! One's own jobs: a unit for each, and the record of what is done.

use super::{PostgresLedger, SHORT, operate, set_limits, stamp};
use crate::job::{JobEnd, unfinished};
use crate::{Jobs, LedgerError};
use async_trait::async_trait;
use domain::fence::Stamp;
use domain::ids::RunId;
use domain::unit::Unit;

const FIND: &str = "SELECT unit FROM job WHERE name = $1";
const NAME: &str =
    "INSERT INTO job (name, unit) SELECT $1, coalesce(max(unit), 999999) + 1 FROM job ON CONFLICT (name) DO NOTHING";
/// Under the newest generation: a holder from before it must not find an empty row to register in.
const FENCE: &str = "INSERT INTO unit_fence (unit, generation)
    SELECT unit, coalesce((SELECT max(generation) FROM fence_source), 0) FROM job WHERE name = $1 ON CONFLICT DO NOTHING";
const DONE: &str =
    "SELECT fence_generation AS generation, fence_token AS token, holder FROM job_run WHERE job = $1 AND run_id = $2";
/// The fence is compared in the statement that writes, as everywhere. A run of jobs alone, which has no sources, ends with it: nobody
/// else would note it.
const FINISH: &str = "WITH done AS (
        INSERT INTO job_run (job, run_id, fence_generation, fence_token, holder)
        SELECT $1, $2, $4, $5, $6 WHERE EXISTS
            (SELECT 1 FROM unit_fence WHERE unit = $3 AND (generation, token, holder) = ($4, $5, $6) FOR SHARE)
        ON CONFLICT DO NOTHING RETURNING run_id
    ), ended AS (
        UPDATE run SET finished_at = clock_timestamp()
        WHERE id IN (SELECT run_id FROM done) AND sources = '{}' AND finished_at IS NULL
    )
    SELECT count(*) FROM done";

#[async_trait]
impl Jobs for PostgresLedger {
    async fn job_unit(&self, name: &str) -> Result<Unit, LedgerError> {
        if let Some(unit) = sqlx::query_scalar(FIND).bind(name).fetch_optional(&self.pool).await? {
            return Ok(Unit(unit));
        }
        let mut tx = self.pool.begin().await?;
        set_limits(&mut tx, SHORT, SHORT.total).await?;
        // Two names at once would take the same number, and a generation that is raised meanwhile would miss the new row.
        sqlx::query(operate::LOCK_META).execute(&mut *tx).await?;
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
        let finished: i64 = sqlx::query_scalar(FINISH)
            .bind(name)
            .bind(run.0)
            .bind(unit.0)
            .bind(mine.fence.generation)
            .bind(mine.fence.token)
            .bind(mine.holder.0)
            .fetch_one(&self.pool)
            .await?;
        if finished == 1 {
            return Ok(JobEnd::Done);
        }
        unfinished(self, unit, mine, self.job_done(name, run).await?).await
    }
}
