//! Taking a batch back: a cancellation before it settled, a reversal after. One of them by hand, or all those that a file replaces.

use super::PostgresLedger;
use super::import::stored_totals;
use super::operate::{audit_all, parse_state};
use crate::LedgerError;
use crate::correct::{REPLACE, ReplacedBatch, TakenBack};
use crate::import::{Changed, ImportMode, difference};
use crate::operate::Operator;
use domain::batch::{BatchEvent, BatchState};
use domain::ids::BatchId;
use domain::summary::FileSummary;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;

/// An import decides by the batches and identities it finds: they must not leave under its eyes.
const TAKE_TURNS: &str = "SELECT pg_advisory_xact_lock(hashtext('settled import'))";
/// Whoever has the turn may take its time, but a client that is frozen must not hold up every other one.
const END_IF_FROZEN: &str = "SET LOCAL idle_in_transaction_session_timeout = '30s'";

/// A settlement in flight is waited for (it is bounded), so that what is decided by is final.
const LOCK_BATCHES: &str = "SELECT id, state FROM settlement_batch WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const CHANGE_STATES: &str = "UPDATE settlement_batch b SET state = n.to_state
    FROM unnest($1::bigint[], $2::text[], $3::text[]) AS n (id, from_state, to_state)
    WHERE b.id = n.id AND b.state = n.from_state RETURNING b.id";
/// Each standing entry is mirrored: the same accounts and amounts, the sides swapped. Posted to the stripes of operators, which
/// are touched once, last, in order of account.
const POST_REVERSALS: &str = "WITH entry AS (
    INSERT INTO journal_entry (entry_key, kind, batch_id, currency, unit, reverses_entry_id)
    SELECT 'reverse:' || b.id || ':' || b.revision || ':' || e.currency, 'reverse', b.id, e.currency, -1, e.id
    FROM settlement_batch b JOIN journal_entry e ON e.batch_id = b.id
    WHERE b.id = ANY($1) AND b.state = 'reversed' AND e.kind = 'settle' ORDER BY e.id
    RETURNING id, reverses_entry_id
), post AS (
    INSERT INTO posting (entry_id, account_id, side, amount_minor)
    SELECT e.id, p.account_id, CASE p.side WHEN 'D' THEN 'C' ELSE 'D' END, p.amount_minor
    FROM entry e JOIN posting p ON p.entry_id = e.reverses_entry_id
    RETURNING account_id, side, amount_minor
)
INSERT INTO account_balance AS stripe (account_id, unit, debit_minor, credit_minor)
SELECT account_id, -1, coalesce(sum(amount_minor) FILTER (WHERE side = 'D'), 0)::bigint,
    coalesce(sum(amount_minor) FILTER (WHERE side = 'C'), 0)::bigint
FROM post GROUP BY account_id ORDER BY account_id
ON CONFLICT (account_id, unit) DO UPDATE SET debit_minor = stripe.debit_minor + excluded.debit_minor,
    credit_minor = stripe.credit_minor + excluded.credit_minor";
const FREE_IDENTITIES: &str = "DELETE FROM settled_item WHERE batch_id = ANY($1)";
/// Each new batch that has a revision before it.
const REPLACED: &str =
    "SELECT n.external_batch_id, o.id AS old_id, o.revision AS old_revision, o.state, n.id AS new_id, n.revision AS new_revision
    FROM settlement_batch n JOIN settlement_batch o
        ON o.source = n.source AND o.external_batch_id = n.external_batch_id AND o.revision = n.revision - 1
    WHERE n.id = ANY($1) ORDER BY n.id";

/// Waits for imports and other corrections; until the end of the transaction.
pub(super) async fn take_turn(tx: &mut PgConnection) -> Result<(), LedgerError> {
    sqlx::query(END_IF_FROZEN).execute(&mut *tx).await?;
    sqlx::query(TAKE_TURNS).execute(tx).await?;
    Ok(())
}

impl PostgresLedger {
    /// Cancels or reverses one batch.
    pub(super) async fn correct(&self, id: BatchId, event: BatchEvent, operator: &Operator) -> Result<(), LedgerError> {
        let mut tx = self.pool.begin().await?;
        take_turn(&mut tx).await?;
        let locked = lock(&mut tx, &[id]).await?;
        let taken = TakenBack::by(event, id, *locked.get(&id).ok_or(LedgerError::NoSuchBatch(id))?)?;
        take_back(&mut tx, &[taken], operator).await?;
        Ok(tx.commit().await?)
    }
}

/// Takes back what the batches of a file are not the same as, or says how they differ.
pub(super) async fn make_room(
    tx: &mut PgConnection,
    file: &FileSummary,
    changed: &[Changed<'_>],
    mode: &ImportMode,
) -> Result<(), LedgerError> {
    let Some(first) = changed.first() else { return Ok(()) };
    let ImportMode::Replace { operator } = mode else {
        let stored = stored_totals(tx, first.there.id).await?;
        return Err(LedgerError::DifferentContent(difference(file, first, &stored)));
    };
    let ids: Vec<BatchId> = changed.iter().map(|changed| changed.there.id).collect();
    let locked = lock(tx, &ids).await?;
    let taken: Vec<TakenBack> = changed
        .iter()
        .filter_map(|changed| Some((changed, *locked.get(&changed.there.id)?)))
        .map(|(changed, state)| TakenBack::to_make_room(&file.name, changed.batch, changed.there.id, state))
        .collect::<Result<_, _>>()?;
    take_back(tx, &taken, operator).await
}

/// What the new batches of a file have replaced, now or with a batch that was taken back before; it stands in the log with both.
pub(super) async fn replaced(tx: &mut PgConnection, new: &[i64], mode: &ImportMode) -> Result<Vec<ReplacedBatch>, LedgerError> {
    let ImportMode::Replace { operator } = mode else { return Ok(Vec::new()) };
    let mut replaced = Vec::new();
    for row in sqlx::query(REPLACED).bind(new).fetch_all(&mut *tx).await? {
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

async fn lock(tx: &mut PgConnection, ids: &[BatchId]) -> Result<BTreeMap<BatchId, BatchState>, LedgerError> {
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query(LOCK_BATCHES).bind(&ids).fetch_all(tx).await?;
    rows.iter().map(|row| Ok((BatchId(row.try_get("id")?), parse_state(row.try_get("state")?)?))).collect()
}

/// In one transaction with whatever makes use of the room. The rows are locked, and the effects are those of the rows that changed.
async fn take_back(tx: &mut PgConnection, taken: &[TakenBack], operator: &Operator) -> Result<(), LedgerError> {
    let changed: Vec<i64> = sqlx::query_scalar(CHANGE_STATES)
        .bind(taken.iter().map(|taken| taken.id.0).collect::<Vec<_>>())
        .bind(taken.iter().map(|taken| taken.from.as_str()).collect::<Vec<_>>())
        .bind(taken.iter().map(|taken| taken.to.as_str()).collect::<Vec<_>>())
        .fetch_all(&mut *tx)
        .await?;
    sqlx::query(POST_REVERSALS).bind(&changed).execute(&mut *tx).await?;
    sqlx::query(FREE_IDENTITIES).bind(&changed).execute(&mut *tx).await?;
    let actions: Vec<_> = taken.iter().map(|taken| (taken.action(), taken.id)).collect();
    audit_all(tx, operator, &actions).await
}
