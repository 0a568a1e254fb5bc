//! A client that is frozen inside its transaction, on a session that its server leaves alone.

use super::tell;
use crate::{DrillError, Mark};
use rustix::process::{Signal, getpid, kill_process};
use sqlx::{Connection, PgConnection};

/// Takes 100 from the account of the drill, freezes itself, and commits when it is woken.
pub(super) async fn play(url: &str) -> Result<(), DrillError> {
    let mut session = PgConnection::connect(url).await?;
    let mut transaction = session.begin().await?;
    sqlx::query("UPDATE account SET balance = balance - 100").execute(&mut *transaction).await?;
    tell(Mark::Holds, "has written inside its transaction: the row is locked");
    kill_process(getpid(), Signal::STOP).map_err(std::io::Error::from).map_err(DrillError::io("freezing this process"))?;
    transaction.commit().await?;
    tell(Mark::Write, "commits");
    Ok(())
}
