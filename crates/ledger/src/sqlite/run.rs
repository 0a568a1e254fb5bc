//! Runs, and which units have work.

use super::SqliteLedger;
use crate::LedgerError;
use chrono::NaiveDate;
use domain::ids::{HolderId, RunId};
use domain::run::RunKey;
use domain::unit::Unit;

/// Any number of callers meet on the unique key.
const OPEN: &str = "INSERT INTO run (schedule, business_date, slot, opened_by) VALUES ($1, $2, $3, $4)
    ON CONFLICT (schedule, business_date, slot) DO NOTHING";
const FIND: &str = "SELECT id FROM run WHERE schedule = $1 AND business_date = $2 AND slot = $3";
const DUE_UNITS: &str = "SELECT DISTINCT unit FROM settlement_batch
    WHERE state IN ('pending', 'settling') AND business_date <= $1 ORDER BY unit";

impl SqliteLedger {
    pub(super) async fn open_run_row(&self, key: &RunKey, holder: HolderId) -> Result<RunId, LedgerError> {
        let mut tx = self.write().await?;
        let opened = sqlx::query(OPEN).bind(&key.schedule).bind(key.business_date).bind(&key.slot).bind(holder.0.hyphenated());
        opened.execute(&mut *tx).await?;
        let id = sqlx::query_scalar(FIND).bind(&key.schedule).bind(key.business_date).bind(&key.slot).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok(RunId(id))
    }

    pub(super) async fn units_with_work(&self, upto: NaiveDate) -> Result<Vec<Unit>, LedgerError> {
        let units: Vec<i32> = sqlx::query_scalar(DUE_UNITS).bind(upto).fetch_all(&self.pool).await?;
        Ok(units.into_iter().map(Unit).collect())
    }
}
