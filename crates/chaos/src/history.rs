//! What a process writes down about its requests, one JSON line each: when it was sent, and what came of it.
//!
//! The form is Jepsen's: a call is *invoked*, and ends *ok*, *fail* (it certainly had no effect) or *unknown* (nobody answered). A call
//! without an end is unknown too: its process was killed.

use crate::DrillError;
use crate::event::since_boot_us;
use domain::fence::Fence;
use domain::ids::HolderId;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A lease, of the lock service. `ok`: granted; `fail`: another has it.
    Acquire,
    /// A place in the line for it, of the lock service: from then on it may be granted without another word. `fail`: there is no line.
    StandInLine,
    /// More of it, or a proof that it is ours. `fail`: lost.
    Renew,
    /// Its end. `fail`: it was not held any more.
    Release,
    /// A token, of the ledger.
    Mint,
    /// To be the holder of a unit in the ledger. `fail`: refused, or the unit's is newer.
    Register,
    /// Batches of a unit. `fail`: refused.
    Claim,
    /// To settle them. `ok` names those that were settled by this call; `fail`: refused.
    Settle,
    /// To hand them back.
    HandBack,
    /// No request: a named step was reached. Always `ok`.
    Step,
    /// No request: chaos mode did something to this process, or its director did. Always `ok`.
    Fault,
}

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is sent now.
    Invoke,
    /// It was answered, and is done.
    Ok,
    /// It was answered, and had no effect.
    Fail,
    /// Nobody answered: it had its effect, will have it, or never.
    Unknown,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Microseconds since the machine booted, by a clock that all its processes share.
    pub at_us: u64,
    /// Which process start.
    pub holder: HolderId,
    /// The number of the call in this process; its end has the same.
    pub call: u64,
    /// What was asked for.
    pub op: Op,
    /// Where it is.
    pub phase: Phase,
    /// The rest, as far as the call has it.
    #[serde(flatten)]
    pub of: Of,
}

/// What a call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Of {
    /// The lease's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// The grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Uuid>,
    /// The unit in the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<i32>,
    /// Under which fence; of a refusal, whose it was. A token alone has generation 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// The batches: asked for in an invocation, done in an `ok`, refused in a `fail`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<i64>,
    /// Step, fault, reason: for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub word: String,
}

/// Writes a history. Every line is in the file before the call goes on, so that a killed process leaves all but its last.
#[derive(Debug)]
pub struct History {
    file: Mutex<File>,
    holder: HolderId,
    calls: AtomicU64,
}

impl History {
    /// Begins one, or goes on with the one of an earlier process.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn begin(file: &Path, holder: HolderId) -> Result<History, DrillError> {
        let opened = File::options().create(true).append(true).open(file);
        let file = opened.map_err(DrillError::io(format!("opening the history {}", file.display())))?;
        Ok(History { file: Mutex::new(file), holder, calls: AtomicU64::new(0) })
    }

    /// A call is about to be sent; returns its number.
    pub fn invoke(&self, op: Op, of: Of) -> u64 {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.write(call, op, Phase::Invoke, of);
        call
    }

    /// A call has ended.
    pub fn end(&self, call: u64, op: Op, phase: Phase, of: Of) {
        self.write(call, op, phase, of);
    }

    /// Something that is no call.
    pub fn note(&self, op: Op, of: Of) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.write(call, op, Phase::Ok, of);
    }

    fn write(&self, call: u64, op: Op, phase: Phase, of: Of) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let line = Line { at_us: since_boot_us(), holder: self.holder, call, op, phase, of };
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        // one write, so that a kill leaves whole lines; a history that cannot be written must not stop the work
        if let Err(error) = file.write_all(&text) {
            tracing::error!(%error, "the history cannot be written");
        }
    }
}

/// Reads a history. The last line may be cut off where its process was killed.
///
/// # Errors
/// The file cannot be read, or a line that is not the last is no line of a history.
pub fn read(file: &Path) -> Result<Vec<Line>, DrillError> {
    let text = std::fs::read_to_string(file).map_err(DrillError::io(format!("reading the history {}", file.display())))?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
