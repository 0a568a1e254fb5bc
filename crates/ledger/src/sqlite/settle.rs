//! The settle transaction: the state condition and the fence in one UPDATE, then the effects for exactly the rows it returned.
//!
//! Nothing here looks at the clock of this process or at its lease: once begun, the transaction runs to its end and the ledger
//! decides. A newer holder that registers waits for the write lock of the file, so after its own commit nothing older is written.

use super::claim::read_fence;
use super::{SqliteLedger, json, no_advisory_locks, stamp};
use crate::schedule::{Due, PlannedRun};
use crate::settle::{
    self, Authority, BatchSeen, Charge, Claim, ClaimRequest, Claimed, ReadBack, SettleWork, TemplateColumns, Transactions,
};
use crate::{LedgerError, Settlements};
use async_trait::async_trait;
use domain::fence::Stamp;
use domain::ids::{BatchId, HolderId, RunId};
use domain::outcome::SettleOutcome;
use domain::step::{Probe, Step};
use domain::unit::Unit;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

/// The write lock is held already; fence and state are one condition all the same, as on the other engines.
pub(super) const MARK_UNDER_FENCE: &str = "UPDATE settlement_batch SET state = 'settled', run_id = $6,
        settled_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    WHERE id IN (SELECT value FROM json_each($1)) AND unit = $2 AND state = 'settling'
        AND EXISTS (SELECT 1 FROM unit_fence WHERE unit = $2 AND generation = $3 AND token = $4 AND holder = $5)
        AND fence_generation = $3 AND fence_token = $4 AND holder = $5 RETURNING id";

/// The shortest path for data in one database: the state condition is the guard.
pub(super) const MARK_UNDER_ROW_LOCK: &str =
    "UPDATE settlement_batch SET state = 'settled', run_id = $3, fence_generation = 0, fence_token = 0,
        holder = $2, settled_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
    WHERE id IN (SELECT value FROM json_each($1)) AND state = 'pending'
        AND EXISTS (SELECT 1 FROM ledger_meta WHERE guard = 'row-lock') RETURNING id";

// SQLite cannot write in a WITH clause, so what PostgreSQL does in one statement are four here, with a temporary table of the
// connection between them. It and the templates are filled once per connection, not per settlement. CROSS JOIN is SQLite's way
// to say that the order of the joins is meant: it has no statistics and would guess.

/// Debits and credits per account, summed over the lines of a batch. STRICT, so that a sum that became a float is refused.
const CREATE_SIDED: &str = "CREATE TEMP TABLE sided (batch_id INTEGER NOT NULL, currency TEXT NOT NULL, code TEXT NOT NULL,
    debit INTEGER NOT NULL, credit INTEGER NOT NULL, PRIMARY KEY (batch_id, currency, code)) STRICT, WITHOUT ROWID";
const CREATE_TEMPLATE: &str = "CREATE TEMP TABLE template (kind TEXT NOT NULL, fee_mode TEXT NOT NULL, role TEXT NOT NULL,
    measure TEXT NOT NULL, sign INTEGER NOT NULL, PRIMARY KEY (kind, fee_mode, role, measure)) STRICT, WITHOUT ROWID";
const INSERT_TEMPLATE: &str = "INSERT INTO template (kind, fee_mode, role, measure, sign) VALUES ($1, $2, $3, $4, $5)";
const CLEAR_SIDED: &str = "DELETE FROM sided";

/// Lines are summed per batch, merchant and kind first (that is all the reading there is), then spread over the templates,
/// then summed per (account, side) and never netted.
pub(super) const SUM_SIDES: &str = "WITH sums AS MATERIALIZED (
    SELECT b.id AS batch_id, b.fee_mode, i.currency, i.merchant, i.kind,
        sum(gross_minor) FILTER (WHERE gross_minor > 0) AS gross_up, -sum(gross_minor) FILTER (WHERE gross_minor < 0) AS gross_down,
        sum(fee_minor) FILTER (WHERE fee_minor > 0) AS fee_up, -sum(fee_minor) FILTER (WHERE fee_minor < 0) AS fee_down,
        sum(net_minor) FILTER (WHERE net_minor > 0) AS net_up, -sum(net_minor) FILTER (WHERE net_minor < 0) AS net_down
    FROM json_each($1) j CROSS JOIN settlement_batch b ON b.id = j.value CROSS JOIN batch_item i ON i.batch_id = b.id
    GROUP BY b.id, i.currency, i.merchant, i.kind
), measured AS (
    SELECT s.batch_id, s.currency, t.sign,
        CASE t.role WHEN 'merchant_payable' THEN 'merchant_payable:' || s.merchant ELSE t.role END AS code,
        CASE t.measure WHEN 'gross' THEN gross_up WHEN 'fee' THEN fee_up ELSE net_up END AS up,
        CASE t.measure WHEN 'gross' THEN gross_down WHEN 'fee' THEN fee_down ELSE net_down END AS down
    FROM sums s CROSS JOIN template t ON t.kind = s.kind AND t.fee_mode = s.fee_mode
), extra (code, measure, sign) AS (
    VALUES ('bank', 'remittance', 1), ('clearing', 'remittance', -1), ('rounding_difference', 'rounding', 1),
        ('clearing', 'rounding', -1), ('suspense', 'accepted', 1), ('clearing', 'accepted', -1)
), line AS (
    SELECT batch_id, currency, code, CASE WHEN sign > 0 THEN up ELSE down END AS debit,
        CASE WHEN sign > 0 THEN down ELSE up END AS credit
    FROM measured
    UNION ALL
    SELECT batch_id, currency, code, max(amount, 0), max(-amount, 0)
    FROM (SELECT t.batch_id, t.currency, x.code, x.sign * CASE x.measure WHEN 'remittance' THEN t.declared_remittance_minor
                WHEN 'rounding' THEN t.rounding_minor ELSE t.accepted_minor END AS amount
            FROM json_each($1) j CROSS JOIN batch_total t ON t.batch_id = j.value CROSS JOIN extra x)
    WHERE amount <> 0
)
INSERT INTO sided (batch_id, currency, code, debit, credit)
SELECT batch_id, currency, code, coalesce(sum(debit), 0), coalesce(sum(credit), 0)
FROM line GROUP BY batch_id, currency, code HAVING sum(debit) > 0 OR sum(credit) > 0";

pub(super) const POST_ENTRIES: &str =
    "INSERT INTO journal_entry (entry_key, kind, batch_id, currency, unit, fence_generation, fence_token, holder, run_id)
    SELECT 'settle:' || b.id || ':' || b.revision || ':' || d.currency, 'settle', b.id, d.currency, b.unit,
        b.fence_generation, b.fence_token, b.holder, b.run_id
    FROM (SELECT DISTINCT batch_id, currency FROM sided) d CROSS JOIN settlement_batch b ON b.id = d.batch_id
    ORDER BY b.id, d.currency";

/// An account that is missing makes account_id NULL, which the table refuses: nothing is dropped in silence.
pub(super) const POST_POSTINGS: &str = "INSERT INTO posting (entry_id, account_id, side, amount_minor)
    SELECT e.id, a.id, v.side, CASE v.side WHEN 'D' THEN s.debit ELSE s.credit END AS amount
    FROM sided s CROSS JOIN settlement_batch b ON b.id = s.batch_id
    CROSS JOIN journal_entry e ON e.entry_key = 'settle:' || b.id || ':' || b.revision || ':' || s.currency
    LEFT JOIN account a ON a.code = s.code AND a.currency = s.currency
    CROSS JOIN (SELECT 'D' AS side UNION ALL SELECT 'C') v
    WHERE amount > 0 ORDER BY e.id, a.id, v.side";

/// Stripes are touched once, last, in order of account.
pub(super) const POST_STRIPES: &str = "INSERT INTO account_balance (account_id, unit, debit_minor, credit_minor)
    SELECT a.id, b.unit, sum(s.debit), sum(s.credit)
    FROM sided s CROSS JOIN settlement_batch b ON b.id = s.batch_id
    CROSS JOIN account a ON a.code = s.code AND a.currency = s.currency
    WHERE true GROUP BY a.id, b.unit ORDER BY a.id, b.unit
    ON CONFLICT (account_id, unit) DO UPDATE SET debit_minor = account_balance.debit_minor + excluded.debit_minor,
        credit_minor = account_balance.credit_minor + excluded.credit_minor";

/// In a write transaction, behind one that is in flight: what it shows is final.
pub(super) const READ_BACK: &str =
    "SELECT id, state, fence_generation AS generation, fence_token AS token, holder FROM settlement_batch
    WHERE id IN (SELECT value FROM json_each($1)) ORDER BY id";

/// Every connection of the pool has its own.
pub(super) async fn prepare_connection(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query(CREATE_SIDED).execute(&mut *connection).await?;
    sqlx::query(CREATE_TEMPLATE).execute(&mut *connection).await?;
    let TemplateColumns { kind, fee_mode, role, measure, sign } = TemplateColumns::all();
    for row in 0..kind.len() {
        let insert = sqlx::query(INSERT_TEMPLATE).bind(kind[row]).bind(fee_mode[row]).bind(role[row]).bind(measure[row]);
        insert.bind(sign[row]).execute(&mut *connection).await?;
    }
    Ok(())
}

#[async_trait]
impl Transactions for SqliteLedger {
    async fn claim_once(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.claim_in_one(request).await
    }

    async fn settle_once(&self, work: &SettleWork<'_>, probe: &dyn Probe) -> Result<Vec<BatchId>, LedgerError> {
        let mut tx = self.write().await?;
        let settled = mark_settled(&mut tx, work).await?;
        if settled.is_empty() {
            tx.rollback().await?;
            return Ok(Vec::new());
        }
        post_effects(&mut tx, &settled).await?;
        let settled: Vec<BatchId> = settled.into_iter().map(BatchId).collect();
        probe.at_with(Step::InsideSettleTx, &settled);
        tx.commit().await?;
        Ok(settled)
    }

    async fn release_once(&self, unit: Unit, stamp: Stamp, batches: &[BatchId], uncharge: bool) -> Result<u64, LedgerError> {
        self.release_in_one(unit, stamp, batches, uncharge).await
    }

    async fn registered(&self, unit: Unit) -> Result<Stamp, LedgerError> {
        self.stored(unit).await
    }

    async fn read_back(&self, work: &SettleWork<'_>, batches: &[BatchId]) -> Result<ReadBack, LedgerError> {
        let mut tx = self.write().await?;
        let stored = match work.authority {
            Authority::Lease { unit, .. } => Some(read_fence(&mut tx, unit).await?),
            Authority::RowLock { .. } | Authority::AdvisoryXact { .. } => None,
        };
        let ids: Vec<i64> = batches.iter().map(|batch| batch.0).collect();
        let rows = sqlx::query(READ_BACK).bind(json(&ids)).fetch_all(&mut *tx).await?;
        tx.rollback().await?;
        Ok(ReadBack { stored, batches: rows.iter().map(seen).collect::<Result<_, _>>()? })
    }
}

async fn mark_settled(tx: &mut SqliteConnection, work: &SettleWork<'_>) -> Result<Vec<i64>, LedgerError> {
    let ids: Vec<i64> = work.batches.iter().map(|batch| batch.0).collect();
    let query = match work.authority {
        Authority::Lease { unit, stamp } => sqlx::query_scalar(MARK_UNDER_FENCE)
            .bind(json(&ids))
            .bind(unit.0)
            .bind(stamp.fence.generation)
            .bind(stamp.fence.token)
            .bind(stamp.holder.0.hyphenated())
            .bind(work.run.0),
        Authority::RowLock { holder } => {
            sqlx::query_scalar(MARK_UNDER_ROW_LOCK).bind(json(&ids)).bind(holder.0.hyphenated()).bind(work.run.0)
        }
        Authority::AdvisoryXact { .. } => return Err(no_advisory_locks()),
    };
    Ok(query.fetch_all(tx).await?)
}

async fn post_effects(tx: &mut SqliteConnection, settled: &[i64]) -> Result<(), LedgerError> {
    sqlx::query(CLEAR_SIDED).execute(&mut *tx).await?;
    sqlx::query(SUM_SIDES).bind(json(&settled)).execute(&mut *tx).await.map_err(overflow)?;
    sqlx::query(POST_ENTRIES).execute(&mut *tx).await?;
    sqlx::query(POST_POSTINGS).execute(&mut *tx).await?;
    sqlx::query(POST_STRIPES).execute(tx).await.map_err(overflow)?;
    Ok(())
}

/// `sum` refuses to leave 64 bits with a plain SQLITE_ERROR, which says nothing. But the schema was checked when the ledger was
/// opened, so these statements compile, and at run time nothing else in them can fail that way. (`+` does not refuse: it gives
/// a float, which a STRICT table does not take; that has a code of its own.)
pub(super) fn overflow(error: sqlx::Error) -> LedgerError {
    match error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() {
        Some("1") => LedgerError::Overflow(error),
        _ => error.into(),
    }
}

fn seen(row: &SqliteRow) -> Result<BatchSeen, LedgerError> {
    let state: String = row.try_get("state")?;
    Ok(BatchSeen {
        id: BatchId(row.try_get("id")?),
        state: state.parse().map_err(|unknown: domain::batch::UnknownState| LedgerError::Schema(unknown.to_string()))?,
        stamp: stamp(row)?,
    })
}

#[async_trait]
impl Settlements for SqliteLedger {
    async fn open_run(&self, run: &PlannedRun, holder: HolderId) -> Result<RunId, LedgerError> {
        self.open_run_row(run, holder).await
    }

    async fn due_units(&self, due: &Due) -> Result<Vec<Unit>, LedgerError> {
        self.units_with_work(due).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        settle::claim(self, request).await
    }

    async fn charge(&self, request: &Charge) -> Result<Claimed, LedgerError> {
        self.charge_batches(request).await
    }

    async fn settle(&self, work: &SettleWork<'_>, probe: &dyn Probe) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError> {
        settle::settle(self, work, probe).await
    }

    async fn release(&self, unit: Unit, stamp: Stamp, batches: &[BatchId], uncharge: bool) -> Result<u64, LedgerError> {
        settle::release(self, unit, stamp, batches, uncharge).await
    }

    async fn uncharge(&self, holder: HolderId, batches: &[BatchId]) -> Result<u64, LedgerError> {
        self.uncharge_in_one(holder, batches).await
    }
}
