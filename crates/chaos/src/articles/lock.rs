//! A lock as articles show it: one key of one Redis, with a time to live.
//!
//! Source of the idea: "Distributed Locks with Redis", redis.io; why it is not enough: Martin Kleppmann, "How to do distributed locking".

use crate::DrillError;
use redis::Client;
use redis::aio::MultiplexedConnection;
use std::ops::RangeInclusive;
use std::time::Duration;
use uuid::Uuid;

/// Only who set it deletes it.
const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
/// Only who set it prolongs it.
const RENEW: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";
/// Between two tries, chosen anew each time: waiters that try in step only get in each other's way.
const JITTER_MS: RangeInclusive<u64> = 1..=8;

/// One client's way to it, on a connection of its own.
pub struct Lock {
    connection: MultiplexedConnection,
    key: String,
    ttl: Duration,
}

/// That it was got: the value that says whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held(String);

impl Lock {
    /// Connects; takes nothing yet.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn at(redis: &str, key: &str, ttl: Duration) -> Result<Lock, DrillError> {
        Ok(Lock::on(Client::open(redis)?.get_multiplexed_async_connection().await?, key, ttl))
    }

    /// On a connection that others use too.
    #[must_use]
    pub fn on(connection: MultiplexedConnection, key: &str, ttl: Duration) -> Lock {
        Lock { connection, key: key.to_owned(), ttl }
    }

    /// One try: `SET key nonce NX PX ttl`.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn try_take(&mut self) -> Result<Option<Held>, DrillError> {
        let nonce = Uuid::new_v4().to_string();
        let mut set = redis::cmd("SET");
        set.arg(&self.key).arg(&nonce).arg("NX").arg("PX").arg(self.ttl_ms());
        let answer: Option<String> = set.query_async(&mut self.connection).await?;
        Ok(answer.map(|_| Held(nonce)))
    }

    /// Tries until it is got.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn take(&mut self) -> Result<Held, DrillError> {
        loop {
            if let Some(held) = self.try_take().await? {
                return Ok(held);
            }
            tokio::time::sleep(Duration::from_millis(rand::random_range(JITTER_MS))).await;
        }
    }

    /// Whether it is still ours at the instant at which Redis answers.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn owns(&mut self, held: &Held) -> Result<bool, DrillError> {
        let value: Option<String> = redis::cmd("GET").arg(&self.key).query_async(&mut self.connection).await?;
        Ok(value.as_ref() == Some(&held.0))
    }

    /// Another TTL from now on, if it is still ours.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn renew(&mut self, held: &Held) -> Result<bool, DrillError> {
        let ttl_ms = self.ttl_ms();
        Ok(self.script(RENEW, &[&held.0, &ttl_ms.to_string()]).await? == 1)
    }

    /// Compare-and-delete. Says whether it was still ours.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn release(&mut self, held: &Held) -> Result<bool, DrillError> {
        Ok(self.script(RELEASE, &[&held.0]).await? == 1)
    }

    /// A plain `DEL`, whoever has it. Says whether there was one.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn delete(&mut self) -> Result<bool, DrillError> {
        let deleted: u64 = redis::cmd("DEL").arg(&self.key).query_async(&mut self.connection).await?;
        Ok(deleted == 1)
    }

    /// A number that is higher than every one before it, for as long as Redis forgets nothing. The product's come from the ledger.
    ///
    /// # Errors
    /// Redis does not answer.
    pub async fn token(&mut self) -> Result<i64, DrillError> {
        Ok(redis::cmd("INCR").arg(format!("{}:token", self.key)).query_async(&mut self.connection).await?)
    }

    async fn script(&mut self, script: &str, arguments: &[&str]) -> Result<i64, DrillError> {
        let mut eval = redis::cmd("EVAL");
        eval.arg(script).arg(1).arg(&self.key).arg(arguments);
        Ok(eval.query_async(&mut self.connection).await?)
    }

    fn ttl_ms(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }
}
