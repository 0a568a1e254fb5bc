//! Marks of schedules: every occurrence is planned once, by whichever instance is first.

use super::{SqliteLedger, instant, listed, operate, run};
use crate::operate::Operator;
use crate::schedule::{
    Adopt, Advance, Advanced, Due, Mark, Marks, MissedRun, OpenRun, RunFilter, RunHistory, ScheduleState, UNFINISHED, refuse,
};
use crate::{LedgerError, Schedules};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::ids::HolderId;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

/// The time comes with the marks, so that a planner compares them by one clock.
const MARKS: &str = "SELECT now, schedule, mark, definition FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS now) AS clock
    LEFT JOIN schedule_mark ON true ORDER BY schedule";
const START: &str = "INSERT INTO schedule_mark (schedule, mark, definition) VALUES ($1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), $2) ON CONFLICT DO NOTHING";
const LOCK_MARK: &str = "SELECT mark, definition FROM schedule_mark WHERE schedule = $1";
const MOVE_MARK: &str =
    "UPDATE schedule_mark SET mark = $2, moved_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE schedule = $1";
const MISS: &str =
    "INSERT INTO run (schedule, business_date, slot, state, scheduled_for, covers_from, covers_until, sources, note,
        missed_slots, missed_since, opened_by)
    VALUES ($1, $2, $3, 'missed', $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
/// The mark stays. Planners move it every few minutes, so what the new definition catches up with is what nobody has looked at.
const ADOPT: &str =
    "INSERT INTO schedule_mark (schedule, mark, definition) VALUES ($1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), $2)
    ON CONFLICT (schedule) DO UPDATE SET definition = EXCLUDED.definition,
        mark = CASE WHEN $3 THEN EXCLUDED.mark ELSE schedule_mark.mark END";

#[async_trait]
impl Schedules for SqliteLedger {
    async fn marks(&self) -> Result<Marks, LedgerError> {
        let rows = sqlx::query(MARKS).fetch_all(&self.pool).await?;
        let now = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get("now")?;
        let marks = rows.iter().map(mark).collect::<Result<Vec<_>, _>>()?;
        Ok(Marks { now, marks: marks.into_iter().flatten().collect() })
    }

    async fn start_schedule(&self, schedule: &str, definition: &str) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        sqlx::query(START).bind(schedule).bind(definition).execute(&mut *tx).await?;
        tx.commit().await
    }

    async fn advance(&self, advance: &Advance, planner: HolderId) -> Result<Advanced, LedgerError> {
        let mut tx = self.write().await?;
        let stored = sqlx::query(LOCK_MARK).bind(&advance.schedule).fetch_optional(&mut *tx).await?;
        let stored = stored.as_ref().map(stored_mark).transpose()?;
        if let Some(refused) = refuse(stored, advance) {
            tx.rollback().await?;
            return Ok(refused);
        }
        let (mut opened, mut missed) = (0, 0);
        for planned in &advance.runs {
            opened += u64::from(run::open(&mut tx, planned, planner).await?);
        }
        for row in &advance.missed {
            missed += miss(&mut tx, row, planner).await?;
        }
        sqlx::query(MOVE_MARK).bind(&advance.schedule).bind(instant(advance.to)).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(Advanced::Done { opened, missed })
    }

    async fn adopt_schedule(&self, schedule: &str, adopt: Adopt<'_>, operator: &Operator) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        sqlx::query(ADOPT).bind(schedule).bind(adopt.definition).bind(adopt.from_now).execute(&mut *tx).await?;
        operate::audit(&mut tx, operator, "schedule adopt", schedule).await?;
        tx.commit().await
    }

    async fn open_work(&self) -> Result<Vec<OpenRun>, LedgerError> {
        let mut runs = self.newest_runs().await?;
        for run in &mut runs {
            run.units = self.units_with_work(&run.due).await?;
        }
        Ok(runs)
    }

    async fn finish(&self, due: &Due) -> Result<u64, LedgerError> {
        self.finish_runs(due).await
    }

    async fn schedule_states(&self) -> Result<Vec<ScheduleState>, LedgerError> {
        self.states().await
    }

    async fn unfinished(&self) -> Result<Vec<(String, DateTime<Utc>)>, LedgerError> {
        Ok(sqlx::query_as(UNFINISHED).fetch_all(&self.pool).await?)
    }

    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunHistory>, LedgerError> {
        self.runs(filter).await
    }
}

/// No schedule at all still tells the time.
fn mark(row: &SqliteRow) -> Result<Option<Mark>, sqlx::Error> {
    let Some(schedule) = row.try_get("schedule")? else { return Ok(None) };
    let (at, definition) = stored_mark(row)?;
    Ok(Some(Mark { schedule, at, definition }))
}

fn stored_mark(row: &SqliteRow) -> Result<(DateTime<Utc>, String), sqlx::Error> {
    Ok((row.try_get("mark")?, row.try_get("definition")?))
}

async fn miss(
    tx: &mut SqliteConnection,
    MissedRun { run, slots, since }: &MissedRun,
    planner: HolderId,
) -> Result<u64, LedgerError> {
    let missed = sqlx::query(MISS)
        .bind(&run.key.schedule)
        .bind(run.key.business_date)
        .bind(&run.key.slot)
        .bind(run.scheduled_for.map(instant))
        .bind(run.covers.map(|(from, _)| instant(from)))
        .bind(run.covers.map(|(_, until)| instant(until)))
        .bind(listed(&run.sources))
        .bind(&run.note)
        .bind(i32::try_from(*slots).unwrap_or(i32::MAX))
        .bind(instant(*since))
        .bind(planner.0.hyphenated())
        .execute(tx)
        .await?;
    Ok(missed.rows_affected())
}
