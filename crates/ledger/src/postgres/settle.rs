//! The settle transaction: the state condition and the fence in one UPDATE, then the effects for exactly the rows it returned.
//!
//! Nothing here looks at the clock of this process or at its lease: once begun, the transaction runs to its bounded end and
//! the ledger decides. A newer holder that registers waits for the shared lock on the fence row, so after its own commit
//! nothing older is written.

use super::claim::lock_fence;
use super::{PostgresLedger, advisory, set_limits};
use crate::schedule::{Due, PlannedRun};
use crate::settle::{
    self, Authority, BatchSeen, Charge, Claim, ClaimRequest, Claimed, ReadBack, SettleWork, TemplateColumns, Transactions,
};
use crate::{Guard, LedgerError, Settlements};
use async_trait::async_trait;
use domain::fence::{Fence, Stamp};
use domain::ids::{BatchId, HolderId, RunId};
use domain::outcome::SettleOutcome;
use domain::step::{Probe, Step};
use domain::unit::Unit;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;
use sqlx::{PgConnection, Postgres, Row};
use std::time::Instant;

/// Lock order: the fence row (shared, for the whole transaction), then the batches by id.
const MARK_UNDER_FENCE: &str = "UPDATE settlement_batch b SET state = 'settled', settled_at = clock_timestamp(), run_id = $6
    FROM (SELECT id FROM settlement_batch WHERE id = ANY($1) AND unit = $2 AND state = 'settling'
        AND EXISTS (SELECT 1 FROM unit_fence WHERE unit = $2 AND generation = $3 AND token = $4 AND holder = $5 FOR SHARE)
        ORDER BY id FOR UPDATE) s
    WHERE b.id = s.id AND b.fence_generation = $3 AND b.fence_token = $4 AND b.holder = $5 RETURNING b.id";

/// The shortest path for data in one database: the row lock is the claim, or the unit's advisory lock above it, and the state
/// condition is the guard.
const MARK_UNDER_ROW_LOCK: &str = "UPDATE settlement_batch b SET state = 'settled', settled_at = clock_timestamp(),
        fence_generation = 0, fence_token = 0, holder = $2, run_id = $3
    FROM (SELECT id FROM settlement_batch WHERE id = ANY($1) AND state = 'pending' AND ($5::integer IS NULL OR unit = $5)
        AND EXISTS (SELECT 1 FROM ledger_meta WHERE guard = $4 FOR SHARE) ORDER BY id FOR UPDATE) s
    WHERE b.id = s.id RETURNING b.id";

/// Lines are summed per batch, merchant and kind first (that is all the reading there is), then spread over the templates,
/// then summed per (account, side) and never netted. Stripes are touched once, last, in order of account. An account that is
/// missing makes account_id NULL, which the table refuses: nothing is dropped in silence.
const POST_EFFECTS: &str = "WITH batch AS (
    SELECT id, revision, fee_mode, unit, fence_generation, fence_token, holder, run_id
    FROM settlement_batch WHERE id = ANY($1)
), sums AS (
    SELECT batch_id, currency, merchant, kind,
        sum(gross_minor) FILTER (WHERE gross_minor > 0) AS gross_up, -sum(gross_minor) FILTER (WHERE gross_minor < 0) AS gross_down,
        sum(fee_minor) FILTER (WHERE fee_minor > 0) AS fee_up, -sum(fee_minor) FILTER (WHERE fee_minor < 0) AS fee_down,
        sum(net_minor) FILTER (WHERE net_minor > 0) AS net_up, -sum(net_minor) FILTER (WHERE net_minor < 0) AS net_down
    FROM batch_item WHERE batch_id = ANY($1) GROUP BY batch_id, currency, merchant, kind
), line AS (
    SELECT s.batch_id, s.currency,
        CASE t.role WHEN 'merchant_payable' THEN 'merchant_payable:' || s.merchant ELSE t.role END AS code,
        CASE WHEN t.sign > 0 THEN m.up ELSE m.down END AS debit, CASE WHEN t.sign > 0 THEN m.down ELSE m.up END AS credit
    FROM sums s JOIN batch b ON b.id = s.batch_id
    JOIN unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[]) AS t (kind, fee_mode, role, measure, sign)
        ON t.kind = s.kind AND t.fee_mode = b.fee_mode
    CROSS JOIN LATERAL (SELECT CASE t.measure WHEN 'gross' THEN gross_up WHEN 'fee' THEN fee_up ELSE net_up END AS up,
        CASE t.measure WHEN 'gross' THEN gross_down WHEN 'fee' THEN fee_down ELSE net_down END AS down) m
    UNION ALL
    SELECT x.batch_id, x.currency, v.code, greatest(v.amount, 0), greatest(-v.amount, 0)
    FROM batch_total x CROSS JOIN LATERAL (VALUES
        ('bank', declared_remittance_minor), ('clearing', -declared_remittance_minor),
        ('rounding_difference', rounding_minor), ('clearing', -rounding_minor),
        ('suspense', accepted_minor), ('clearing', -accepted_minor)) AS v (code, amount)
    WHERE x.batch_id = ANY($1) AND v.amount <> 0
), sided AS (
    SELECT batch_id, currency, code, sum(debit)::bigint AS debit, sum(credit)::bigint AS credit
    FROM line GROUP BY batch_id, currency, code HAVING sum(debit) > 0 OR sum(credit) > 0
), entry AS (
    INSERT INTO journal_entry (entry_key, kind, batch_id, currency, unit, fence_generation, fence_token, holder, run_id)
    SELECT 'settle:' || b.id || ':' || b.revision || ':' || e.currency, 'settle', b.id, e.currency, b.unit,
        b.fence_generation, b.fence_token, b.holder, b.run_id
    FROM (SELECT DISTINCT batch_id, currency FROM sided) e JOIN batch b ON b.id = e.batch_id ORDER BY b.id, e.currency
    RETURNING id, batch_id, currency, unit
), post AS (
    INSERT INTO posting (entry_id, account_id, side, amount_minor)
    SELECT e.id, a.id, v.side, v.amount
    FROM sided s JOIN entry e ON e.batch_id = s.batch_id AND e.currency = s.currency
    LEFT JOIN account a ON a.code = s.code AND a.currency = s.currency
    CROSS JOIN LATERAL (VALUES ('D', s.debit), ('C', s.credit)) AS v (side, amount)
    WHERE v.amount > 0
    RETURNING entry_id, account_id, side, amount_minor
)
INSERT INTO account_balance AS stripe (account_id, unit, debit_minor, credit_minor)
SELECT p.account_id, e.unit, coalesce(sum(p.amount_minor) FILTER (WHERE p.side = 'D'), 0)::bigint,
    coalesce(sum(p.amount_minor) FILTER (WHERE p.side = 'C'), 0)::bigint
FROM post p JOIN entry e ON e.id = p.entry_id GROUP BY p.account_id, e.unit ORDER BY p.account_id, e.unit
ON CONFLICT (account_id, unit) DO UPDATE SET debit_minor = stripe.debit_minor + excluded.debit_minor,
    credit_minor = stripe.credit_minor + excluded.credit_minor";

/// Waits for a transaction in flight on these rows, so that what it shows is final.
const READ_BACK: &str = "SELECT id, state, fence_generation AS generation, fence_token AS token, holder FROM settlement_batch
    WHERE id = ANY($1) ORDER BY id FOR SHARE";

/// The transaction of [`PostgresLedger`]'s settle for one batch, as a script for `pgbench -M prepared`: the same statements
/// without this program around them, to measure against. Batch ids are `:base + 1 ..`, spread over `:clients`.
#[must_use]
pub fn pgbench_script(stamp: Stamp, run: RunId) -> String {
    let templates = TemplateColumns::all();
    let words = |words: &[&str]| format!("'{{{}}}'", words.join(","));
    let signs: Vec<String> = templates.sign.iter().map(i16::to_string).collect();
    let (generation, token) = (stamp.fence.generation.to_string(), stamp.fence.token.to_string());
    let batch = "ARRAY[:id]::bigint[]".to_owned();
    let unit = "(SELECT unit FROM settlement_batch WHERE id = :id)".to_owned();
    let holder = format!("'{}'", stamp.holder);
    let mark = bound(MARK_UNDER_FENCE, &[batch.clone(), unit, generation, token, holder, run.to_string()]);
    let signs = format!("'{{{}}}'", signs.join(","));
    let columns = [&templates.kind, &templates.fee_mode, &templates.role, &templates.measure].map(|column| words(column));
    let effects = bound(POST_EFFECTS, &[&[batch][..], &columns, &[signs]].concat());
    let limits = bound(super::SET_LIMITS, &["'15000'".to_owned(), "'7500'".to_owned(), "'7500'".to_owned()]);
    let count = "\\set n :n + 1\n\\set id :base + (:n - 1) * :clients + :client_id + 1\n";
    format!("{count}BEGIN;\n{limits};\n{mark};\n{limits};\n{effects};\nCOMMIT;\n")
}

/// A statement with its parameters written out, on one line.
fn bound(statement: &str, parameters: &[String]) -> String {
    let one_line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    (0..parameters.len()).rev().fold(one_line, |text, i| text.replace(&format!("${}", i + 1), &parameters[i]))
}

#[async_trait]
impl Transactions for PostgresLedger {
    async fn claim_once(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.claim_in_one(request).await
    }

    async fn settle_once(&self, work: &SettleWork<'_>, probe: &dyn Probe) -> Result<Vec<BatchId>, LedgerError> {
        let begun = Instant::now();
        let mut tx = self.pool.begin().await?;
        set_limits(&mut tx, work.limits, work.limits.total).await?;
        if let Authority::AdvisoryXact { unit, .. } = work.authority {
            // not had: the transaction ends here, with nothing in it
            advisory::lock(&mut tx, self.meta.ledger_id, unit).await?;
        }
        let settled = mark_settled(&mut tx, work).await?;
        if settled.is_empty() {
            tx.rollback().await?;
            return Ok(Vec::new());
        }
        set_limits(&mut tx, work.limits, work.limits.total.saturating_sub(begun.elapsed())).await?;
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
        let mut tx = self.pool.begin().await?;
        set_limits(&mut tx, work.limits, work.limits.total).await?;
        let stored = match work.authority {
            Authority::Lease { unit, .. } => Some(lock_fence(&mut tx, unit).await?),
            Authority::RowLock { .. } | Authority::AdvisoryXact { .. } => None,
        };
        let ids: Vec<i64> = batches.iter().map(|batch| batch.0).collect();
        let rows = sqlx::query(READ_BACK).bind(&ids).fetch_all(&mut *tx).await?;
        tx.commit().await?;
        Ok(ReadBack { stored, batches: rows.iter().map(seen).collect::<Result<_, _>>()? })
    }
}

type Marking = QueryScalar<'static, Postgres, i64, PgArguments>;

async fn mark_settled(tx: &mut PgConnection, work: &SettleWork<'_>) -> Result<Vec<i64>, LedgerError> {
    let ids: Vec<i64> = work.batches.iter().map(|batch| batch.0).collect();
    let query = match work.authority {
        Authority::Lease { unit, stamp } => sqlx::query_scalar(MARK_UNDER_FENCE)
            .bind(ids)
            .bind(unit.0)
            .bind(stamp.fence.generation)
            .bind(stamp.fence.token)
            .bind(stamp.holder.0)
            .bind(work.run.0),
        Authority::RowLock { holder } => under_row_lock(ids, holder, work.run, Guard::RowLock, None),
        Authority::AdvisoryXact { holder, unit } => under_row_lock(ids, holder, work.run, Guard::AdvisoryXact, Some(unit)),
    };
    Ok(query.fetch_all(tx).await?)
}

fn under_row_lock(ids: Vec<i64>, holder: HolderId, run: RunId, guard: Guard, unit: Option<Unit>) -> Marking {
    let query = sqlx::query_scalar(MARK_UNDER_ROW_LOCK).bind(ids).bind(holder.0).bind(run.0);
    query.bind(guard.as_str()).bind(unit.map(|unit| unit.0))
}

async fn post_effects(tx: &mut PgConnection, settled: &[i64]) -> Result<(), LedgerError> {
    let templates = TemplateColumns::all();
    sqlx::query(POST_EFFECTS)
        .bind(settled)
        .bind(&templates.kind)
        .bind(&templates.fee_mode)
        .bind(&templates.role)
        .bind(&templates.measure)
        .bind(&templates.sign)
        .execute(tx)
        .await?;
    Ok(())
}

fn seen(row: &sqlx::postgres::PgRow) -> Result<BatchSeen, LedgerError> {
    let state: String = row.try_get("state")?;
    Ok(BatchSeen {
        id: BatchId(row.try_get("id")?),
        state: state.parse().map_err(|unknown: domain::batch::UnknownState| LedgerError::Schema(unknown.to_string()))?,
        stamp: Stamp {
            fence: Fence { generation: row.try_get("generation")?, token: row.try_get("token")? },
            holder: HolderId(row.try_get("holder")?),
        },
    })
}

#[async_trait]
impl Settlements for PostgresLedger {
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
