//! M20: what was posted stays, whatever statement is tried. The raw pool is another program: it sets nothing that protects.

use crate::fixture::{Books, Named, Place, Tables, UNIT, batches, holder, operator, stamp};
use ledger::Rejection;
use ledger::verify::APPEND_ONLY;

pub const EVERY: &[Named] = tests![m20_update_and_delete_are_refused];
pub const POSTGRES: &[Named] = tests![m20_truncate_is_refused_also_by_cascade];
pub const SQLITE: &[Named] = tests![m20_replace_is_refused_by_every_key];

/// Books with a row in each of the tables.
async fn filled(place: &Place) -> (Books, Tables) {
    let books = place.open().await;
    books.settled(&batches(1)).await;
    books.ledger.adopt_source("ledger", &operator()).await.expect("adopted");
    let stamp = stamp(1, 1, holder());
    let rejection = Rejection { operation: ledger::Operation::Register, unit: UNIT, batch: None, stamp, stored: stamp };
    books.ledger.record_rejections(&[rejection]).await.expect("kept");
    let tables = books.raw.tables().await;
    assert!(APPEND_ONLY.iter().all(|table| !tables[*table].is_empty()));
    (books, tables)
}

async fn assert_refused(books: &Books, before: &Tables, statements: &[String]) {
    for statement in statements {
        assert!(books.raw.run(statement).await.is_err(), "{statement} was not refused");
        assert_eq!(*before, books.raw.tables().await, "{statement}");
    }
}

async fn m20_update_and_delete_are_refused(place: Place) {
    let (books, before) = filled(&place).await;
    let column = |table| match table {
        "posting" => "amount_minor",
        "batch_item" => "residual_micro",
        _ => "id",
    };
    for table in APPEND_ONLY {
        let column = column(table);
        let statements = [format!("UPDATE {table} SET {column} = {column}"), format!("DELETE FROM {table}")];
        assert_refused(&books, &before, &statements).await;
    }
}

async fn m20_truncate_is_refused_also_by_cascade(place: Place) {
    let (books, before) = filled(&place).await;
    for table in APPEND_ONLY {
        assert_refused(&books, &before, &[format!("TRUNCATE {table}"), format!("TRUNCATE {table} CASCADE")]).await;
    }
    for table in ["import_file", "run", "settlement_batch", "account"] {
        assert_refused(&books, &before, &[format!("TRUNCATE {table} CASCADE")]).await;
    }
    assert_eq!(books.raw.count("pg_constraint WHERE confdeltype = 'c' OR confupdtype = 'c'").await, 0, "a key cascades");
}

/// INSERT OR REPLACE deletes the row in its way, and fires no delete trigger for it unless the connection asks for that.
async fn m20_replace_is_refused_by_every_key(place: Place) {
    let (books, before) = filled(&place).await;
    assert_eq!(books.raw.number("SELECT recursive_triggers FROM pragma_recursive_triggers").await, 0, "another program");
    for table in APPEND_ONLY {
        let statements = [
            format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"),
            format!("REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"),
        ];
        assert_refused(&books, &before, &statements).await;
    }
    let by_key = "INSERT OR REPLACE INTO journal_entry (entry_key, kind, batch_id, currency, unit)
        SELECT entry_key, kind, batch_id, currency, unit FROM journal_entry";
    assert_refused(&books, &before, &[by_key.to_owned()]).await;
    assert_eq!(books.raw.count("sqlite_schema WHERE sql LIKE '%CASCADE%'").await, 0, "a key cascades");
}
