//! The same with a settlement batch, by a job as an article shows it and by this program.

use crate::actors::Part;
use crate::actors::naive::{Did, Naive, TABLES};
use crate::articles::statements;
use crate::record::Table;
use crate::{DrillError, Mark, Stage};
use serde_json::Value;
use sqlx::{Connection, PgConnection};

use super::TTL_MS;
use crate::drills::far::number;

/// The article's lease of 30 s, scaled down.
pub(super) async fn tell(stage: &Stage, database: &str, redis: &str) -> Result<(), DrillError> {
    let mut table =
        Table::new("One batch, A frozen past its TTL, B settles it, A wakes", ["arm", "posted", "reports of success", "outcome"]);
    for row in [naive(stage, database, redis).await?, ours(stage, redis).await?] {
        table.row(row);
    }
    stage.table(table);
    Ok(())
}

async fn naive(stage: &Stage, database: &str, redis: &str) -> Result<[String; 4], DrillError> {
    let arm = "a job under a lock";
    statements(database, TABLES).await?;
    let begun = stage.events().len();
    let part = Naive { redis: redis.to_owned(), database: database.to_owned(), ttl_ms: TTL_MS, freezes: true };
    let mut a = stage.actor("A", &Part::Naive(part.clone()))?;
    a.wait_frozen().await?;
    let mut b = stage.actor("B", &Part::Naive(Naive { freezes: false, ..part }))?;
    let second: Did = b.end_well().await?;
    a.wake()?;
    let first: Did = a.end_well().await?;
    let mut books = PgConnection::connect(database).await?;
    let postings: i64 = sqlx::query_scalar("SELECT count(*) FROM naive_posting").fetch_one(&mut books).await?;
    let mark = if postings > 1 { Mark::Damage } else { Mark::Note };
    stage.tell("director", mark, format!("batch 1 was posted {postings} times"));
    timeline(stage, arm, begun);
    let successes = u8::from(first.settled) + u8::from(second.settled);
    let seen = format!("posted {postings} times, {successes} reports of success");
    stage.must_break(arm, "the batch is settled twice, and both say so", seen, postings == 2 && successes == 2);
    Ok([arm.to_owned(), postings.to_string(), successes.to_string(), format!("posted {postings} times")])
}

async fn ours(stage: &Stage, redis: &str) -> Result<[String; 4], DrillError> {
    let arm = "settled";
    let books = stage.books(&stage.database()?).with("worker.partitions", 1);
    let books = books.with("lease.backend", "redis").with("lease.redis.url", redis).with("lease.ttl_ms", TTL_MS);
    books.take_in(1, 5)?;
    let begun = stage.events().len();
    let mut a = books.start("A", &["run", "--json", "--signal-at", "BeforeSettleTx=stop"])?;
    a.wait_frozen().await?;
    let mut b = books.start("B", &["run", "--json"])?;
    let second: Value = b.end_well().await?;
    a.wake()?;
    let first: Value = a.end_well().await?;
    timeline(stage, arm, begun);
    let successes: u64 = [&first, &second].iter().filter_map(|did| did["batches_settled"].as_u64()).sum();
    stage.must_hold(arm, "one report of success", successes.to_string(), successes == 1);
    let postings = number(books.url(), "SELECT count(*) FROM journal_entry WHERE kind = 'settle'")?;
    stage.must_hold(arm, "the batch is posted once", format!("posted {postings} times"), postings == 1);
    let refused = stage.judge(arm, &books).await?;
    stage.must_bite(arm, "the late write is refused", refused.to_string(), refused > 0);
    let outcome = format!("posted {postings} times, {refused} late write refused");
    Ok([arm.to_owned(), postings.to_string(), successes.to_string(), outcome])
}

/// What happened since then, as the article tells it.
fn timeline(stage: &Stage, arm: &str, begun: usize) {
    let events = stage.events().split_off(begun);
    let zero = events.first().map_or(0, |event| event.at_us);
    let mut table = Table::new(&format!("{arm}: what happened"), ["t (s)", "who", "event"]);
    for event in events {
        let ms = (event.at_us - zero) / 1_000;
        table.row([format!("{}.{:03}", ms / 1_000, ms % 1_000), event.who, event.text]);
    }
    stage.table(table);
}
