//! What the articles' experiments are made of: a counter in a table of its own, and a lock in Redis as articles show it. Nothing of the
//! product is in here, so that what goes wrong is the pattern's and not ours.
//!
//! - [`lock`]: `SET NX PX` with a nonce, compare-and-delete, and the plain `DEL` that is so often written instead.
//! - [`counter`]: read and write back, `FOR UPDATE`, one atomic `UPDATE`, and one that compares a fence.
//! - [`clients`]: several at once, and how long each operation took.

pub mod clients;
pub mod counter;
pub mod lock;

pub use clients::{Clients, Ran, Way};
pub use counter::Counter;
pub use lock::{Held, Lock};

use crate::DrillError;
use sqlx::{Connection, PgConnection};

/// Statements of a drill's own, on a connection that ends with them.
///
/// # Errors
/// The database's.
pub async fn statements(database: &str, sql: &'static str) -> Result<(), DrillError> {
    let mut connection = PgConnection::connect(database).await?;
    sqlx::raw_sql(sql).execute(&mut connection).await?;
    Ok(connection.close().await?)
}
