//! A lease whose expiry is computed from the clock of its holder: right for as long as all clocks are.

use super::tell;
use crate::{DrillError, Mark};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use std::time::Duration;

/// Free, or over by the clock of who asks.
const ACQUIRE: &str = "INSERT INTO naive_lease (name, holder, expires_at) VALUES ('night', $1, $2)
    ON CONFLICT (name) DO UPDATE SET holder = $1, expires_at = $2 WHERE naive_lease.expires_at < $3";
const RENEW: &str = "UPDATE naive_lease SET expires_at = $2 WHERE name = 'night' AND holder = $1";

/// Tries to acquire the lease once; where it is granted and is to be held, renews it in time until it is gone.
pub(super) async fn play(url: &str, holder: &str, ttl: Duration, hold: bool) -> Result<Value, DrillError> {
    let mut session = PgConnection::connect(url).await?;
    let (now, expiry) = clock(ttl);
    let asked = sqlx::query(ACQUIRE).bind(holder).bind(expiry).bind(now).execute(&mut session).await?;
    let granted = asked.rows_affected() == 1;
    match granted {
        true => tell(Mark::Holds, &format!("holds the lease until {} by its own clock", expiry.format("%H:%M:%S"))),
        false => tell(Mark::Note, &format!("is told that the lease is held; it is {} by its own clock", now.format("%H:%M:%S"))),
    }
    if granted && hold {
        hold_until_gone(&mut session, holder, ttl).await?;
    }
    Ok(json!({ "granted": granted }))
}

async fn hold_until_gone(session: &mut PgConnection, holder: &str, ttl: Duration) -> Result<(), DrillError> {
    loop {
        tokio::time::sleep(ttl / 4).await;
        let renewed = sqlx::query(RENEW).bind(holder).bind(clock(ttl).1).execute(&mut *session).await?;
        if renewed.rows_affected() == 0 {
            tell(Mark::Damage, "renews in time, and the lease is another's");
            return Ok(());
        }
    }
}

/// Now, and a TTL later.
fn clock(ttl: Duration) -> (DateTime<Utc>, DateTime<Utc>) {
    let now = Utc::now();
    (now, now + ttl)
}
