//! How SQLite reaches the rows: it has no statistics here, so a plan depends on how a statement is written, and a statement
//! that scans a table of half a million rows is found out only by whoever has them.

use super::{SqliteLedger, claim, correct, run, settle};
use crate::{Guard, OpenOptions};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

const SETTLE: [&str; 7] = [
    settle::MARK_UNDER_FENCE,
    settle::MARK_UNDER_ROW_LOCK,
    settle::SUM_SIDES,
    settle::POST_ENTRIES,
    settle::POST_POSTINGS,
    settle::POST_STRIPES,
    settle::READ_BACK,
];
const CORRECT: [&str; 7] = [
    correct::READ_BATCHES,
    correct::CHANGE_STATES,
    correct::POST_REVERSALS,
    correct::POST_MIRRORED,
    correct::POST_STRIPES,
    correct::FREE_IDENTITIES,
    correct::REPLACED,
];
/// By unit, so by the index of what is due.
const DUE: [&str; 4] = [claim::OWN, claim::GIVE_UP, claim::FRESH, claim::CHARGED];
/// By id.
const CLAIMED: [&str; 3] = [claim::MARK, claim::RELEASE, claim::ROW_UNCHARGE];
/// Of every unit, by how often they were charged.
const ANY_UNIT: [&str; 3] = [claim::ROW_GIVE_UP, claim::ROW_FRESH, claim::ROW_CHARGED];

async fn ledger() -> (tempfile::TempDir, SqliteLedger) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("settled.db").display());
    let options = OpenOptions { url, partitions: 1, guard: Guard::Lease, migrate: true, connections: 2 };
    (folder, SqliteLedger::open(&options).await.expect("a ledger"))
}

/// The steps of a plan: `SCAN x`, `SEARCH x USING …`.
async fn plan(ledger: &SqliteLedger, statement: &'static str) -> Vec<String> {
    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let rows: Vec<SqliteRow> = sqlx::query(explain).fetch_all(&ledger.pool).await.expect("a plan");
    rows.iter().map(|row| row.get("detail")).collect()
}

#[tokio::test]
async fn settling_and_correcting_reach_every_table_by_key() {
    let (_folder, ledger) = ledger().await;
    for statement in SETTLE.into_iter().chain(CORRECT).chain(CLAIMED) {
        for step in plan(&ledger, statement).await {
            let scanned = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
            // what the transaction made itself: arrays, the sides of its own batches, steps of the statement, rows of constants, the one row
            // that says what the ledger is
            let small = ["j", "json_each", "sided", "s", "d", "line", "x", "v", "6", "CONSTANT", "ledger_meta"];
            assert!(scanned.is_none_or(|table| small.contains(&table)), "{step} in {statement}");
        }
    }
}

#[tokio::test]
async fn a_claim_looks_only_at_what_is_due() {
    let (_folder, ledger) = ledger().await;
    for statement in DUE {
        let plan = plan(&ledger, statement).await;
        let by_index = |step: &String| step.starts_with("SEARCH settlement_batch USING INDEX settlement_batch_due");
        assert!(plan.iter().any(by_index), "{plan:?} in {statement}");
    }
    for statement in ANY_UNIT {
        let plan = plan(&ledger, statement).await;
        let by_index = |step: &String| step.starts_with("SEARCH settlement_batch USING INDEX settlement_batch_pending");
        assert!(plan.iter().any(by_index), "{plan:?} in {statement}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "sorts the whole backlog: {plan:?} in {statement}");
    }
}

/// Runs are never fewer: what every instance asks every few seconds must not go through all of them.
#[tokio::test]
async fn a_look_for_work_leaps_over_the_history() {
    let (_folder, ledger) = ledger().await;
    for statement in [run::NEWEST, crate::schedule::STATES] {
        for step in plan(&ledger, statement).await {
            assert!(!step.starts_with("SCAN run") && !step.starts_with("SCAN r "), "{step} in {statement}");
        }
    }
    let states = plan(&ledger, crate::schedule::STATES).await;
    for index in ["run_last", "run_missed"] {
        let by_index = |step: &String| step.starts_with("SEARCH r USING COVERING INDEX") && step.contains(index);
        assert!(states.iter().any(by_index), "{index} in {states:?}");
    }
}
