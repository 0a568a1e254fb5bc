//! A client that moves 100 from one account to another, and may be killed between debit and credit.

use crate::articles::Lock;
use crate::{DrillError, Mark};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection};
use std::time::Duration;

use super::{signal_oneself, tell};

/// How the two updates belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By a lock that is held over both.
    Lock,
    /// By one transaction.
    Transaction,
    /// By a record of every step, in the transaction of that step, so that a second try goes on where the first one ended.
    Steps,
}

/// The part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Where the lock is.
    pub redis: String,
    /// Where the accounts are: see [`TABLES`].
    pub database: String,
    /// How.
    pub way: Way,
    /// Kills itself between the two.
    pub killed: bool,
}

/// Two accounts of 1000 each for every [`Way`], and the steps that were done.
pub const TABLES: &str = "CREATE TABLE account (way text, name text, balance bigint NOT NULL, PRIMARY KEY (way, name));
    INSERT INTO account SELECT way, name, 1000 FROM unnest(ARRAY['lock', 'transaction', 'steps']) way, unnest(ARRAY['a', 'b']) name;
    CREATE TABLE step_done (step_key text PRIMARY KEY)";

const AMOUNT: i64 = 100;
const CHANGE: &str = "UPDATE account SET balance = balance + $3 WHERE way = $1 AND name = $2";
const DONE: &str = "INSERT INTO step_done (step_key) VALUES ($1) ON CONFLICT DO NOTHING";

impl Way {
    /// As the table has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Lock => "lock",
            Way::Transaction => "transaction",
            Way::Steps => "steps",
        }
    }
}

impl Transfer {
    pub(super) async fn play(&self) -> Result<(), DrillError> {
        let mut books = PgConnection::connect(&self.database).await?;
        match self.way {
            Way::Lock => self.locked(&mut books).await,
            Way::Transaction => self.in_one(&mut books).await,
            Way::Steps => self.in_steps(&mut books).await,
        }
    }

    async fn locked(&self, books: &mut PgConnection) -> Result<(), DrillError> {
        let mut lock = Lock::at(&self.redis, "transfer", Duration::from_secs(1)).await?;
        let held = lock.take().await?;
        tell(Mark::Holds, "takes the lock");
        self.change(books, "a", -AMOUNT).await?;
        self.between()?;
        self.change(books, "b", AMOUNT).await?;
        lock.release(&held).await.map(drop)
    }

    async fn in_one(&self, books: &mut PgConnection) -> Result<(), DrillError> {
        let mut transaction = books.begin().await?;
        self.change(&mut transaction, "a", -AMOUNT).await?;
        self.between()?;
        self.change(&mut transaction, "b", AMOUNT).await?;
        transaction.commit().await?;
        tell(Mark::Write, "commits both");
        Ok(())
    }

    async fn in_steps(&self, books: &mut PgConnection) -> Result<(), DrillError> {
        self.step(books, "transfer-1:debit", "a", -AMOUNT).await?;
        self.between()?;
        self.step(books, "transfer-1:credit", "b", AMOUNT).await
    }

    /// Once, however often it is asked for: the key and the change are committed together.
    async fn step(&self, books: &mut PgConnection, key: &str, account: &str, amount: i64) -> Result<(), DrillError> {
        let mut transaction = books.begin().await?;
        if sqlx::query(DONE).bind(key).execute(&mut *transaction).await?.rows_affected() == 0 {
            tell(Mark::Note, &format!("{key}: done before"));
            return Ok(transaction.rollback().await?);
        }
        self.change(&mut transaction, account, amount).await?;
        transaction.commit().await?;
        tell(Mark::Note, &format!("{key}: committed"));
        Ok(())
    }

    async fn change(&self, books: &mut PgConnection, account: &str, amount: i64) -> Result<(), DrillError> {
        sqlx::query(CHANGE).bind(self.way.name()).bind(account).bind(amount).execute(books).await?;
        let what = if amount < 0 { "debits" } else { "credits" };
        tell(Mark::Write, &format!("{what} {account} by {}", amount.abs()));
        Ok(())
    }

    fn between(&self) -> Result<(), DrillError> {
        if self.killed { signal_oneself(Signal::KILL) } else { Ok(()) }
    }
}
