//! Every invariant, on one snapshot.

use super::{SqliteLedger, json};
use crate::LedgerError;
use crate::verify::{
    APPEND_ONLY, CHECKS, Check, CurrencyTotal, Decision, ENTRIES, REVERSALS, REVERSED_AMOUNTS, Replacement, Reversal,
    ReversedAmount, STATES, VerifyReport, check, parse_sum, with_amounts,
};
use domain::batch::UnknownState;
use domain::ids::BatchId;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use std::collections::BTreeMap;

/// The triggers of each table, and that they still refuse: before which changes they are asked, and that all they do is raise.
/// A trigger cannot be switched off here, only dropped or replaced, so its text without white space tells.
const TRIGGERS: &str = "WITH needed (tbl, name, sql) AS (
        SELECT n.value, concat(n.value, '_no_', w.value ->> 0), concat('CREATETRIGGER', n.value, '_no_', w.value ->> 0, 'BEFORE',
            w.value ->> 1, 'ON', n.value, w.value ->> 2, 'BEGINSELECTRAISE(ABORT,''', n.value, 'isappend-only:', w.value ->> 3, ''');END')
        FROM json_each($1) n CROSS JOIN json_each('[[\"update\", \"UPDATE\", \"\", \"UPDATErefused\"],
            [\"delete\", \"DELETE\", \"\", \"DELETErefused\"], [\"replace\", \"INSERT\", \"WHENEXISTS(*)\", \"thekeyistaken\"]]') w
    )
    SELECT concat('table ', tbl, ' lacks its trigger ', name) AS detail FROM needed n
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_master t WHERE t.type = 'trigger' AND t.tbl_name = n.tbl AND t.name = n.name
        AND replace(replace(t.sql, ' ', ''), char(10), '') GLOB n.sql)
    ORDER BY tbl, name LIMIT 6";

/// The totals in two halves of 32 bits each: `sum` fails where a total leaves 64, and a heading may.
const TOTALS: &str = "SELECT e.currency,
        sum(CASE WHEN p.side = 'D' THEN p.amount_minor >> 32 ELSE 0 END) AS debits_high,
        sum(CASE WHEN p.side = 'D' THEN p.amount_minor & 4294967295 ELSE 0 END) AS debits_low,
        sum(CASE WHEN p.side = 'C' THEN p.amount_minor >> 32 ELSE 0 END) AS credits_high,
        sum(CASE WHEN p.side = 'C' THEN p.amount_minor & 4294967295 ELSE 0 END) AS credits_low
    FROM journal_entry e JOIN posting p ON p.entry_id = e.id GROUP BY e.currency ORDER BY e.currency";

impl SqliteLedger {
    pub(super) async fn verify_snapshot(&self) -> Result<VerifyReport, LedgerError> {
        // a read transaction: its first statement takes the snapshot, and writers go on beside it
        let mut tx = self.pool.begin().await?;
        let mut checks = Vec::with_capacity(CHECKS.len());
        for (id, meaning, query) in CHECKS {
            let contradictions = match query {
                Some(query) => sqlx::query_scalar(query).fetch_all(&mut *tx).await.map_err(|error| overflow(id, error))?,
                None => sqlx::query_scalar(TRIGGERS).bind(json(&APPEND_ONLY)).fetch_all(&mut *tx).await?,
            };
            checks.push(check(id, meaning, contradictions));
        }
        let report = heading(&mut tx, checks).await?;
        tx.rollback().await?;
        Ok(report)
    }
}

/// `sum` refuses to leave 64 bits with a plain SQLITE_ERROR; nothing else in a check can fail that way once it is compiled.
fn overflow(id: &str, error: sqlx::Error) -> LedgerError {
    match error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() {
        Some("1") => LedgerError::Config(format!(
            "check {id} cannot be made: it adds up more than 64 bits of minor units, where SQLite stops ({error}); what was settled is \
             as it was, but to verify it import the files into a ledger on PostgreSQL (database.url), which adds on"
        )),
        _ => error.into(),
    }
}

async fn heading(tx: &mut SqliteConnection, checks: Vec<Check>) -> Result<VerifyReport, LedgerError> {
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
            debits_minor: joined(&row, "debits_high", "debits_low")?,
            credits_minor: joined(&row, "credits_high", "credits_low")?,
        });
    }
    let ok = checks.iter().all(|check| check.ok);
    let reversals = reversals(tx).await?;
    Ok(VerifyReport { ok, batches, journal_entries: journal_entries.unsigned_abs(), totals, reversals, checks })
}

async fn reversals(tx: &mut SqliteConnection) -> Result<Vec<Reversal>, LedgerError> {
    let rows = sqlx::query(REVERSALS).fetch_all(&mut *tx).await?;
    let reversals = rows.iter().map(reversal).collect::<Result<_, _>>()?;
    let mut amounts = Vec::new();
    for row in sqlx::query(REVERSED_AMOUNTS).fetch_all(tx).await? {
        let debits_minor = parse_sum(row.try_get("debits")?)?;
        amounts.push((BatchId(row.try_get("batch_id")?), ReversedAmount { currency: row.try_get("currency")?, debits_minor }));
    }
    Ok(with_amounts(reversals, amounts))
}

fn reversal(row: &SqliteRow) -> Result<Reversal, sqlx::Error> {
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

fn joined(row: &SqliteRow, high: &str, low: &str) -> Result<i128, sqlx::Error> {
    let half = |column| row.try_get::<i64, _>(column).map(i128::from);
    Ok((half(high)? << 32) + half(low)?)
}
