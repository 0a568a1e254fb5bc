//! How many requests a server has been asked, by its own count.

use crate::DrillError;
use crate::instance::PATIENCE;
use crate::stage::until;
use lab::etcd::Etcd;
use lab::postgres::PostgresUrl;
use lab::redis::Redis;
use std::time::Duration;

/// A server that is asked.
pub(super) enum Counts<'a> {
    /// Messages of clients on all its calls and streams, `grpc_server_msg_received_total`.
    Etcd(&'a Etcd),
    /// Commands, also those inside scripts, `INFO commandstats`.
    Redis(&'a Redis),
    /// Transactions of this one database, `pg_stat_database`.
    Database(&'a PostgresUrl),
}

impl Counts<'_> {
    /// Until everybody has asked, and pauses are as long as they get.
    pub(super) async fn until_all_wait(&self, waiters: usize) -> Result<(), DrillError> {
        let waiters = u64::try_from(waiters).unwrap_or(u64::MAX);
        until("everybody waits", PATIENCE, async || {
            let before = self.so_far().await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            // in line nobody asks; elsewhere all of them do, for ever
            let calm = match self {
                Counts::Etcd(_) => self.so_far().await? - before < waiters / 10,
                Counts::Redis(_) | Counts::Database(_) => true,
            };
            Ok((before >= waiters && calm).then_some(()))
        })
        .await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    }

    /// So far.
    pub(super) async fn so_far(&self) -> Result<u64, DrillError> {
        match self {
            Counts::Etcd(etcd) => Ok(sum(&etcd.metrics(0)?, messages)),
            Counts::Redis(redis) => Ok(sum(&redis.command(&["INFO", "commandstats"])?, commands)),
            Counts::Database(database) => {
                // sessions hand their counts in after a second of work or of rest
                tokio::time::sleep(Duration::from_millis(1_100)).await;
                let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
                Ok(database.query(sql)?.trim().parse().unwrap_or(0))
            }
        }
    }
}

fn messages(line: &str) -> Option<&str> {
    line.strip_prefix("grpc_server_msg_received_total")?.rsplit(' ').next()
}

fn commands(line: &str) -> Option<&str> {
    line.strip_prefix("cmdstat_")?.split_once("calls=")?.1.split(',').next()
}

/// etcd writes large figures as 1.2e+06.
fn sum(text: &str, figure: fn(&str) -> Option<&str>) -> u64 {
    text.lines().filter_map(|line| figure(line)?.trim().parse().ok().map(whole)).sum()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, below what a float has digits for")]
fn whole(figure: f64) -> u64 {
    figure as u64
}
