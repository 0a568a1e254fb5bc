//! A scheduler as it is often written: at every tick it opens a run, as if it were the only one.

use super::tell;
use crate::{DrillError, Mark};
use chrono::{DateTime, Duration, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection};

/// The part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cron {
    /// Where the runs are: see [`TABLE`].
    pub database: String,
    /// The first tick.
    pub first: DateTime<Utc>,
    /// From one tick to the next.
    pub every_s: u32,
    /// How many there are.
    pub ticks: u32,
}

/// Its runs. No key says that there is one a slot.
pub const TABLE: &str = "CREATE TABLE naive_run (slot timestamptz NOT NULL)";

impl Cron {
    pub(super) async fn play(&self) -> Result<(), DrillError> {
        let mut books = PgConnection::connect(&self.database).await?;
        for tick in 0..self.ticks {
            let slot = self.first + Duration::seconds(i64::from(tick * self.every_s));
            tokio::time::sleep((slot - Utc::now()).to_std().unwrap_or_default()).await;
            sqlx::query("INSERT INTO naive_run (slot) VALUES ($1)").bind(slot).execute(&mut books).await?;
            tell(Mark::Write, &format!("opens a run for {}", slot.format("%T")));
        }
        Ok(())
    }
}
