//! Every SQL constant of an engine prepares on the real thing. They are read out of the source, so that none can be forgotten.

use crate::fixture::{Named, Place};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection, Executor, SqlSafeStr};
use std::fs;
use std::path::Path;

pub const EVERY: &[Named] = tests![every_statement_prepares];

/// A statement and where it is.
struct Statement {
    name: String,
    sql: String,
}

async fn every_statement_prepares(place: Place) {
    let books = place.open().await;
    let (engine, mut session) = if books.place.is_postgres() {
        ("postgres", Session::Postgres(PgConnection::connect(&place.url).await.expect("the same database")))
    } else {
        ("sqlite", Session::Sqlite(SqliteConnection::connect(&place.url).await.expect("the same file")))
    };
    let statements = statements(engine);
    assert!(statements.len() > 60, "only {} were found", statements.len());
    let mut failed = Vec::new();
    for Statement { name, sql } in statements {
        // temporary tables are made as well, for the statements that follow them
        let temporary = sql.starts_with("CREATE TEMP");
        if let Err(error) = session.prepare(sql, temporary).await {
            failed.push(format!("{name}: {error}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// One connection: temporary tables live in it.
enum Session {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Session {
    async fn prepare(&mut self, sql: String, execute: bool) -> Result<(), sqlx::Error> {
        let text = AssertSqlSafe(sql.clone()).into_sql_str();
        match self {
            Session::Postgres(connection) => connection.prepare(text).await.map(drop)?,
            Session::Sqlite(connection) => connection.prepare(text).await.map(drop)?,
        }
        match self {
            Session::Postgres(connection) if execute => connection.execute(AssertSqlSafe(sql)).await.map(drop),
            Session::Sqlite(connection) if execute => connection.execute(AssertSqlSafe(sql)).await.map(drop),
            Session::Postgres(_) | Session::Sqlite(_) => Ok(()),
        }
    }
}

/// Those of an engine, and those that all share.
fn statements(engine: &str) -> Vec<Statement> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(source.join(engine)).expect("the engine's folder").map(|entry| entry.expect("an entry").path());
    let shared = ["operate.rs", "schedule.rs", "verify.rs", "verify/reversals.rs"].map(|file| source.join(file));
    let mut files: Vec<_> = files.chain(shared).collect();
    files.sort();
    files.iter().flat_map(|file| constants(file)).collect()
}

/// `const NAME: &str = "…";` with whatever line breaks, and no escapes but that of a quote.
fn constants(file: &Path) -> Vec<Statement> {
    let text = fs::read_to_string(file).expect("a source file");
    let mut found = Vec::new();
    for part in text.split("const ").skip(1) {
        let Some((name, rest)) = part.split_once(": &str =") else { continue };
        if name.contains(|c: char| !c.is_ascii_uppercase() && c != '_') {
            continue;
        }
        let literal = rest.trim_start().strip_prefix('"').expect("a literal").replace("\\\"", "\u{1}");
        let sql = literal.split('"').next().expect("its end").replace('\u{1}', "\"");
        found.push(Statement { name: format!("{}: {name}", file.display()), sql });
    }
    found
}
