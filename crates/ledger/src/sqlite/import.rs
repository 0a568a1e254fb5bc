//! Files in: rows into a temporary table of this connection while the file is read, then one set-based transaction.
//!
//! No lock on the ledger's file is held while a file streams, however long that takes: a temporary table lives in a file of its
//! own, which SQLite deletes. Imports take turns like every other writer.

use super::operate::parse_state;
use super::{BEGIN, SqliteLedger, WriteTx, correct, json};
use crate::import::{
    DuplicateLine, ImportMode, ImportOutcome, ImportedBatch, Judged, Staged, StoredRevision, StoredTotal, imported, judge,
    outcome, sort,
};
use crate::{Imports, LedgerError};
use async_trait::async_trait;
use domain::ids::BatchId;
use domain::journal::Role;
use domain::summary::{BatchSummary, FileSummary, StagedItem};
use domain::totals::Total;
use domain::unit::Unit;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// In the order in which lines are wanted again: by batch, as `batch_item` has them.
const CREATE_STAGING: &str =
    "CREATE TEMP TABLE staged_item (batch INTEGER NOT NULL, line_no INTEGER NOT NULL, kind TEXT NOT NULL,
    merchant TEXT NOT NULL, currency TEXT NOT NULL, gross_minor INTEGER NOT NULL, fee_minor INTEGER NOT NULL,
    residual_micro INTEGER NOT NULL, dedupe_key TEXT NOT NULL, PRIMARY KEY (batch, line_no)) STRICT, WITHOUT ROWID";
/// The batches of the file that are new, by their index in it. A table, because an array of JSON has no index to join by.
const CREATE_NEW: &str = "CREATE TEMP TABLE new_batch (batch INTEGER PRIMARY KEY, id INTEGER NOT NULL) STRICT";
const STAGE: &str =
    "INSERT INTO staged_item (batch, line_no, kind, merchant, currency, gross_minor, fee_minor, residual_micro, dedupe_key)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8
    FROM json_each($1)";
const INSERT_NEW: &str = "INSERT INTO new_batch (batch, id) SELECT value ->> 0, value ->> 1 FROM json_each($1)";

/// Of pages in memory: the trees of half a million lines are written once. What is more goes to disk.
const CACHE_KIB: u32 = 32_768;

/// Those of now: another instance may have adopted another configuration since this one started.
const PARTITIONS: &str = "SELECT partitions FROM ledger_meta";
const INSERT_FILE: &str = "INSERT INTO import_file (sha256, name, profile, source, bytes, batches, items, imported_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id";
const STORED: &str = "SELECT external_batch_id, revision, id, digest, business_date, state, items, break_reason
    FROM settlement_batch WHERE source = $1 AND external_batch_id IN (SELECT value FROM json_each($2)) ORDER BY revision";
const STORED_TOTALS: &str =
    "SELECT currency, items, gross_minor, fee_minor, net_minor FROM batch_total WHERE batch_id = $1 ORDER BY currency";

const INSERT_ACCOUNTS: &str = "INSERT INTO account (code, currency)
    SELECT code, currency FROM (
        SELECT DISTINCT 'merchant_payable:' || merchant AS code, currency FROM staged_item WHERE batch IN (SELECT batch FROM new_batch)
        UNION SELECT c.value, m.currency FROM json_each($1) c,
            (SELECT DISTINCT currency FROM staged_item WHERE batch IN (SELECT batch FROM new_batch)) m) a
    ORDER BY code, currency ON CONFLICT DO NOTHING";
const INSERT_BATCHES: &str =
    "INSERT INTO settlement_batch (source, external_batch_id, revision, import_file_id, first_line, digest,
        business_date, fee_mode, unit, state, items)
    SELECT $1, n.value ->> 0, 1 + coalesce((SELECT max(revision) FROM settlement_batch b
            WHERE b.source = $1 AND b.external_batch_id = n.value ->> 0), 0),
        $2, n.value ->> 1, unhex(n.value ->> 2), n.value ->> 3, n.value ->> 4, n.value ->> 5, 'received', n.value ->> 6
    FROM json_each($3) n ORDER BY n.key RETURNING external_batch_id, id, revision";
const INSERT_TOTAL: &str =
    "INSERT INTO batch_total (batch_id, currency, items, debit_minor, credit_minor, gross_minor, fee_minor, net_minor,
        remittance_minor, declared_remittance_minor, rounding_minor, difference_minor, declared_items, declared_debit_minor,
        declared_credit_minor, declared_gross_minor, declared_fee_minor, declared_net_minor, tolerance_minor)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
/// In batch order, so that a settlement reads neighbouring pages.
const INSERT_ITEMS: &str =
    "INSERT INTO batch_item (batch_id, line_no, kind, merchant, currency, gross_minor, fee_minor, net_minor,
        residual_micro, dedupe_key)
    SELECT n.id, s.line_no, s.kind, s.merchant, s.currency, s.gross_minor, s.fee_minor, s.gross_minor - s.fee_minor,
        s.residual_micro, s.dedupe_key
    FROM new_batch n CROSS JOIN staged_item s ON s.batch = n.batch ORDER BY n.batch, s.line_no";
/// The first line with an identity holds it. In the order of the key, so that the tree grows page by page.
const INSERT_IDENTITIES: &str = "INSERT INTO settled_item (source, dedupe_key, batch_id, line_no)
    SELECT $1, s.dedupe_key, n.id, s.line_no FROM new_batch n CROSS JOIN staged_item s ON s.batch = n.batch
    ORDER BY s.dedupe_key, n.id, s.line_no ON CONFLICT DO NOTHING";
const DUPLICATES: &str = "SELECT s.batch, s.line_no, s.dedupe_key, h.batch_id AS held_batch, h.line_no AS held_line
    FROM new_batch n CROSS JOIN staged_item s ON s.batch = n.batch
    CROSS JOIN settled_item h ON h.source = $1 AND h.dedupe_key = s.dedupe_key
    WHERE (h.batch_id, h.line_no) <> (n.id, s.line_no) ORDER BY s.batch, s.line_no";
const JUDGE: &str = "UPDATE settlement_batch SET state = n.value ->> 1, break_reason = n.value ->> 2
    FROM json_each($1) n WHERE settlement_batch.id = n.value ->> 0 AND settlement_batch.state = 'received'";

#[async_trait]
impl Imports for SqliteLedger {
    async fn import(&self, mut staged: mpsc::Receiver<Staged>, mode: &ImportMode) -> Result<ImportOutcome, LedgerError> {
        // A connection of its own: the staging tables live and die with it.
        let mut connection =
            SqliteConnection::connect_with(&self.options.clone().pragma("cache_size", format!("-{CACHE_KIB}"))).await?;
        let file = stage(&mut connection, &mut staged).await?;
        let gate = self.gate.enter().await?;
        let mut tx = WriteTx { tx: connection.begin_with(BEGIN).await?, gate };
        let taken = take_in(&mut tx, &file, mode).await;
        match &taken {
            Ok(_) => tx.commit().await?,
            Err(_) => tx.rollback().await?,
        }
        connection.close().await?;
        taken
    }
}

async fn stage(connection: &mut SqliteConnection, staged: &mut mpsc::Receiver<Staged>) -> Result<FileSummary, LedgerError> {
    sqlx::query(CREATE_STAGING).execute(&mut *connection).await?;
    sqlx::query(CREATE_NEW).execute(&mut *connection).await?;
    let mut end = None;
    while let Some(message) = staged.recv().await {
        match message {
            Staged::Items(items) => {
                let lines: Vec<_> = items.iter().map(line).collect();
                sqlx::query(STAGE).bind(json(&lines)).execute(&mut *connection).await?;
            }
            Staged::End(summary) => {
                end = Some(*summary);
                break;
            }
        }
    }
    end.ok_or(LedgerError::ImportAborted)
}

type Line<'a> = (u32, i64, &'a str, &'a str, &'a str, i64, i64, i64, &'a str);

fn line(staged: &StagedItem) -> Line<'_> {
    let StagedItem { batch, item } = staged;
    let (kind, currency) = (item.kind.as_str(), item.currency.code());
    let (gross, fee, residual) = (item.gross_minor, item.fee_minor, item.residual_micro);
    (*batch, item.line_no, kind, &item.merchant, currency, gross, fee, residual, &item.dedupe_key)
}

/// Batches of the file that are new: their index in the file, their row, and which revision they are.
struct New<'a> {
    batches: Vec<(i32, &'a BatchSummary)>,
    ids: Vec<i64>,
    revisions: Vec<i32>,
}

async fn take_in(tx: &mut SqliteConnection, file: &FileSummary, mode: &ImportMode) -> Result<ImportOutcome, LedgerError> {
    let sorted = sort(file, stored(tx, file).await?, mode);
    correct::make_room(tx, file, &sorted.changed, mode).await?;
    let mut new = New { batches: sorted.new, ids: Vec::new(), revisions: Vec::new() };
    let judged = if new.batches.is_empty() {
        BTreeMap::new()
    } else {
        let file_id = insert_file(tx, file, mode.imported_by()).await?;
        insert_batches(tx, &mut new, file, file_id).await?;
        insert_accounts(tx).await?;
        insert_totals(tx, &new).await?;
        let repeated = insert_items(tx, &file.source).await?;
        judge_batches(tx, &new, &file.source, repeated).await?
    };
    let replaced = correct::replaced(tx, &new.ids, mode).await?;
    Ok(outcome(file, &sorted.there, &judged, replaced))
}

/// The revisions that the ledger has of the batches of a file.
async fn stored(tx: &mut SqliteConnection, file: &FileSummary) -> Result<Vec<StoredRevision>, LedgerError> {
    let names: Vec<&str> = file.batches.iter().map(|batch| batch.external_batch_id.as_str()).collect();
    let rows = sqlx::query(STORED).bind(&file.source).bind(json(&names)).fetch_all(&mut *tx).await?;
    let read = |row: &SqliteRow| -> Result<StoredRevision, LedgerError> {
        let batch = ImportedBatch {
            id: BatchId(row.try_get("id")?),
            external_batch_id: row.try_get("external_batch_id")?,
            revision: row.try_get("revision")?,
            business_date: row.try_get("business_date")?,
            state: parse_state(row.try_get("state")?)?,
            items: row.try_get::<i64, _>("items")?.unsigned_abs(),
            already_there: true,
            break_reason: row.try_get("break_reason")?,
        };
        Ok(StoredRevision { batch, digest: row.try_get("digest")? })
    };
    rows.iter().map(read).collect()
}

pub(super) async fn stored_totals(tx: &mut SqliteConnection, id: BatchId) -> Result<Vec<StoredTotal>, LedgerError> {
    let rows = sqlx::query(STORED_TOTALS).bind(id.0).fetch_all(tx).await?;
    let read = |row: &SqliteRow| -> Result<StoredTotal, sqlx::Error> {
        Ok(StoredTotal {
            currency: row.try_get("currency")?,
            items: row.try_get("items")?,
            gross_minor: row.try_get("gross_minor")?,
            fee_minor: row.try_get("fee_minor")?,
            net_minor: row.try_get("net_minor")?,
        })
    };
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

async fn insert_file(tx: &mut SqliteConnection, file: &FileSummary, imported_by: &str) -> Result<i64, LedgerError> {
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Ok(sqlx::query_scalar(INSERT_FILE)
        .bind(file.sha256.as_slice())
        .bind(&file.name)
        .bind(&file.profile)
        .bind(&file.source)
        .bind(count(file.bytes))
        .bind(i32::try_from(file.batches.len()).unwrap_or(i32::MAX))
        .bind(count(file.items))
        .bind(imported_by)
        .fetch_one(tx)
        .await?)
}

async fn insert_batches(
    tx: &mut SqliteConnection,
    new: &mut New<'_>,
    file: &FileSummary,
    file_id: i64,
) -> Result<(), LedgerError> {
    let partitions: i32 = sqlx::query_scalar(PARTITIONS).fetch_one(&mut *tx).await?;
    let row = |(_, batch): &(i32, &BatchSummary)| {
        let BatchSummary { external_batch_id: name, first_line, business_date, fee_mode, .. } = *batch;
        let unit = Unit::of_batch(&file.source, name, partitions).0;
        let items: i64 = batch.totals.iter().map(|total| total.items).sum();
        (name.clone(), *first_line, hex(&batch.digest), business_date.to_string(), fee_mode.as_str(), unit, items)
    };
    let batches: Vec<_> = new.batches.iter().map(row).collect();
    let rows = sqlx::query(INSERT_BATCHES).bind(&file.source).bind(file_id).bind(json(&batches)).fetch_all(&mut *tx).await?;
    let rows: BTreeMap<String, (i64, i32)> = rows
        .iter()
        .map(|row| Ok((row.try_get("external_batch_id")?, (row.try_get("id")?, row.try_get("revision")?))))
        .collect::<Result<_, sqlx::Error>>()?;
    (new.ids, new.revisions) = new.batches.iter().map(|(_, batch)| rows[&batch.external_batch_id]).unzip();
    let indexed: Vec<(i32, i64)> = new.batches.iter().zip(&new.ids).map(|((index, _), id)| (*index, *id)).collect();
    sqlx::query(INSERT_NEW).bind(json(&indexed)).execute(tx).await?;
    Ok(())
}

/// For `unhex`: JSON has no bytes.
fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn insert_accounts(tx: &mut SqliteConnection) -> Result<(), LedgerError> {
    let common: Vec<&str> = Role::COMMON.into_iter().map(Role::code).collect();
    sqlx::query(INSERT_ACCOUNTS).bind(json(&common)).execute(tx).await?;
    Ok(())
}

async fn insert_totals(tx: &mut SqliteConnection, new: &New<'_>) -> Result<(), LedgerError> {
    for ((_, batch), id) in new.batches.iter().zip(&new.ids) {
        for total in &batch.totals {
            insert_total(tx, *id, total).await?;
        }
    }
    Ok(())
}

async fn insert_total(tx: &mut SqliteConnection, id: i64, total: &Total) -> Result<(), LedgerError> {
    sqlx::query(INSERT_TOTAL)
        .bind(id)
        .bind(total.currency.code())
        .bind(total.items)
        .bind(total.debit_minor)
        .bind(total.credit_minor)
        .bind(total.gross_minor)
        .bind(total.fee_minor)
        .bind(total.net_minor)
        .bind(total.remittance_minor)
        .bind(total.declared_remittance_minor)
        .bind(total.rounding_minor)
        .bind(total.difference_minor)
        .bind(total.declared.items)
        .bind(total.declared.debit_minor)
        .bind(total.declared.credit_minor)
        .bind(total.declared.gross_minor)
        .bind(total.declared.fee_minor)
        .bind(total.declared.net_minor)
        .bind(total.tolerance_minor)
        .execute(tx)
        .await?;
    Ok(())
}

/// Whether some line repeats an identity: then fewer identities went in than lines.
async fn insert_items(tx: &mut SqliteConnection, source: &str) -> Result<bool, LedgerError> {
    let lines = sqlx::query(INSERT_ITEMS).execute(&mut *tx).await?;
    let identities = sqlx::query(INSERT_IDENTITIES).bind(source).execute(tx).await?;
    Ok(identities.rows_affected() < lines.rows_affected())
}

async fn judge_batches(tx: &mut SqliteConnection, new: &New<'_>, source: &str, repeated: bool) -> Result<Judged, LedgerError> {
    let duplicates = if repeated { duplicates(tx, source).await? } else { BTreeMap::new() };
    let (mut verdicts, mut judged) = (Vec::new(), Judged::new());
    for (((index, batch), id), revision) in new.batches.iter().zip(&new.ids).zip(&new.revisions) {
        let repeated = duplicates.get(index).map_or(&[][..], Vec::as_slice);
        let (state, reason) = judge(batch, repeated).map_err(|source| LedgerError::Illegal { batch: BatchId(*id), source })?;
        verdicts.push((*id, state.as_str(), reason.clone()));
        let imported = imported(batch, (BatchId(*id), *revision), state, reason);
        judged.insert(batch.external_batch_id.clone(), (imported, repeated.len() as u64));
    }
    sqlx::query(JUDGE).bind(json(&verdicts)).execute(tx).await?;
    Ok(judged)
}

async fn duplicates(tx: &mut SqliteConnection, source: &str) -> Result<BTreeMap<i32, Vec<DuplicateLine>>, LedgerError> {
    let rows = sqlx::query(DUPLICATES).bind(source).fetch_all(tx).await?;
    let mut duplicates: BTreeMap<i32, Vec<DuplicateLine>> = BTreeMap::new();
    for row in rows {
        duplicates.entry(row.try_get("batch")?).or_default().push(DuplicateLine {
            line_no: row.try_get("line_no")?,
            dedupe_key: row.try_get("dedupe_key")?,
            held_by: (BatchId(row.try_get("held_batch")?), row.try_get("held_line")?),
        });
    }
    Ok(duplicates)
}
