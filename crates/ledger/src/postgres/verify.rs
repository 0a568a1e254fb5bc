//! Every invariant, on one snapshot.

use super::PostgresLedger;
use crate::LedgerError;
use crate::verify::{
    APPEND_ONLY, CHECKS, Check, CurrencyTotal, Decision, ENTRIES, REVERSALS, REVERSED_AMOUNTS, Replacement, Reversal,
    ReversedAmount, STATES, TOTALS, VerifyReport, check, parse_sum, with_amounts,
};
use domain::batch::UnknownState;
use domain::ids::BatchId;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Both triggers of each table, enabled for every session, and that they still refuse: before which changes of which columns they
/// are asked (`tgtype` is 27 before each updated or deleted row, 34 before a TRUNCATE), and that all they do is raise.
const TRIGGERS: &str = "SELECT concat('table ', n.name, ' lacks its trigger ', w.trigger) AS detail
    FROM unnest($1::text[]) AS n (name) CROSS JOIN (VALUES ('append_only', 27), ('no_truncate', 34)) AS w (trigger, type)
    WHERE NOT EXISTS (SELECT 1 FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid
        WHERE t.tgrelid = to_regclass(n.name) AND t.tgname = w.trigger AND t.tgenabled IN ('O', 'A')
        AND t.tgtype = w.type AND t.tgqual IS NULL AND t.tgattr = '' AND f.proname = 'refuse_change'
        AND f.prosrc ~ '^[[:space:]]*BEGIN[[:space:]]+RAISE EXCEPTION [^;]*;[[:space:]]*END[[:space:]]*;?[[:space:]]*$')
    ORDER BY n.name, w.trigger LIMIT 6";

impl PostgresLedger {
    pub(super) async fn verify_snapshot(&self) -> Result<VerifyReport, LedgerError> {
        let mut tx = self.pool.begin_with(SNAPSHOT).await?;
        let mut checks = Vec::with_capacity(CHECKS.len());
        for (id, meaning, query) in CHECKS {
            let contradictions = match query {
                Some(query) => sqlx::query_scalar(query).fetch_all(&mut *tx).await?,
                None => sqlx::query_scalar(TRIGGERS).bind(&APPEND_ONLY[..]).fetch_all(&mut *tx).await?,
            };
            checks.push(check(id, meaning, contradictions));
        }
        let report = heading(&mut tx, checks).await?;
        tx.rollback().await?;
        Ok(report)
    }
}

async fn heading(tx: &mut PgConnection, checks: Vec<Check>) -> Result<VerifyReport, LedgerError> {
    let mut batches = BTreeMap::new();
    for row in sqlx::query(STATES).fetch_all(&mut *tx).await? {
        let (state, count): (String, i64) = (row.try_get("state")?, row.try_get("batches")?);
        batches.insert(state.parse().map_err(|e: UnknownState| LedgerError::Schema(e.to_string()))?, count.unsigned_abs());
    }
    let journal_entries: i64 = sqlx::query_scalar(ENTRIES).fetch_one(&mut *tx).await?;
    let mut totals = Vec::new();
    for row in sqlx::query(TOTALS).fetch_all(&mut *tx).await? {
        totals.push(CurrencyTotal {
            currency: row.try_get("currency")?,
            debits_minor: parse_sum(row.try_get("debits")?)?,
            credits_minor: parse_sum(row.try_get("credits")?)?,
        });
    }
    let ok = checks.iter().all(|check| check.ok);
    let reversals = reversals(tx).await?;
    Ok(VerifyReport { ok, batches, journal_entries: journal_entries.unsigned_abs(), totals, reversals, checks })
}

async fn reversals(tx: &mut PgConnection) -> Result<Vec<Reversal>, LedgerError> {
    let rows = sqlx::query(REVERSALS).fetch_all(&mut *tx).await?;
    let reversals = rows.iter().map(reversal).collect::<Result<_, _>>()?;
    let mut amounts = Vec::new();
    for row in sqlx::query(REVERSED_AMOUNTS).fetch_all(tx).await? {
        let debits_minor = parse_sum(row.try_get("debits")?)?;
        amounts.push((BatchId(row.try_get("batch_id")?), ReversedAmount { currency: row.try_get("currency")?, debits_minor }));
    }
    Ok(with_amounts(reversals, amounts))
}

fn reversal(row: &PgRow) -> Result<Reversal, sqlx::Error> {
    let decision = match row.try_get("at")? {
        Some(reversed_at) => Some(Decision { reversed_at, operator: row.try_get("operator")?, reason: row.try_get("reason")? }),
        None => None,
    };
    let next: Option<i64> = row.try_get("next_id")?;
    let replacement = |id| Ok::<_, sqlx::Error>(Replacement { batch: BatchId(id), revision: row.try_get("next_revision")? });
    Ok(Reversal {
        batch: BatchId(row.try_get("id")?),
        source: row.try_get("source")?,
        external_batch_id: row.try_get("external_batch_id")?,
        revision: row.try_get("revision")?,
        amounts: Vec::new(),
        decision,
        replaced_by: next.map(replacement).transpose()?,
    })
}
