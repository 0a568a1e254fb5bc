//! Taking a batch back: a cancellation before it settled, a reversal after. One of them by hand, or all those that a file replaces.
//!
//! Nothing is locked and no turn is taken: whoever corrects or imports is the one writer of the file.

use super::import::stored_totals;
use super::operate::{audit_all, parse_state};
use super::settle::overflow;
use super::{SqliteLedger, json};
use crate::LedgerError;
use crate::correct::{REPLACE, ReplacedBatch, TakenBack};
use crate::import::{Changed, ImportMode, difference};
use crate::operate::Operator;
use domain::batch::{BatchEvent, BatchState};
use domain::ids::BatchId;
use domain::summary::FileSummary;
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;
use std::collections::BTreeMap;

pub(super) const READ_BATCHES: &str =
    "SELECT id, state FROM settlement_batch WHERE id IN (SELECT value FROM json_each($1)) ORDER BY id";
pub(super) const CHANGE_STATES: &str = "UPDATE settlement_batch AS b SET state = j.value ->> 2
    FROM json_each($1) AS j WHERE b.id = j.value ->> 0 AND b.state = j.value ->> 1 RETURNING id";
/// Each standing entry is mirrored: the same accounts and amounts, the sides swapped.
pub(super) const POST_REVERSALS: &str = "INSERT INTO journal_entry (entry_key, kind, batch_id, currency, unit, reverses_entry_id)
    SELECT 'reverse:' || b.id || ':' || b.revision || ':' || e.currency, 'reverse', b.id, e.currency, -1, e.id
    FROM json_each($1) j CROSS JOIN settlement_batch b ON b.id = j.value CROSS JOIN journal_entry e ON e.batch_id = b.id
    WHERE b.state = 'reversed' AND e.kind = 'settle' ORDER BY e.id";
pub(super) const POST_MIRRORED: &str = "INSERT INTO posting (entry_id, account_id, side, amount_minor)
    SELECT e.id, p.account_id, CASE p.side WHEN 'D' THEN 'C' ELSE 'D' END, p.amount_minor
    FROM json_each($1) j CROSS JOIN journal_entry e ON e.batch_id = j.value CROSS JOIN posting p ON p.entry_id = e.reverses_entry_id
    WHERE e.kind = 'reverse' ORDER BY e.id, p.account_id, p.side";
/// The stripes of operators, touched once, last, in order of account.
pub(super) const POST_STRIPES: &str = "INSERT INTO account_balance (account_id, unit, debit_minor, credit_minor)
    SELECT p.account_id, -1, coalesce(sum(p.amount_minor) FILTER (WHERE p.side = 'D'), 0),
        coalesce(sum(p.amount_minor) FILTER (WHERE p.side = 'C'), 0)
    FROM json_each($1) j CROSS JOIN journal_entry e ON e.batch_id = j.value CROSS JOIN posting p ON p.entry_id = e.id
    WHERE e.kind = 'reverse' GROUP BY p.account_id ORDER BY p.account_id
    ON CONFLICT (account_id, unit) DO UPDATE SET debit_minor = account_balance.debit_minor + excluded.debit_minor,
        credit_minor = account_balance.credit_minor + excluded.credit_minor";
pub(super) const FREE_IDENTITIES: &str = "DELETE FROM settled_item WHERE batch_id IN (SELECT value FROM json_each($1))";
/// Each new batch that has a revision before it.
pub(super) const REPLACED: &str =
    "SELECT n.external_batch_id, o.id AS old_id, o.revision AS old_revision, o.state, n.id AS new_id, n.revision AS new_revision
    FROM json_each($1) j CROSS JOIN settlement_batch n ON n.id = j.value CROSS JOIN settlement_batch o
        ON o.source = n.source AND o.external_batch_id = n.external_batch_id AND o.revision = n.revision - 1
    ORDER BY n.id";

impl SqliteLedger {
    /// Cancels or reverses one batch.
    pub(super) async fn correct(&self, id: BatchId, event: BatchEvent, operator: &Operator) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        let states = states(&mut tx, &[id]).await?;
        let taken = TakenBack::by(event, id, *states.get(&id).ok_or(LedgerError::NoSuchBatch(id))?)?;
        take_back(&mut tx, &[taken], operator).await?;
        tx.commit().await
    }
}

/// Takes back what the batches of a file are not the same as, or says how they differ.
pub(super) async fn make_room(
    tx: &mut SqliteConnection,
    file: &FileSummary,
    changed: &[Changed<'_>],
    mode: &ImportMode,
) -> Result<(), LedgerError> {
    let Some(first) = changed.first() else { return Ok(()) };
    let ImportMode::Replace { operator } = mode else {
        let stored = stored_totals(tx, first.there.id).await?;
        return Err(LedgerError::DifferentContent(difference(file, first, &stored)));
    };
    let taken: Vec<TakenBack> = changed
        .iter()
        .map(|changed| TakenBack::to_make_room(&file.name, changed.batch, changed.there.id, changed.there.state))
        .collect::<Result<_, _>>()?;
    take_back(tx, &taken, operator).await
}

/// What the new batches of a file have replaced, now or with a batch that was taken back before; it stands in the log with both.
pub(super) async fn replaced(
    tx: &mut SqliteConnection,
    new: &[i64],
    mode: &ImportMode,
) -> Result<Vec<ReplacedBatch>, LedgerError> {
    let ImportMode::Replace { operator } = mode else { return Ok(Vec::new()) };
    let mut replaced = Vec::new();
    for row in sqlx::query(REPLACED).bind(json(&new)).fetch_all(&mut *tx).await? {
        replaced.push(ReplacedBatch {
            external_batch_id: row.try_get("external_batch_id")?,
            old_id: BatchId(row.try_get("old_id")?),
            old_revision: row.try_get("old_revision")?,
            old_state: parse_state(row.try_get("state")?)?,
            new_id: BatchId(row.try_get("new_id")?),
            new_revision: row.try_get("new_revision")?,
        });
    }
    let both: Vec<_> = replaced.iter().flat_map(|pair| [(REPLACE, pair.old_id), (REPLACE, pair.new_id)]).collect();
    audit_all(tx, operator, &both).await?;
    Ok(replaced)
}

async fn states(tx: &mut SqliteConnection, ids: &[BatchId]) -> Result<BTreeMap<BatchId, BatchState>, LedgerError> {
    let rows = sqlx::query(READ_BATCHES).bind(json(&ids)).fetch_all(tx).await?;
    rows.iter().map(|row| Ok((BatchId(row.try_get("id")?), parse_state(row.try_get("state")?)?))).collect()
}

/// In one transaction with whatever makes use of the room. The effects are those of the rows that changed.
async fn take_back(tx: &mut SqliteConnection, taken: &[TakenBack], operator: &Operator) -> Result<(), LedgerError> {
    let rows: Vec<_> = taken.iter().map(|taken| (taken.id, taken.from.as_str(), taken.to.as_str())).collect();
    let changed: Vec<i64> = sqlx::query_scalar(CHANGE_STATES).bind(json(&rows)).fetch_all(&mut *tx).await?;
    let changed = json(&changed);
    sqlx::query(POST_REVERSALS).bind(&changed).execute(&mut *tx).await?;
    sqlx::query(POST_MIRRORED).bind(&changed).execute(&mut *tx).await?;
    sqlx::query(POST_STRIPES).bind(&changed).execute(&mut *tx).await.map_err(overflow)?;
    sqlx::query(FREE_IDENTITIES).bind(&changed).execute(&mut *tx).await?;
    let actions: Vec<_> = taken.iter().map(|taken| (taken.action(), taken.id)).collect();
    audit_all(tx, operator, &actions).await
}
