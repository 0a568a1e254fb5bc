//! How many rows a lock takes is not what the statement returns. Counted by a second session, which locks everything that it still gets.

use crate::articles::statements;
use crate::drill::{Drill, Telling};
use crate::instance::PATIENCE;
use crate::record::Table;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

pub(super) const DRILL: Drill = Drill {
    name: "lock-scope",
    about: "row locks that take more than the row that is returned, and a settlement that takes its batch and no other one",
    needs: "PostgreSQL",
    quick: true,
    tell,
};

/// A hundred batches of ten merchants. `reference` has no index.
const TABLES: &str = "CREATE TABLE merchant (id bigint PRIMARY KEY);
    CREATE TABLE batch (id bigint PRIMARY KEY, merchant bigint NOT NULL REFERENCES merchant, reference text NOT NULL);
    INSERT INTO merchant SELECT generate_series(0, 9);
    INSERT INTO batch SELECT n, n % 10, 'ref-' || n FROM generate_series(1, 100) n";

/// Arm, statement, and how many of a hundred batches nobody else can lock while it is held.
const STATEMENTS: [(&str, &str, i64); 5] = [
    ("by primary key", "SELECT id FROM batch WHERE id = 42 FOR UPDATE", 1),
    ("by a column without an index", "SELECT id FROM batch WHERE reference = 'ref-42' FOR UPDATE", 1),
    ("the tenth, by OFFSET", "SELECT id FROM batch ORDER BY id OFFSET 9 LIMIT 1 FOR UPDATE", 10),
    ("joined to its merchant", "SELECT b.id FROM batch b JOIN merchant m ON m.id = b.merchant WHERE b.id = 42 FOR UPDATE", 10),
    (
        "joined, FOR UPDATE OF b",
        "SELECT b.id FROM batch b JOIN merchant m ON m.id = b.merchant WHERE b.id = 42 FOR UPDATE OF b",
        1,
    ),
];

/// What a job that locks batches with their merchants still gets.
const FREE: &str = "SELECT b.id FROM batch b JOIN merchant m ON m.id = b.merchant FOR UPDATE SKIP LOCKED";

const ALL: &str = "SELECT id, unit FROM settlement_batch";
const UNLOCKED: &str = "SELECT id FROM settlement_batch FOR UPDATE SKIP LOCKED";
const ELSEWHERE: &str = "SELECT count(*) FILTER (WHERE state <> 'settled'), count(*) FILTER (WHERE state = 'settled')
    FROM settlement_batch WHERE NOT unit = ANY($1)";

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let database = stage.database()?;
        statements(&database, TABLES).await?;
        let columns = ["arm", "rows returned", "rows read", "batches locked, of 100"];
        let mut table = Table::new("What a SELECT ... FOR UPDATE takes, PostgreSQL", columns);
        for (arm, sql, expected) in STATEMENTS {
            let [returned, read, locked] = scope(&database, sql).await?;
            let more = locked > returned;
            let seen = format!("{returned} returned, {locked} locked");
            stage.tell("A", if more { Mark::Damage } else { Mark::Write }, format!("{arm}: {seen}, {read} read"));
            if expected > 1 {
                stage.must_break(arm, "it takes more than its row", seen, more && locked == expected);
            } else {
                stage.must_hold(arm, "it takes its row", seen, !more);
            }
            table.row([arm.to_owned(), returned.to_string(), read.to_string(), locked.to_string()]);
        }
        table.row(settles_its_own(stage).await?);
        stage.table(table);
        let elsewhere = "not measured here: InnoDB locks, at REPEATABLE READ, every index record that it reads and the gaps before them \
                         (MySQL manual, \"Locks Set by Different SQL Statements\"), so the column without an index would take the table";
        stage.tell("director", Mark::Note, elsewhere);
        Ok::<(), DrillError>(())
    })
}

/// Rows returned, rows read, batches that a second session does not get.
async fn scope(database: &str, sql: &'static str) -> Result<[i64; 3], DrillError> {
    let (mut first, mut second) = (PgConnection::connect(database).await?, PgConnection::connect(database).await?);
    let explained = format!("EXPLAIN (ANALYZE, FORMAT JSON) {sql}");
    let plan: Value = {
        let mut looked = first.begin().await?;
        let row = sqlx::query(AssertSqlSafe(explained)).fetch_one(&mut *looked).await?;
        looked.rollback().await?;
        row.try_get(0)?
    };
    let mut holding = first.begin().await?;
    let returned = sqlx::query(sql).fetch_all(&mut *holding).await?.len();
    let mut others = second.begin().await?;
    let free = sqlx::query(FREE).fetch_all(&mut *others).await?.len();
    others.rollback().await?;
    holding.rollback().await?;
    let count = |rows: usize| i64::try_from(rows).unwrap_or(i64::MAX);
    Ok([count(returned), read_of_batch(&plan[0]["Plan"]), 100 - count(free)])
}

/// Rows of `batch` that the scans of a plan looked at.
fn read_of_batch(plan: &Value) -> i64 {
    let here = if plan["Relation Name"] == "batch" {
        plan["Actual Rows"].as_f64().map_or(0, whole) + plan["Rows Removed by Filter"].as_f64().map_or(0, whole)
    } else {
        0
    };
    here + plan["Plans"].as_array().into_iter().flatten().map(read_of_batch).sum::<i64>()
}

/// PostgreSQL 18 gives rows with decimals: they are an average over loops.
#[expect(clippy::cast_possible_truncation, reason = "a count of at most a hundred rows")]
fn whole(rows: f64) -> i64 {
    rows.round() as i64
}

/// Two units of this program's ledger: A is frozen in the transaction that settles a batch of one of them, B settles the other.
async fn settles_its_own(stage: &Stage) -> Result<[String; 4], DrillError> {
    let arm = "settled, a settle transaction";
    let database = stage.database()?;
    // nobody is to end A's session while it is looked at
    let books = stage.books(&database).with("lease.ttl_ms", 120_000);
    books.take_in(8, 5)?;
    let mut look = PgConnection::connect(&database).await?;
    let all: Vec<(i64, i32)> = sqlx::query_as(ALL).fetch_all(&mut look).await?;
    let mut a = books.start("A", &["run", "--json", "--signal-at", "InsideSettleTx=stop"])?;
    a.wait_frozen().await?;
    let unlocked: Vec<i64> = sqlx::query_scalar(UNLOCKED).fetch_all(&mut look).await?;
    let units: Vec<i32> = all.iter().filter(|(id, _)| !unlocked.contains(id)).map(|(_, unit)| *unit).collect();
    let (locked, all) = (units.len(), all.len());
    stage.must_hold(arm, "it locks its batch", format!("{locked} of {all}"), locked == 1);
    let mut b = books.start("B", &["run", "--json"])?;
    let others = until("B has settled the other unit", PATIENCE, async || {
        let (open, settled): (i64, i64) = sqlx::query_as(ELSEWHERE).bind(&units).fetch_one(&mut look).await?;
        Ok((open == 0).then_some(settled))
    })
    .await?;
    let frozen = a.process.is_stopped();
    let seen = format!("{others} settled, A frozen: {frozen}");
    stage.must_hold(arm, "the other unit is settled meanwhile", seen, frozen && others > 0);
    a.wake()?;
    let mut settled = 0;
    for instance in [&mut a, &mut b] {
        settled += instance.end_well::<Value>().await?["batches_settled"].as_u64().unwrap_or(0);
    }
    stage.judge(arm, &books).await?;
    let once = usize::try_from(settled) == Ok(all);
    stage.must_hold(arm, "every batch is settled once", format!("{settled} of {all}"), once);
    Ok([arm.to_owned(), "-".to_owned(), "-".to_owned(), format!("{locked} of {all}")])
}
