//! Parts that a process of this program plays in an experiment, and that no command of the product can play: clients of the articles'
//! own tables and locks, and workers that lack a protection.
//!
//! A part is one JSON value on the command line, `settled drill act PART`, so that a story can say all of it in one place. What it came
//! to is printed as JSON.

mod client_clock;
pub mod cron;
mod frozen_writer;
pub mod holder;
pub mod naive;
pub mod ticker;
pub mod transfer;

use crate::{DrillError, Mark};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Adds one to a counter under a lock.
    Holder(holder::Holder),
    /// Settles a batch as an article's job does.
    Naive(naive::Naive),
    /// Notices its own pauses.
    Ticker(ticker::Ticker),
    /// Opens a run at every tick.
    Cron(cron::Cron),
    /// Moves money from one account to another.
    Transfer(transfer::Transfer),
    /// Freezes itself inside a transaction of this database that holds a row lock.
    FrozenWriter {
        /// The database.
        url: String,
    },
    /// Acquires a lease that is timed by the clock of this process.
    ClientClock {
        /// The database.
        url: String,
        /// Who asks.
        holder: String,
        /// For how long.
        ttl_ms: u64,
        /// Whether to hold it until it is gone.
        hold: bool,
    },
}

/// Plays it to its end. What happens goes to the log as [`tell`] writes it.
///
/// # Errors
/// The part's own.
pub async fn play(part: Part) -> Result<(), DrillError> {
    match part {
        Part::Holder(holder) => print(&holder.play().await?)?,
        Part::Naive(naive) => print(&naive.play().await?)?,
        Part::Ticker(ticker) => print(&ticker.play().await?)?,
        Part::Cron(cron) => cron.play().await?,
        Part::Transfer(transfer) => transfer.play().await?,
        Part::FrozenWriter { url } => frozen_writer::play(&url).await?,
        Part::ClientClock { url, holder, ttl_ms, hold } => {
            print(&client_clock::play(&url, &holder, Duration::from_millis(ttl_ms), hold).await?)?;
        }
    }
    Ok(())
}

/// Tells the timeline of the drill, which reads this process's standard error.
pub fn tell(mark: Mark, text: &str) {
    eprintln!("{}", serde_json::json!({ "message": text, "mark": mark }));
}

#[expect(clippy::print_stdout, reason = "the drill reads it")]
fn print(report: &impl Serialize) -> Result<(), DrillError> {
    println!("{}", serde_json::to_string(report)?);
    Ok(())
}

/// Stops or kills this process, all its threads, before the next statement. Not from a task of its own: the kernel asks the main thread
/// first.
fn signal_oneself(signal: Signal) -> Result<(), DrillError> {
    kill_process(getpid(), signal).map_err(|error| DrillError::io("sending a signal to this process")(error.into()))
}
