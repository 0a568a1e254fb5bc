//! Runs: opening one, what it makes due, its end, its history.

use super::{SqliteLedger, instant, listed, uuid};
use crate::LedgerError;
use crate::schedule::{Due, OpenRun, PlannedRun, RunFilter, RunHistory, ScheduleState};
use chrono::{DateTime, Utc};
use domain::ids::{HolderId, RunId};
use domain::run::RunKey;
use domain::unit::Unit;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

/// Any number of callers meet on the unique key. A missed run that is opened after all is missed no more; when it was due
/// stays, also where a person opens it, and so does that it was missed once.
const OPEN: &str =
    "INSERT INTO run (schedule, business_date, slot, scheduled_for, covers_from, covers_until, sources, note, opened_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (schedule, business_date, slot) DO UPDATE SET state = 'open',
        scheduled_for = coalesce(EXCLUDED.scheduled_for, run.scheduled_for), sources = EXCLUDED.sources,
        note = coalesce(EXCLUDED.note, run.note), missed_slots = 0, opened_by = EXCLUDED.opened_by,
        opened_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE run.state = 'missed'";
const FIND: &str = "SELECT id FROM run WHERE schedule = $1 AND business_date = $2 AND slot = $3";
const DUE_UNITS: &str = "SELECT DISTINCT unit FROM settlement_batch
    WHERE state IN ('pending', 'settling') AND business_date <= $1 AND ($2 IS NULL OR source IN (SELECT value FROM json_each($2))) ORDER BY unit";

/// Of runs with the same sources, the newest business date covers what the older ones do. Each set of sources is leapt to by the
/// index, and the newest of it: a look costs what there are sets, however long the history. The last leap finds nothing, which stands
/// for the runs of all sources. Runs of jobs have no source at all, which is written as the greatest of all, and are nothing to settle.
/// A run that a person opened for a day far ahead (`--allow-future`) is that person's: it makes nothing due for others before its day.
pub(super) const NEWEST: &str = "WITH RECURSIVE listed (sources) AS (
        SELECT min(sources) FROM run WHERE state = 'open' AND sources < '[]'
        UNION ALL SELECT (SELECT min(r.sources) FROM run r WHERE r.state = 'open' AND r.sources > listed.sources AND r.sources < '[]')
        FROM listed WHERE listed.sources IS NOT NULL
    )
    SELECT id, schedule, business_date, slot, sources, scheduled_for, NOT EXISTS (
            SELECT 1 FROM run r WHERE r.state = 'open' AND r.finished_at IS NULL AND r.sources IS run.sources) AS finished
    FROM run WHERE id IN (SELECT (
        SELECT r.id FROM run r WHERE r.state = 'open' AND r.sources IS listed.sources
            AND r.business_date <= date('now', '+1 day') ORDER BY r.business_date DESC, r.id DESC LIMIT 1)
        FROM listed)
    ORDER BY sources NULLS LAST";
/// Runs of the same sources and of days before end with it. Looked at again here: a batch may have come meanwhile.
const FINISH: &str = "UPDATE run SET finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    WHERE finished_at IS NULL AND state = 'open' AND business_date <= $1 AND sources IS $2
    AND NOT EXISTS (SELECT 1 FROM settlement_batch
        WHERE state IN ('pending', 'settling') AND business_date <= $1 AND ($2 IS NULL OR source IN (SELECT value FROM json_each($2))))";
const HISTORY: &str =
    "SELECT id, schedule, business_date, slot, state, scheduled_for, opened_at, opened_by, finished_at, missed_slots, missed_since,
        note,        (SELECT count(*) FROM settlement_batch b WHERE b.run_id = run.id AND b.state = 'settled') AS batches_settled
    FROM run WHERE $1 IS NULL OR schedule = $1 ORDER BY opened_at DESC, id DESC LIMIT $2";

/// Opens a run; whether it was not open before.
pub(super) async fn open(tx: &mut SqliteConnection, run: &PlannedRun, holder: HolderId) -> Result<bool, sqlx::Error> {
    let opened = sqlx::query(OPEN)
        .bind(&run.key.schedule)
        .bind(run.key.business_date)
        .bind(&run.key.slot)
        .bind(run.scheduled_for.map(instant))
        .bind(run.covers.map(|(from, _)| instant(from)))
        .bind(run.covers.map(|(_, until)| instant(until)))
        .bind(listed(&run.sources))
        .bind(&run.note)
        .bind(holder.0.hyphenated())
        .execute(tx)
        .await?;
    Ok(opened.rows_affected() == 1)
}

impl SqliteLedger {
    pub(super) async fn open_run_row(&self, run: &PlannedRun, holder: HolderId) -> Result<RunId, LedgerError> {
        let mut tx = self.write().await?;
        open(&mut tx, run, holder).await?;
        let key = &run.key;
        let id = sqlx::query_scalar(FIND).bind(&key.schedule).bind(key.business_date).bind(&key.slot).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(RunId(id))
    }

    pub(super) async fn units_with_work(&self, due: &Due) -> Result<Vec<Unit>, LedgerError> {
        let units: Vec<i32> =
            sqlx::query_scalar(DUE_UNITS).bind(due.upto).bind(listed(&due.sources)).fetch_all(&self.pool).await?;
        Ok(units.into_iter().map(Unit).collect())
    }

    pub(super) async fn newest_runs(&self) -> Result<Vec<OpenRun>, LedgerError> {
        let rows = sqlx::query(NEWEST).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(open_run).collect::<Result<_, _>>()?)
    }

    pub(super) async fn finish_runs(&self, due: &Due) -> Result<u64, LedgerError> {
        let mut tx = self.write().await?;
        let sources = listed(&due.sources);
        let finished = sqlx::query(FINISH).bind(due.upto).bind(sources).execute(&mut *tx).await?.rows_affected();
        tx.commit().await?;
        Ok(finished)
    }

    pub(super) async fn states(&self) -> Result<Vec<ScheduleState>, LedgerError> {
        let state = |row: &SqliteRow| -> Result<ScheduleState, sqlx::Error> {
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

fn key(row: &SqliteRow) -> Result<RunKey, sqlx::Error> {
    Ok(RunKey { schedule: row.try_get("schedule")?, business_date: row.try_get("business_date")?, slot: row.try_get("slot")? })
}

fn open_run(row: &SqliteRow) -> Result<OpenRun, sqlx::Error> {
    let key = key(row)?;
    let sources: Option<String> = row.try_get("sources")?;
    let sources: Option<Vec<String>> =
        sources.map(|list| serde_json::from_str(&list)).transpose().map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(OpenRun {
        id: RunId(row.try_get("id")?),
        due: Due { upto: key.business_date, sources: sources.into() },
        key,
        scheduled_for: row.try_get::<Option<DateTime<Utc>>, _>("scheduled_for")?,
        finished: row.try_get("finished")?,
        units: Vec::new(),
    })
}

fn history(row: &SqliteRow) -> Result<RunHistory, sqlx::Error> {
    Ok(RunHistory {
        id: RunId(row.try_get("id")?),
        key: key(row)?,
        state: row.try_get("state")?,
        scheduled_for: row.try_get("scheduled_for")?,
        opened_at: row.try_get("opened_at")?,
        opened_by: HolderId(uuid(row, "opened_by")?),
        finished_at: row.try_get("finished_at")?,
        batches_settled: row.try_get("batches_settled")?,
        missed_slots: row.try_get("missed_slots")?,
        missed_since: row.try_get("missed_since")?,
        note: row.try_get("note")?,
    })
}
