//! A process of this program in a drill.

use crate::DrillError;
use crate::event::{Mark, Timeline};
use crate::stage::until;
use lab::process::{Output, Process};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Nothing in a drill takes longer, on however busy a machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running one. Dropped, it is killed.
pub struct Instance {
    name: String,
    /// To freeze, wake, kill it; telling it is done here.
    pub process: Process,
    timeline: Arc<Timeline>,
    log: Arc<Mutex<Vec<String>>>,
    /// Ends with its standard output.
    out: Option<JoinHandle<String>>,
    /// Ends with its log.
    reader: Option<JoinHandle<()>>,
}

impl Instance {
    /// Starts it. What happens to it, and what matters of its log, is told on the timeline.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(name: &str, command: &mut Command, timeline: Arc<Timeline>) -> Result<Instance, DrillError> {
        let mut process = Process::spawn(command, Output::Piped)?;
        timeline.tell(name, Mark::Start, format!("starts, process {}", process.pid()));
        let log = Arc::new(Mutex::new(Vec::new()));
        let out = process.child().stdout.take().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = pipe.read_to_string(&mut text);
                text
            })
        });
        let reader = process.child().stderr.take().map(|pipe| {
            let (name, timeline, log) = (name.to_owned(), Arc::clone(&timeline), Arc::clone(&log));
            std::thread::spawn(move || follow(pipe, &name, &timeline, &log))
        });
        Ok(Instance { name: name.to_owned(), process, timeline, log, out, reader })
    }

    /// Its name on the timeline.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The events of its log so far.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.log().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for an event of its log whose message contains `words`.
    ///
    /// # Errors
    /// It does not come.
    pub async fn wait_for(&self, words: &str) -> Result<Value, DrillError> {
        let says = |event: &Value| event["message"].as_str().is_some_and(|message| message.contains(words));
        until(&format!("{} logs {words:?}", self.name), PATIENCE, async || Ok(self.events().into_iter().find(says))).await
    }

    /// Waits until it has stopped itself.
    ///
    /// # Errors
    /// It ended, or did not stop.
    pub async fn wait_frozen(&mut self) -> Result<(), DrillError> {
        let what = format!("{} stops itself", self.name);
        let process = &mut self.process;
        let frozen = until(&what, PATIENCE, async || {
            if process.is_stopped() {
                return Ok(Some(true));
            }
            Ok(process.ended()?.map(|_| false))
        });
        if !frozen.await? {
            return Err(self.went_wrong("ended instead of stopping itself"));
        }
        self.timeline.tell(&self.name, Mark::Freeze, "frozen (SIGSTOP): its renewals stop with it");
        Ok(())
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// It has ended.
    pub fn freeze(&mut self) -> Result<(), DrillError> {
        self.process.freeze()?;
        self.timeline.tell(&self.name, Mark::Freeze, "frozen (SIGSTOP)");
        Ok(())
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// It has ended.
    pub fn wake(&mut self) -> Result<(), DrillError> {
        self.timeline.tell(&self.name, Mark::Wake, "wakes up (SIGCONT) and goes on where it was");
        Ok(self.process.wake()?)
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// It has ended.
    pub fn kill(&mut self) -> Result<(), DrillError> {
        self.process.kill()?;
        self.timeline.tell(&self.name, Mark::Kill, "killed (SIGKILL)");
        Ok(())
    }

    /// Waits for its end: exit code (−1 for a signal) and what it printed.
    ///
    /// # Errors
    /// It does not end.
    pub async fn end(&mut self) -> Result<(i32, String), DrillError> {
        let what = format!("{} ends", self.name);
        let process = &mut self.process;
        let status = until(&what, PATIENCE, async || {
            // the kernel forgets it at the end, so the peak is noted on the way
            process.peak_rss_bytes();
            Ok(process.ended()?)
        });
        let status = status.await?;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let out = self.out.take().and_then(|reading| reading.join().ok()).unwrap_or_default();
        let code = status.code().unwrap_or(-1);
        let mark = if code == 0 { Mark::End } else { Mark::Kill };
        self.timeline.tell(&self.name, mark, format!("ended: {status}"));
        Ok((code, out))
    }

    /// Waits for its end with exit code 0, and reads the JSON it printed.
    ///
    /// # Errors
    /// It does not end so.
    pub async fn end_well<T: DeserializeOwned>(&mut self) -> Result<T, DrillError> {
        let (code, out) = self.end().await?;
        if code != 0 {
            return Err(self.went_wrong(&format!("ended with code {code}: {out}")));
        }
        Ok(serde_json::from_str(&out)?)
    }

    fn went_wrong(&self, what: &str) -> DrillError {
        let log = self.log();
        let tail = log[log.len().saturating_sub(12)..].join("\n");
        DrillError::Story(format!("{} {what}; the end of its log: {tail}", self.name))
    }
}

/// Reads a log as it is written: keeps every line, and tells those that matter.
fn follow(pipe: impl Read, name: &str, timeline: &Timeline, log: &Mutex<Vec<String>>) {
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        if let Some((mark, text)) = serde_json::from_str(&line).ok().as_ref().and_then(telling) {
            timeline.tell(name, mark, text);
        }
        log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// What is told of an event of a log: those of actors say themselves what they are.
fn telling(event: &Value) -> Option<(Mark, String)> {
    let message = event["message"].as_str()?;
    if let Ok(mark) = serde_json::from_value(event["mark"].clone()) {
        return Some((mark, message.to_owned()));
    }
    let marks = [
        // before the other, which it says of somebody else: "a newer holder has registered"
        ("fenced: a newer holder", Mark::Refused),
        ("registered", Mark::Holds),
        ("lost: stopped by its own deadline", Mark::Lost),
        ("not held any more", Mark::Lost),
        ("signalling this process", Mark::Note),
        ("hurting this process", Mark::Fault),
        ("a service is out", Mark::Note),
    ];
    let (_, mark) = marks.into_iter().find(|(words, _)| message.contains(words))?;
    let unit = event["unit"].as_i64().map(|unit| format!(", unit {unit}")).unwrap_or_default();
    let fence = event["fence"].as_str().map(|fence| format!(", fence {fence}")).unwrap_or_default();
    Some((mark, format!("{message}{unit}{fence}")))
}
