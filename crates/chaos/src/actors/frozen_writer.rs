//! A client that is frozen inside its transaction, on a session that its server leaves alone.

use super::{signal_oneself, tell};
use crate::{DrillError, Mark};
use rustix::process::Signal;
use sqlx::{Connection, PgConnection};

/// Takes 100 from the account of the drill, freezes itself, and commits when it is woken.
pub(super) async fn play(url: &str) -> Result<(), DrillError> {
    let mut session = PgConnection::connect(url).await?;
    let mut transaction = session.begin().await?;
    sqlx::query("UPDATE account SET balance = balance - 100").execute(&mut *transaction).await?;
    tell(Mark::Holds, "has written inside its transaction: the row is locked");
    signal_oneself(Signal::STOP)?;
    transaction.commit().await?;
    tell(Mark::Write, "commits");
    Ok(())
}
