//! Runs: opening one, what it makes due, its end, its history.

use super::PostgresLedger;
use crate::LedgerError;
use crate::schedule::{Due, OpenRun, PlannedRun, RunFilter, RunHistory, ScheduleState};
use chrono::{DateTime, Utc};
use domain::ids::{HolderId, RunId};
use domain::run::RunKey;
use domain::unit::Unit;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

/// Any number of callers meet on the unique key. A missed run that is opened after all is missed no more; when it was due
/// stays, also where a person opens it, and so does that it was missed once.
const OPEN: &str =
    "INSERT INTO run (schedule, business_date, slot, scheduled_for, covers_from, covers_until, sources, note, opened_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (schedule, business_date, slot) DO UPDATE SET state = 'open',
        scheduled_for = coalesce(EXCLUDED.scheduled_for, run.scheduled_for), sources = EXCLUDED.sources,
        note = coalesce(EXCLUDED.note, run.note), missed_slots = 0, opened_by = EXCLUDED.opened_by,
        opened_at = clock_timestamp() WHERE run.state = 'missed'";
const FIND: &str = "SELECT id FROM run WHERE schedule = $1 AND business_date = $2 AND slot = $3";
const DUE_UNITS: &str = "SELECT DISTINCT unit FROM settlement_batch
    WHERE state IN ('pending', 'settling') AND business_date <= $1 AND ($2::text[] IS NULL OR source = ANY($2)) ORDER BY unit";

/// Of runs with the same sources, the newest business date covers what the older ones do. Each set of sources is leapt to by the
/// index, and the newest of it: a look costs what there are sets, however long the history. The last leap finds nothing, which stands
/// for the runs of all sources. Runs of jobs have no source at all, the least of all sets, and are nothing to settle. (Ordered by what is NULL throughout: only so does the planner see the order of the index in it.)
/// A run that a person opened for a day far ahead (`--allow-future`) is that person's: it makes nothing due for others before its day.
const NEWEST: &str = "WITH RECURSIVE listed (sources) AS (
        SELECT min(sources) FROM run WHERE state = 'open' AND sources > '{}'
        UNION ALL SELECT (SELECT min(r.sources) FROM run r WHERE r.state = 'open' AND r.sources > listed.sources)
        FROM listed WHERE listed.sources IS NOT NULL
    )
    SELECT id, schedule, business_date, slot, sources, scheduled_for, NOT EXISTS (
            SELECT 1 FROM run r WHERE r.state = 'open' AND r.finished_at IS NULL AND r.sources IS NOT DISTINCT FROM run.sources) AS finished
    FROM run WHERE id IN (
        SELECT CASE WHEN listed.sources IS NULL THEN (SELECT r.id FROM run r WHERE r.state = 'open' AND r.sources IS NULL
                AND r.business_date <= current_date + 1 ORDER BY r.sources, r.business_date DESC, r.id DESC LIMIT 1)
            ELSE (SELECT r.id FROM run r WHERE r.state = 'open' AND r.sources = listed.sources
                AND r.business_date <= current_date + 1 ORDER BY r.business_date DESC, r.id DESC LIMIT 1) END
        FROM listed)
    ORDER BY sources";
/// Runs of the same sources and of days before end with it. Looked at again here: a batch may have come meanwhile.
const FINISH: &str = "UPDATE run SET finished_at = clock_timestamp()
    WHERE finished_at IS NULL AND state = 'open' AND business_date <= $1 AND sources IS NOT DISTINCT FROM $2
    AND NOT EXISTS (SELECT 1 FROM settlement_batch
        WHERE state IN ('pending', 'settling') AND business_date <= $1 AND ($2::text[] IS NULL OR source = ANY($2)))";
const HISTORY: &str =
    "SELECT id, schedule, business_date, slot, state, scheduled_for, opened_at, opened_by, finished_at, missed_slots, missed_since,
        note,        (SELECT count(*) FROM settlement_batch b WHERE b.run_id = run.id AND b.state = 'settled') AS batches_settled
    FROM run WHERE $1::text IS NULL OR schedule = $1 ORDER BY opened_at DESC, id DESC LIMIT $2";

/// Opens a run; whether it was not open before.
pub(super) async fn open(tx: &mut PgConnection, run: &PlannedRun, holder: HolderId) -> Result<bool, sqlx::Error> {
    let opened = sqlx::query(OPEN)
        .bind(&run.key.schedule)
        .bind(run.key.business_date)
        .bind(&run.key.slot)
        .bind(run.scheduled_for)
        .bind(run.covers.map(|(from, _)| from))
        .bind(run.covers.map(|(_, until)| until))
        .bind(run.sources.names())
        .bind(&run.note)
        .bind(holder.0)
        .execute(tx)
        .await?;
    Ok(opened.rows_affected() == 1)
}

impl PostgresLedger {
    pub(super) async fn open_run_row(&self, run: &PlannedRun, holder: HolderId) -> Result<RunId, LedgerError> {
        open(&mut *self.pool.acquire().await?, run, holder).await?;
        let key = &run.key;
        let id =
            sqlx::query_scalar(FIND).bind(&key.schedule).bind(key.business_date).bind(&key.slot).fetch_one(&self.pool).await?;
        Ok(RunId(id))
    }

    pub(super) async fn units_with_work(&self, due: &Due) -> Result<Vec<Unit>, LedgerError> {
        let units: Vec<i32> =
            sqlx::query_scalar(DUE_UNITS).bind(due.upto).bind(due.sources.names()).fetch_all(&self.pool).await?;
        Ok(units.into_iter().map(Unit).collect())
    }

    pub(super) async fn newest_runs(&self) -> Result<Vec<OpenRun>, LedgerError> {
        let rows = sqlx::query(NEWEST).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(open_run).collect::<Result<_, _>>()?)
    }

    pub(super) async fn finish_runs(&self, due: &Due) -> Result<u64, LedgerError> {
        Ok(sqlx::query(FINISH).bind(due.upto).bind(due.sources.names()).execute(&self.pool).await?.rows_affected())
    }

    pub(super) async fn states(&self) -> Result<Vec<ScheduleState>, LedgerError> {
        let state = |row: &PgRow| -> Result<ScheduleState, sqlx::Error> {
            Ok(ScheduleState {
                schedule: row.try_get("schedule")?,
                last_run: row.try_get("last_run")?,
                missed: row.try_get("missed")?,
            })
        };
        Ok(sqlx::query(crate::schedule::STATES).fetch_all(&self.pool).await?.iter().map(state).collect::<Result<_, _>>()?)
    }

    pub(super) async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunHistory>, LedgerError> {
        let rows = sqlx::query(HISTORY).bind(&filter.schedule).bind(i64::from(filter.limit)).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(history).collect::<Result<_, _>>()?)
    }
}

fn key(row: &PgRow) -> Result<RunKey, sqlx::Error> {
    Ok(RunKey { schedule: row.try_get("schedule")?, business_date: row.try_get("business_date")?, slot: row.try_get("slot")? })
}

fn open_run(row: &PgRow) -> Result<OpenRun, sqlx::Error> {
    let key = key(row)?;
    let sources: Option<Vec<String>> = row.try_get("sources")?;
    Ok(OpenRun {
        id: RunId(row.try_get("id")?),
        due: Due { upto: key.business_date, sources: sources.into() },
        key,
        scheduled_for: row.try_get::<Option<DateTime<Utc>>, _>("scheduled_for")?,
        finished: row.try_get("finished")?,
        units: Vec::new(),
    })
}

fn history(row: &PgRow) -> Result<RunHistory, sqlx::Error> {
    Ok(RunHistory {
        id: RunId(row.try_get("id")?),
        key: key(row)?,
        state: row.try_get("state")?,
        scheduled_for: row.try_get("scheduled_for")?,
        opened_at: row.try_get("opened_at")?,
        opened_by: HolderId(row.try_get("opened_by")?),
        finished_at: row.try_get("finished_at")?,
        batches_settled: row.try_get("batches_settled")?,
        missed_slots: row.try_get("missed_slots")?,
        missed_since: row.try_get("missed_since")?,
        note: row.try_get("note")?,
    })
}
