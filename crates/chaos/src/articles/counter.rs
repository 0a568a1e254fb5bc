//! A counter in a table of its own, and the ways of adding one to it.

use crate::DrillError;
use crate::articles::statements;
use sqlx::{Connection, PgConnection};

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS counter (name text PRIMARY KEY, value bigint NOT NULL, fence bigint NOT NULL DEFAULT 0)";
const READ: &str = "SELECT value FROM counter WHERE name = $1";
const READ_LOCKED: &str = "SELECT value FROM counter WHERE name = $1 FOR UPDATE";
const WRITE: &str = "UPDATE counter SET value = $2 WHERE name = $1";
const WRITE_FENCED: &str = "UPDATE counter SET value = $2, fence = $3 WHERE name = $1 AND fence < $3";
const WRITE_AGAIN: &str = "UPDATE counter SET value = value + 1, fence = $2 WHERE name = $1 AND fence <= $2";
const ADD: &str = "UPDATE counter SET value = value + 1 WHERE name = $1";

/// One client's way to one counter, on a connection of its own.
pub struct Counter {
    connection: PgConnection,
    name: String,
}

impl Counter {
    /// The tables of all counters of this database.
    ///
    /// # Errors
    /// The database's.
    pub async fn create_table(database: &str) -> Result<(), DrillError> {
        statements(database, CREATE).await
    }

    /// Connects.
    ///
    /// # Errors
    /// The database's.
    pub async fn at(database: &str, name: &str) -> Result<Counter, DrillError> {
        Ok(Counter { connection: PgConnection::connect(database).await?, name: name.to_owned() })
    }

    /// At zero, whether it was there or not.
    ///
    /// # Errors
    /// The database's.
    pub async fn reset(&mut self) -> Result<(), DrillError> {
        let sql = "INSERT INTO counter (name, value) VALUES ($1, 0) ON CONFLICT (name) DO UPDATE SET value = 0, fence = 0";
        sqlx::query(sql).bind(&self.name).execute(&mut self.connection).await?;
        Ok(())
    }

    /// Its value.
    ///
    /// # Errors
    /// The database's.
    pub async fn read(&mut self) -> Result<i64, DrillError> {
        Ok(sqlx::query_scalar(READ).bind(&self.name).fetch_one(&mut self.connection).await?)
    }

    /// Sets it, whoever did so before. How many rows that was.
    ///
    /// # Errors
    /// The database's.
    pub async fn write(&mut self, value: i64) -> Result<u64, DrillError> {
        let done = sqlx::query(WRITE).bind(&self.name).bind(value).execute(&mut self.connection).await?;
        Ok(done.rows_affected())
    }

    /// Sets it unless somebody with this token or a higher one did so before: then it is 0 rows.
    ///
    /// # Errors
    /// The database's.
    pub async fn write_fenced(&mut self, value: i64, token: i64) -> Result<u64, DrillError> {
        let write = sqlx::query(WRITE_FENCED).bind(&self.name).bind(value).bind(token);
        Ok(write.execute(&mut self.connection).await?.rows_affected())
    }

    /// One more, as often as one likes with one token, unless somebody with a higher one did so before: then it is 0 rows.
    ///
    /// # Errors
    /// The database's.
    pub async fn write_again(&mut self, token: i64) -> Result<u64, DrillError> {
        let write = sqlx::query(WRITE_AGAIN).bind(&self.name).bind(token);
        Ok(write.execute(&mut self.connection).await?.rows_affected())
    }

    /// The highest token that it was written with.
    ///
    /// # Errors
    /// The database's.
    pub async fn fence(&mut self) -> Result<i64, DrillError> {
        let fence = sqlx::query_scalar("SELECT fence FROM counter WHERE name = $1").bind(&self.name);
        Ok(fence.fetch_one(&mut self.connection).await?)
    }

    /// One more, by a read and a write with nothing between them that anybody else respects.
    ///
    /// # Errors
    /// The database's.
    pub async fn read_then_write(&mut self) -> Result<(), DrillError> {
        let value = self.read().await?;
        self.write(value + 1).await.map(drop)
    }

    /// One more, by a transaction that locks the row before it reads it.
    ///
    /// # Errors
    /// The database's.
    pub async fn lock_then_write(&mut self) -> Result<(), DrillError> {
        let mut transaction = self.connection.begin().await?;
        let value: i64 = sqlx::query_scalar(READ_LOCKED).bind(&self.name).fetch_one(&mut *transaction).await?;
        sqlx::query(WRITE).bind(&self.name).bind(value + 1).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// One more, by the statement that needs no lock of ours.
    ///
    /// # Errors
    /// The database's.
    pub async fn add_one(&mut self) -> Result<(), DrillError> {
        sqlx::query(ADD).bind(&self.name).execute(&mut self.connection).await?;
        Ok(())
    }
}
