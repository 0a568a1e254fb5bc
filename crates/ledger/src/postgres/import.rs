//! Files in: COPY into a table of this session while the file is read, then one set-based transaction.
//!
//! No shared lock is held while a file streams, however long that takes. The set-based part of two imports takes turns
//! (an advisory lock), so that two instances that are given the same file do not meet half-way.

use super::operate::parse_state;
use super::{PostgresLedger, correct};
use crate::import::{
    DuplicateLine, ImportMode, ImportOutcome, ImportedBatch, Judged, Staged, StoredRevision, StoredTotal, imported, judge,
    outcome, sort,
};
use crate::{Imports, LedgerError, retry};
use async_trait::async_trait;
use domain::ids::BatchId;
use domain::journal::Role;
use domain::summary::{BatchSummary, FileSummary, StagedItem};
use domain::unit::Unit;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tokio::sync::mpsc;

const CREATE_STAGING: &str =
    "CREATE TEMPORARY TABLE staged_item (batch integer NOT NULL, line_no bigint NOT NULL, kind text NOT NULL,
    merchant text COLLATE \"C\" NOT NULL, currency text NOT NULL, gross_minor bigint NOT NULL, fee_minor bigint NOT NULL,
    residual_micro bigint NOT NULL, dedupe_key text COLLATE \"C\" NOT NULL)";
const COPY: &str = "COPY staged_item FROM STDIN";
/// The planner knows nothing of a table that was just filled.
const ANALYZE_STAGING: &str = "ANALYZE staged_item";
/// Those of now: another instance may have adopted another configuration since this one started. Shared, so that it waits until
/// the batches are in, and cuts them anew with all the others. Before any batch is locked, as an adoption does it.
const PARTITIONS: &str = "SELECT partitions FROM ledger_meta FOR SHARE";

const INSERT_FILE: &str = "INSERT INTO import_file (sha256, name, profile, source, bytes, batches, items, imported_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id";
const STORED: &str = "SELECT external_batch_id, revision, id, digest, business_date, state, items, break_reason
    FROM settlement_batch WHERE source = $1 AND external_batch_id = ANY($2) ORDER BY revision";
const STORED_TOTALS: &str =
    "SELECT currency, items, gross_minor, fee_minor, net_minor FROM batch_total WHERE batch_id = $1 ORDER BY currency";

/// In order of their code: two transactions that create the same accounts in different order would deadlock.
const INSERT_ACCOUNTS: &str = "INSERT INTO account (code, currency)
    SELECT code, currency FROM (
        SELECT DISTINCT 'merchant_payable:' || merchant AS code, currency FROM staged_item WHERE batch = ANY($1)
        UNION SELECT c.code, m.currency FROM unnest($2::text[]) AS c (code),
            (SELECT DISTINCT currency FROM staged_item WHERE batch = ANY($1)) m) a
    ORDER BY code COLLATE \"C\", currency ON CONFLICT DO NOTHING";
const INSERT_BATCHES: &str =
    "INSERT INTO settlement_batch (source, external_batch_id, revision, import_file_id, first_line, digest,
        business_date, fee_mode, unit, state, items)
    SELECT $1, n.external_batch_id, 1 + coalesce((SELECT max(revision) FROM settlement_batch b
            WHERE b.source = $1 AND b.external_batch_id = n.external_batch_id), 0),
        $2, n.first_line, n.digest, n.business_date, n.fee_mode, n.unit, 'received', n.items
    FROM unnest($3::text[], $4::bigint[], $5::bytea[], $6::date[], $7::text[], $8::integer[], $9::bigint[])
        WITH ORDINALITY AS n (external_batch_id, first_line, digest, business_date, fee_mode, unit, items, ordinal)
    ORDER BY n.ordinal RETURNING external_batch_id, id, revision";
const INSERT_TOTALS: &str = "INSERT INTO batch_total (batch_id, currency, items, debit_minor, credit_minor, gross_minor, fee_minor, net_minor,
        remittance_minor, declared_remittance_minor, rounding_minor, difference_minor, declared_items, declared_debit_minor,
        declared_credit_minor, declared_gross_minor, declared_fee_minor, declared_net_minor, tolerance_minor)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
        $17::bigint[], $18::bigint[], $19::bigint[])";
/// In batch order, so that a settlement reads neighbouring pages.
const INSERT_ITEMS: &str =
    "INSERT INTO batch_item (batch_id, line_no, kind, merchant, currency, gross_minor, fee_minor, net_minor,
        residual_micro, dedupe_key)
    SELECT n.id, s.line_no, s.kind, s.merchant, s.currency, s.gross_minor, s.fee_minor, s.gross_minor - s.fee_minor,
        s.residual_micro, s.dedupe_key
    FROM staged_item s JOIN unnest($1::integer[], $2::bigint[]) AS n (batch, id) ON n.batch = s.batch ORDER BY n.id, s.line_no";
/// The first line with an identity holds it; in one order for everybody.
const INSERT_IDENTITIES: &str = "INSERT INTO settled_item (source, dedupe_key, batch_id, line_no)
    SELECT $3, s.dedupe_key, n.id, s.line_no
    FROM staged_item s JOIN unnest($1::integer[], $2::bigint[]) AS n (batch, id) ON n.batch = s.batch
    ORDER BY s.dedupe_key, n.id, s.line_no ON CONFLICT DO NOTHING";
/// Lines that do not hold their own identity, whoever does.
const DUPLICATES: &str =
    "SELECT s.batch, s.line_no, s.dedupe_key, coalesce(h.batch_id, 0) AS held_batch, coalesce(h.line_no, 0) AS held_line
    FROM staged_item s JOIN unnest($1::integer[], $2::bigint[]) AS n (batch, id) ON n.batch = s.batch
    LEFT JOIN settled_item h ON h.source = $3 AND h.dedupe_key = s.dedupe_key
    WHERE (h.batch_id, h.line_no) IS DISTINCT FROM (n.id, s.line_no) ORDER BY s.batch, s.line_no";
const JUDGE: &str = "UPDATE settlement_batch b SET state = n.state, break_reason = n.break_reason
    FROM unnest($1::bigint[], $2::text[], $3::text[]) AS n (id, state, break_reason)
    WHERE b.id = n.id AND b.state = 'received'";

#[async_trait]
impl Imports for PostgresLedger {
    async fn import(&self, mut staged: mpsc::Receiver<Staged>, mode: &ImportMode) -> Result<ImportOutcome, LedgerError> {
        // A connection of its own: the staging table lives and dies with it.
        let mut connection = PgConnection::connect_with(&self.options).await?;
        let file = stage(&mut connection, &mut staged).await?;
        // What is staged stays: a deadlock with workers, over the rows of batches that are replaced, is not the operator's business.
        let (connection, taken) = retry::transaction_on(connection, async |mut connection| {
            let taken = take_in(&mut connection, &file, mode).await;
            (connection, taken)
        })
        .await;
        connection.close().await?;
        taken
    }
}

async fn stage(connection: &mut PgConnection, staged: &mut mpsc::Receiver<Staged>) -> Result<FileSummary, LedgerError> {
    sqlx::query(CREATE_STAGING).execute(&mut *connection).await?;
    let mut copy = connection.copy_in_raw(COPY).await?;
    let mut end = None;
    let mut text = String::new();
    while let Some(message) = staged.recv().await {
        match message {
            Staged::Items(items) => {
                text.clear();
                items.iter().for_each(|item| copy_line(&mut text, item));
                copy.send(text.as_bytes()).await?;
            }
            Staged::End(summary) => {
                end = Some(*summary);
                break;
            }
        }
    }
    let Some(summary) = end else {
        copy.abort("the file was not read to its end").await?;
        return Err(LedgerError::ImportAborted);
    };
    copy.finish().await?;
    sqlx::query(ANALYZE_STAGING).execute(connection).await?;
    Ok(summary)
}

/// One line of COPY's text format.
fn copy_line(out: &mut String, staged: &StagedItem) {
    let item = &staged.item;
    let _ = write!(out, "{}\t{}\t{}\t", staged.batch, item.line_no, item.kind.as_str());
    copy_escaped(out, &item.merchant);
    let _ = write!(out, "\t{}\t{}\t{}\t{}\t", item.currency, item.gross_minor, item.fee_minor, item.residual_micro);
    copy_escaped(out, &item.dedupe_key);
    out.push('\n');
}

fn copy_escaped(out: &mut String, field: &str) {
    for c in field.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
}

/// Batches of the file that are new: their index in the file, their row, and which revision they are.
struct New<'a> {
    batches: Vec<(i32, &'a BatchSummary)>,
    ids: Vec<i64>,
    revisions: Vec<i32>,
}

impl New<'_> {
    fn indexes(&self) -> Vec<i32> {
        self.batches.iter().map(|(index, _)| *index).collect()
    }
}

async fn take_in(connection: &mut PgConnection, file: &FileSummary, mode: &ImportMode) -> Result<ImportOutcome, LedgerError> {
    let mut tx = connection.begin().await?;
    correct::take_turn(&mut tx).await?;
    let partitions: i32 = sqlx::query_scalar(PARTITIONS).fetch_one(&mut *tx).await?;
    let sorted = sort(file, stored(&mut tx, file).await?, mode);
    correct::make_room(&mut tx, file, &sorted.changed, mode).await?;
    let mut new = New { batches: sorted.new, ids: Vec::new(), revisions: Vec::new() };
    let judged = if new.batches.is_empty() {
        BTreeMap::new()
    } else {
        let file_id = insert_file(&mut tx, file, mode.imported_by()).await?;
        insert_accounts(&mut tx, &new).await?;
        insert_batches(&mut tx, &mut new, file, (file_id, partitions)).await?;
        insert_totals(&mut tx, &new).await?;
        insert_items(&mut tx, &new, &file.source).await?;
        judge_batches(&mut tx, &new, &file.source).await?
    };
    let replaced = correct::replaced(&mut tx, &new.ids, mode).await?;
    tx.commit().await?;
    Ok(outcome(file, &sorted.there, &judged, replaced))
}

/// The revisions that the ledger has of the batches of a file.
async fn stored(tx: &mut PgConnection, file: &FileSummary) -> Result<Vec<StoredRevision>, LedgerError> {
    let names: Vec<&str> = file.batches.iter().map(|batch| batch.external_batch_id.as_str()).collect();
    let rows = sqlx::query(STORED).bind(&file.source).bind(&names).fetch_all(&mut *tx).await?;
    let read = |row: &sqlx::postgres::PgRow| -> Result<StoredRevision, LedgerError> {
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

async fn insert_batches(
    tx: &mut PgConnection,
    new: &mut New<'_>,
    file: &FileSummary,
    (file_id, partitions): (i64, i32),
) -> Result<(), LedgerError> {
    let column = |of: &dyn Fn(&BatchSummary) -> i64| new.batches.iter().map(|(_, batch)| of(batch)).collect::<Vec<i64>>();
    let unit = |batch: &BatchSummary| Unit::of_batch(&file.source, &batch.external_batch_id, partitions).0;
    let rows = sqlx::query(INSERT_BATCHES)
        .bind(&file.source)
        .bind(file_id)
        .bind(new.batches.iter().map(|(_, batch)| batch.external_batch_id.as_str()).collect::<Vec<_>>())
        .bind(column(&|batch| batch.first_line))
        .bind(new.batches.iter().map(|(_, batch)| batch.digest.to_vec()).collect::<Vec<_>>())
        .bind(new.batches.iter().map(|(_, batch)| batch.business_date).collect::<Vec<_>>())
        .bind(new.batches.iter().map(|(_, batch)| batch.fee_mode.as_str()).collect::<Vec<_>>())
        .bind(new.batches.iter().map(|(_, batch)| unit(batch)).collect::<Vec<_>>())
        .bind(column(&|batch| batch.totals.iter().map(|total| total.items).sum()))
        .fetch_all(tx)
        .await?;
    let rows: BTreeMap<String, (i64, i32)> = rows
        .iter()
        .map(|row| Ok((row.try_get("external_batch_id")?, (row.try_get("id")?, row.try_get("revision")?))))
        .collect::<Result<_, sqlx::Error>>()?;
    (new.ids, new.revisions) = new.batches.iter().map(|(_, batch)| rows[&batch.external_batch_id]).unzip();
    Ok(())
}

pub(super) async fn stored_totals(tx: &mut PgConnection, id: BatchId) -> Result<Vec<StoredTotal>, LedgerError> {
    let rows = sqlx::query(STORED_TOTALS).bind(id.0).fetch_all(tx).await?;
    let read = |row: &sqlx::postgres::PgRow| -> Result<StoredTotal, sqlx::Error> {
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

async fn insert_file(tx: &mut PgConnection, file: &FileSummary, imported_by: &str) -> Result<i64, LedgerError> {
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

async fn insert_accounts(tx: &mut PgConnection, new: &New<'_>) -> Result<(), LedgerError> {
    let common: Vec<&str> = Role::COMMON.into_iter().map(Role::code).collect();
    sqlx::query(INSERT_ACCOUNTS).bind(new.indexes()).bind(common).execute(tx).await?;
    Ok(())
}

async fn insert_totals(tx: &mut PgConnection, new: &New<'_>) -> Result<(), LedgerError> {
    let rows: Vec<(i64, &domain::totals::Total)> = new
        .batches
        .iter()
        .zip(&new.ids)
        .flat_map(|((_, batch), id)| batch.totals.iter().map(move |total| (*id, total)))
        .collect();
    let column = |of: &dyn Fn(&domain::totals::Total) -> i64| rows.iter().map(|(_, total)| of(total)).collect::<Vec<i64>>();
    let optional = |of: &dyn Fn(&domain::totals::Declared) -> Option<i64>| {
        rows.iter().map(|(_, total)| of(&total.declared)).collect::<Vec<Option<i64>>>()
    };
    sqlx::query(INSERT_TOTALS)
        .bind(rows.iter().map(|(id, _)| *id).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, total)| total.currency.code()).collect::<Vec<_>>())
        .bind(column(&|total| total.items))
        .bind(column(&|total| total.debit_minor))
        .bind(column(&|total| total.credit_minor))
        .bind(column(&|total| total.gross_minor))
        .bind(column(&|total| total.fee_minor))
        .bind(column(&|total| total.net_minor))
        .bind(column(&|total| total.remittance_minor))
        .bind(column(&|total| total.declared_remittance_minor))
        .bind(column(&|total| total.rounding_minor))
        .bind(column(&|total| total.difference_minor))
        .bind(optional(&|declared| declared.items))
        .bind(optional(&|declared| declared.debit_minor))
        .bind(optional(&|declared| declared.credit_minor))
        .bind(optional(&|declared| declared.gross_minor))
        .bind(optional(&|declared| declared.fee_minor))
        .bind(optional(&|declared| declared.net_minor))
        .bind(column(&|total| total.tolerance_minor))
        .execute(tx)
        .await?;
    Ok(())
}

async fn insert_items(tx: &mut PgConnection, new: &New<'_>, source: &str) -> Result<(), LedgerError> {
    sqlx::query(INSERT_ITEMS).bind(new.indexes()).bind(&new.ids).execute(&mut *tx).await?;
    sqlx::query(INSERT_IDENTITIES).bind(new.indexes()).bind(&new.ids).bind(source).execute(tx).await?;
    Ok(())
}

async fn judge_batches(tx: &mut PgConnection, new: &New<'_>, source: &str) -> Result<Judged, LedgerError> {
    let duplicates = duplicates(tx, new, source).await?;
    let (mut states, mut reasons, mut judged) = (Vec::new(), Vec::new(), Judged::new());
    for (((index, batch), id), revision) in new.batches.iter().zip(&new.ids).zip(&new.revisions) {
        let repeated = duplicates.get(index).map_or(&[][..], Vec::as_slice);
        let (state, reason) = judge(batch, repeated).map_err(|source| LedgerError::Illegal { batch: BatchId(*id), source })?;
        states.push(state.as_str());
        reasons.push(reason.clone());
        let imported = imported(batch, (BatchId(*id), *revision), state, reason);
        judged.insert(batch.external_batch_id.clone(), (imported, repeated.len() as u64));
    }
    sqlx::query(JUDGE).bind(&new.ids).bind(&states).bind(&reasons).execute(tx).await?;
    Ok(judged)
}

async fn duplicates(
    tx: &mut PgConnection,
    new: &New<'_>,
    source: &str,
) -> Result<BTreeMap<i32, Vec<DuplicateLine>>, LedgerError> {
    let rows = sqlx::query(DUPLICATES).bind(new.indexes()).bind(&new.ids).bind(source).fetch_all(tx).await?;
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
