//! What operators look at and do. Every change is one transaction with its line in the audit log.

use super::{INSERT_UNITS, SqliteLedger, json, listed, no_advisory_locks, stamp};
use crate::operate::{
    BatchDetail, BatchFilter, BatchRow, DecisionRow, Operator, PostingRow, RevisionRow, RunRow, Status, TotalRow, Waiting,
    neighbours,
};
use crate::schedule::Due;
use crate::verify::VerifyReport;
use crate::{Guard, LedgerError, Operations};
use async_trait::async_trait;
use domain::batch::{BatchEvent, BatchState, UnknownState, next};
use domain::ids::{BatchId, RunId};
use domain::unit::Unit;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

const STATES: &str = "SELECT state, count(*) AS batches, coalesce(sum(items), 0) AS items FROM settlement_batch
    WHERE ($1 IS NULL OR business_date <= $1) AND ($2 IS NULL OR source IN (SELECT value FROM json_each($2))) GROUP BY state";
const REJECTIONS: &str = "SELECT count(*) FROM fence_rejection";
/// What was missed was not run, and a job of one's own settles nothing.
const LAST_RUN: &str = "SELECT id, schedule, business_date, slot, opened_at FROM run
    WHERE state = 'open' AND sources IS NOT '[]' ORDER BY opened_at DESC, id DESC LIMIT 1";
const RUN_SETTLED: &str = "SELECT count(*) FROM settlement_batch WHERE run_id = $1 AND state = 'settled'";
const LIST: &str = "SELECT id, source, external_batch_id, revision, business_date, state, items, attempts, unit, break_reason
    FROM settlement_batch WHERE ($1 IS NULL OR state = $1) AND ($2 IS NULL OR business_date = $2)
    ORDER BY business_date DESC, id LIMIT $3";
const SHOW: &str =
    "SELECT b.id, b.source, external_batch_id, revision, business_date, state, b.items, attempts, unit, break_reason,
        fence_generation AS generation, fence_token AS token, holder, settled_at, f.name AS file
    FROM settlement_batch b JOIN import_file f ON f.id = b.import_file_id WHERE b.id = $1";
const TOTALS: &str = "SELECT currency, items, gross_minor, fee_minor, net_minor,
        remittance_minor + declared_remittance_minor AS remittance_minor, rounding_minor, difference_minor, accepted_minor
    FROM batch_total WHERE batch_id = $1 ORDER BY currency";
const DECISIONS: &str =
    "SELECT at, operator, action, reason FROM audit_log WHERE subject = $1 AND action LIKE 'batch %' ORDER BY id";
const POSTINGS: &str = "SELECT e.entry_key, a.code AS account, a.currency, p.side, p.amount_minor
    FROM journal_entry e JOIN posting p ON p.entry_id = e.id JOIN account a ON a.id = p.account_id
    WHERE e.batch_id = $1 AND e.kind = $2 ORDER BY e.id, p.side DESC, a.code";
const NEIGHBOURS: &str = "SELECT o.id, o.revision, o.state FROM settlement_batch b JOIN settlement_batch o
        ON o.source = b.source AND o.external_batch_id = b.external_batch_id AND o.revision IN (b.revision - 1, b.revision + 1)
    WHERE b.id = $1";

const READ_BATCH: &str = "SELECT state FROM settlement_batch WHERE id = $1";
const CHANGE_STATE: &str = "UPDATE settlement_batch SET state = $3, attempts = 0, retry_at = NULL WHERE id = $1 AND state = $2";
const REPEATED_LINES: &str = "SELECT i.line_no FROM batch_item i JOIN settlement_batch b ON b.id = i.batch_id
    LEFT JOIN settled_item s ON s.source = b.source AND s.dedupe_key = i.dedupe_key AND s.batch_id = i.batch_id AND s.line_no = i.line_no
    WHERE i.batch_id = $1 AND s.batch_id IS NULL ORDER BY i.line_no LIMIT 5";
const ACCEPT_DIFFERENCE: &str = "UPDATE batch_total SET accepted_minor = difference_minor WHERE batch_id = $1";
const AUDIT: &str = "INSERT INTO audit_log (operator, action, subject, reason) VALUES ($1, $2, $3, $4)";
const AUDIT_ALL: &str = "INSERT INTO audit_log (operator, reason, action, subject)
    SELECT $1, $2, n.value ->> 0, CAST(n.value ->> 1 AS TEXT) FROM json_each($3) AS n ORDER BY n.key";

const SET_META: &str = "UPDATE ledger_meta SET partitions = $1, guard = $2";
const UNSETTLED: &str = "SELECT id, source, external_batch_id FROM settlement_batch
    WHERE state NOT IN ('settled', 'cancelled', 'reversed') ORDER BY id";
/// What somebody is settling is taken from them: their fence is gone with the units.
const CUT_ANEW: &str = "UPDATE settlement_batch AS b SET unit = n.value ->> 1, retry_at = NULL,
        state = CASE WHEN b.state = 'settling' THEN 'pending' ELSE b.state END
    FROM json_each($1) AS n WHERE b.id = n.value ->> 0";
const RAISE_SOURCE: &str = "INSERT INTO fence_source (generation, source, reason, adopted_by)
    SELECT generation + 1, source, $1, $2 FROM fence_source ORDER BY generation DESC LIMIT 1";
/// Also those that are units no more: their rows stay, so that a holder of one is refused like any other.
const RAISE_UNITS: &str = "UPDATE unit_fence SET generation = coalesce((SELECT max(generation) FROM fence_source), 0), token = 0,
    holder = '00000000-0000-0000-0000-000000000000', registered_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

pub(super) async fn audit(
    tx: &mut SqliteConnection,
    operator: &Operator,
    action: &str,
    subject: &str,
) -> Result<(), LedgerError> {
    sqlx::query(AUDIT).bind(&operator.name).bind(action).bind(subject).bind(&operator.reason).execute(tx).await?;
    Ok(())
}

/// Many decisions of one operator for one reason: actions, and the batches they were taken about.
pub(super) async fn audit_all(
    tx: &mut SqliteConnection,
    operator: &Operator,
    decisions: &[(&str, BatchId)],
) -> Result<(), LedgerError> {
    sqlx::query(AUDIT_ALL).bind(&operator.name).bind(&operator.reason).bind(json(&decisions)).execute(tx).await?;
    Ok(())
}

/// Moves a batch by one event of the state table, or says why not.
async fn change_state(tx: &mut SqliteConnection, id: BatchId, event: BatchEvent) -> Result<BatchState, LedgerError> {
    let state: Option<String> = sqlx::query_scalar(READ_BATCH).bind(id.0).fetch_optional(&mut *tx).await?;
    let from = parse_state(&state.ok_or(LedgerError::NoSuchBatch(id))?)?;
    let to = next(from, event).map_err(|source| LedgerError::Illegal { batch: id, source })?;
    sqlx::query(CHANGE_STATE).bind(id.0).bind(from.as_str()).bind(to.as_str()).execute(tx).await?;
    Ok(from)
}

pub(super) fn parse_state(word: &str) -> Result<BatchState, LedgerError> {
    word.parse().map_err(|unknown: UnknownState| LedgerError::Schema(unknown.to_string()))
}

fn batch_row(row: &SqliteRow) -> Result<BatchRow, LedgerError> {
    Ok(BatchRow {
        id: BatchId(row.try_get("id")?),
        source: row.try_get("source")?,
        external_batch_id: row.try_get("external_batch_id")?,
        revision: row.try_get("revision")?,
        business_date: row.try_get("business_date")?,
        state: parse_state(row.try_get("state")?)?,
        items: row.try_get("items")?,
        attempts: row.try_get("attempts")?,
        unit: Unit(row.try_get("unit")?),
        break_reason: row.try_get("break_reason")?,
    })
}

fn total_row(row: &SqliteRow) -> Result<TotalRow, sqlx::Error> {
    Ok(TotalRow {
        currency: row.try_get("currency")?,
        items: row.try_get("items")?,
        gross_minor: row.try_get("gross_minor")?,
        fee_minor: row.try_get("fee_minor")?,
        net_minor: row.try_get("net_minor")?,
        remittance_minor: row.try_get("remittance_minor")?,
        rounding_minor: row.try_get("rounding_minor")?,
        difference_minor: row.try_get("difference_minor")?,
        accepted_minor: row.try_get("accepted_minor")?,
    })
}

fn posting_row(row: &SqliteRow) -> Result<PostingRow, sqlx::Error> {
    Ok(PostingRow {
        entry_key: row.try_get("entry_key")?,
        account: row.try_get("account")?,
        currency: row.try_get("currency")?,
        side: row.try_get("side")?,
        amount_minor: row.try_get("amount_minor")?,
    })
}

fn revision_row(row: &SqliteRow) -> Result<RevisionRow, LedgerError> {
    Ok(RevisionRow {
        id: BatchId(row.try_get("id")?),
        revision: row.try_get("revision")?,
        state: parse_state(row.try_get("state")?)?,
    })
}

fn decision_row(row: &SqliteRow) -> Result<DecisionRow, sqlx::Error> {
    Ok(DecisionRow {
        at: row.try_get("at")?,
        operator: row.try_get("operator")?,
        action: row.try_get("action")?,
        reason: row.try_get("reason")?,
    })
}

fn run_row(row: &SqliteRow) -> Result<RunRow, sqlx::Error> {
    Ok(RunRow {
        id: RunId(row.try_get("id")?),
        schedule: row.try_get("schedule")?,
        business_date: row.try_get("business_date")?,
        slot: row.try_get("slot")?,
        opened_at: row.try_get("opened_at")?,
    })
}

#[async_trait]
impl Operations for SqliteLedger {
    async fn status(&self, due: Option<&Due>) -> Result<Status, LedgerError> {
        let mut status = Status::default();
        for row in sqlx::query(STATES)
            .bind(due.map(|due| due.upto))
            .bind(due.and_then(|due| listed(&due.sources)))
            .fetch_all(&self.pool)
            .await?
        {
            let count = |column| row.try_get::<i64, _>(column).map(i64::unsigned_abs);
            status.batches.insert(parse_state(row.try_get("state")?)?, count("batches")?);
            status.items += count("items")?;
        }
        status.fence_rejections = sqlx::query_scalar::<_, i64>(REJECTIONS).fetch_one(&self.pool).await?.unsigned_abs();
        status.last_run = sqlx::query(LAST_RUN).fetch_optional(&self.pool).await?.as_ref().map(run_row).transpose()?;
        Ok(status)
    }

    async fn waiting(&self) -> Result<Waiting, LedgerError> {
        let row = sqlx::query(crate::operate::WAITING).fetch_one(&self.pool).await?;
        Ok(Waiting {
            pending: row.try_get("pending")?,
            settling: row.try_get("settling")?,
            broken: row.try_get("broken")?,
            quarantined: row.try_get("quarantined")?,
            fence_rejections: row.try_get("fence_rejections")?,
        })
    }

    async fn run_settled(&self, run: RunId) -> Result<u64, LedgerError> {
        let settled: i64 = sqlx::query_scalar(RUN_SETTLED).bind(run.0).fetch_one(&self.pool).await?;
        Ok(settled.unsigned_abs())
    }

    async fn batches(&self, filter: &BatchFilter) -> Result<Vec<BatchRow>, LedgerError> {
        let rows = sqlx::query(LIST)
            .bind(filter.state.map(BatchState::as_str))
            .bind(filter.business_date)
            .bind(i64::from(filter.limit))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(batch_row).collect()
    }

    async fn batch(&self, id: BatchId) -> Result<BatchDetail, LedgerError> {
        let row = sqlx::query(SHOW).bind(id.0).fetch_optional(&self.pool).await?.ok_or(LedgerError::NoSuchBatch(id))?;
        let totals = sqlx::query(TOTALS).bind(id.0).fetch_all(&self.pool).await?;
        let postings = sqlx::query(POSTINGS).bind(id.0).bind("settle").fetch_all(&self.pool).await?;
        let reversal = sqlx::query(POSTINGS).bind(id.0).bind("reverse").fetch_all(&self.pool).await?;
        let others = sqlx::query(NEIGHBOURS).bind(id.0).fetch_all(&self.pool).await?;
        let decisions = sqlx::query(DECISIONS).bind(id.to_string()).fetch_all(&self.pool).await?;
        let listed = batch_row(&row)?;
        let others = others.iter().map(revision_row).collect::<Result<_, _>>()?;
        let (replaces, replaced_by) = neighbours(listed.revision, others);
        Ok(BatchDetail {
            row: listed,
            stamp: stamp(&row)?,
            file: row.try_get("file")?,
            settled_at: row.try_get("settled_at")?,
            totals: totals.iter().map(total_row).collect::<Result<_, _>>()?,
            postings: postings.iter().map(posting_row).collect::<Result<_, _>>()?,
            reversal: reversal.iter().map(posting_row).collect::<Result<_, _>>()?,
            replaces,
            replaced_by,
            decisions: decisions.iter().map(decision_row).collect::<Result<_, _>>()?,
        })
    }

    async fn retry_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        change_state(&mut tx, id, BatchEvent::Retry).await?;
        audit(&mut tx, operator, "batch retry", &id.to_string()).await?;
        tx.commit().await
    }

    async fn cancel_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        self.correct(id, BatchEvent::Cancel, operator).await
    }

    async fn reverse_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        self.correct(id, BatchEvent::Reverse, operator).await
    }

    async fn accept_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        change_state(&mut tx, id, BatchEvent::Accept).await?;
        let repeated: Vec<i64> = sqlx::query_scalar(REPEATED_LINES).bind(id.0).fetch_all(&mut *tx).await?;
        crate::operate::refuse_repeated(id, &repeated)?;
        sqlx::query(ACCEPT_DIFFERENCE).bind(id.0).execute(&mut *tx).await?;
        audit(&mut tx, operator, "batch accept", &id.to_string()).await?;
        tx.commit().await
    }

    async fn adopt_config(&self, partitions: i32, guard: Guard, operator: &Operator) -> Result<(), LedgerError> {
        if guard == Guard::AdvisoryXact {
            return Err(no_advisory_locks());
        }
        let mut tx = self.write().await?;
        sqlx::query(RAISE_SOURCE).bind(&operator.reason).bind(&operator.name).execute(&mut *tx).await?;
        sqlx::query(INSERT_UNITS).bind(partitions).execute(&mut *tx).await?;
        sqlx::query(RAISE_UNITS).execute(&mut *tx).await?;
        cut_anew(&mut tx, partitions).await?;
        sqlx::query(SET_META).bind(partitions).bind(guard.as_str()).execute(&mut *tx).await?;
        let subject = format!("worker.partitions = {partitions}, worker.guard = {}", guard.as_str());
        audit(&mut tx, operator, "config adopt", &subject).await?;
        tx.commit().await
    }

    async fn verify(&self) -> Result<VerifyReport, LedgerError> {
        self.verify_snapshot().await
    }
}

async fn cut_anew(tx: &mut SqliteConnection, partitions: i32) -> Result<(), LedgerError> {
    let mut cut = Vec::<(i64, i32)>::new();
    for row in sqlx::query(UNSETTLED).fetch_all(&mut *tx).await? {
        let (source, external): (String, String) = (row.try_get("source")?, row.try_get("external_batch_id")?);
        cut.push((row.try_get("id")?, Unit::of_batch(&source, &external, partitions).0));
    }
    sqlx::query(CUT_ANEW).bind(json(&cut)).execute(tx).await?;
    Ok(())
}
