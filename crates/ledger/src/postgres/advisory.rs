//! The advisory-xact guard: an advisory lock of the unit, held by the transaction itself, is the claim.
//!
//! **What it gives.** At any instant at most one transaction works in a unit. The lock is one of the transaction
//! (`pg_try_advisory_xact_lock`): it ends with it, by commit, by rollback, with the session, also behind a transaction pooler. So it
//! cannot be leaked, and there is nothing to renew or to give back. Nobody waits for it either: whoever does not get it at once is
//! told so and looks at another unit. That is why it has no place in the order of locks.
//!
//! **What it does not replace.** The lock is held by good manners: an operator's correction, an import or `psql` take none. So the
//! state condition stays in the settle statement, and the row locks stay beneath it; they decide, as under the row-lock guard.
//! SKIP LOCKED is not needed against other workers any more, and still lets a worker pass a batch that a correction has in hand.
//! Unlike row locks alone it keeps workers of one unit from meeting in its balance stripes. Between charge and settlement nobody holds
//! anything: `retry_at` keeps others from a batch, as it does there.
//!
//! **Key.** Two 32-bit integers, to be seen in `pg_locks` (`locktype = 'advisory'`, `objsubid = 2`): `classid` is the class of the ledger, the first
//! four bytes of the SHA-256 of its id, shown there without a sign; `objid` is the unit. Two ledgers in one database do not meet.

use super::claim::claimed;
use crate::LedgerError;
use crate::settle::{Charge, ClaimedBatch};
use domain::ids::{BatchId, LedgerId};
use domain::unit::Unit;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;

const TRY_LOCK: &str = "SELECT pg_try_advisory_xact_lock($1, $2)";

// As under the row-lock guard, of one unit: so by the index of what is due in it, however much is due in others.
const UNIT_GIVE_UP: &str = "UPDATE settlement_batch SET state = 'quarantined' WHERE id IN (SELECT id FROM settlement_batch
    WHERE unit = $4 AND state = 'pending' AND business_date <= $1 AND ($3::text[] IS NULL OR source = ANY($3)) AND attempts >= $2
    AND (retry_at IS NULL OR retry_at <= clock_timestamp()) FOR UPDATE SKIP LOCKED) RETURNING id";
const UNIT_CHARGED: &str = "SELECT id, items, attempts FROM settlement_batch
    WHERE unit = $3 AND state = 'pending' AND business_date <= $1 AND ($2::text[] IS NULL OR source = ANY($2)) AND attempts > 0
    AND (retry_at IS NULL OR retry_at <= clock_timestamp()) ORDER BY attempts, id LIMIT 1 FOR UPDATE SKIP LOCKED";

/// Takes the lock of the unit to the end of the transaction.
///
/// # Errors
/// [`LedgerError::Busy`]: another transaction has it.
pub(super) async fn lock(tx: &mut PgConnection, ledger: LedgerId, unit: Unit) -> Result<(), LedgerError> {
    let taken: bool = sqlx::query_scalar(TRY_LOCK).bind(class(ledger)).bind(unit.0).fetch_one(tx).await?;
    if taken { Ok(()) } else { Err(LedgerError::Busy(unit)) }
}

/// See *Key* above.
pub(super) fn class(ledger: LedgerId) -> i32 {
    let hash = Sha256::digest(ledger.to_string());
    i32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

pub(super) async fn give_up(tx: &mut PgConnection, request: &Charge, unit: Unit) -> Result<Vec<BatchId>, LedgerError> {
    let ids: Vec<i64> = sqlx::query_scalar(UNIT_GIVE_UP)
        .bind(request.due.upto)
        .bind(request.max_attempts)
        .bind(request.due.sources.names())
        .bind(unit.0)
        .fetch_all(tx)
        .await?;
    Ok(ids.into_iter().map(BatchId).collect())
}

pub(super) async fn charged(tx: &mut PgConnection, request: &Charge, unit: Unit) -> Result<Vec<ClaimedBatch>, LedgerError> {
    let query = sqlx::query(UNIT_CHARGED).bind(request.due.upto).bind(request.due.sources.names()).bind(unit.0);
    claimed(&query.fetch_all(tx).await?)
}
