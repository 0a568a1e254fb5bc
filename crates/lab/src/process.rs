//! A child process one can freeze, wake, kill and measure.
//!
//! State and memory are read from `/proc`, see proc(5): reading does not take the exit status
//! away from the owner, as a `waitpid` in a second place would.

use std::{
    fs::{self, OpenOptions},
    io,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// How often a state is looked at while waiting for it.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A signal that stops a process acts within microseconds; a loaded machine takes longer.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Where a child's output goes.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// To our own.
    Inherit,
    /// Into pipes, which the owner takes from [`Process::child`].
    Piped,
    /// Appended to these two files, which may be one and the same.
    Files {
        /// Takes standard output.
        stdout: &'a Path,
        /// Takes standard error.
        stderr: &'a Path,
    },
}

/// A running child. Dropping it kills it with SIGKILL and reaps it, frozen or not.
#[derive(Debug)]
pub struct Process {
    program: String,
    child: Child,
    peak_rss_bytes: u64,
}

impl Process {
    /// Starts the command with no standard input and its output where `output` says.
    pub fn spawn(command: &mut Command, output: Output<'_>) -> Result<Self, Error> {
        match output {
            Output::Inherit => command.stdout(Stdio::inherit()).stderr(Stdio::inherit()),
            Output::Piped => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
            Output::Files { stdout, stderr } => command.stdout(appended(stdout)?).stderr(appended(stderr)?),
        };
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).spawn().map_err(Error::io(format!("starting {program}")))?;
        Ok(Self { program, child, peak_rss_bytes: 0 })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, to take its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// SIGSTOP; returns when the process has stopped.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.signal(Signal::STOP)?;
        self.wait_stopped(STOP_LIMIT)
    }

    /// SIGCONT: a frozen process goes on where it was.
    pub fn wake(&mut self) -> Result<(), Error> {
        self.signal(Signal::CONT)
    }

    /// SIGTERM: the process may finish in its own way. A frozen one does nothing until woken.
    pub fn terminate(&mut self) -> Result<(), Error> {
        self.signal(Signal::TERM)
    }

    /// SIGHUP: by convention, read the configuration again.
    pub fn hangup(&mut self) -> Result<(), Error> {
        self.signal(Signal::HUP)
    }

    /// SIGINT, as Ctrl-C sends it.
    pub fn interrupt(&mut self) -> Result<(), Error> {
        self.signal(Signal::INT)
    }

    /// SIGKILL, and waits for the end. The process gets no chance to do anything.
    pub fn kill(&mut self) -> Result<ExitStatus, Error> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map_err(Error::io(format!("killing {}", self.program)))
    }

    /// The exit status, when the process has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::io(format!("waiting for {}", self.program)))
    }

    /// Waits for the end, at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus, Error> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(self.late("gone", limit));
            }
            // the kernel forgets it at the end, so the peak is noted on the way
            self.peak_rss_bytes();
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until the process is stopped by a signal, its own or somebody else's.
    pub fn wait_stopped(&mut self, limit: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + limit;
        while !self.is_stopped() {
            if let Some(status) = self.ended()? {
                let output = String::new();
                return Err(Error::Ended { program: self.program.clone(), status, output });
            }
            if Instant::now() >= deadline {
                return Err(self.late("stopped", limit));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Whether the process is stopped by a signal at this moment.
    pub fn is_stopped(&self) -> bool {
        state(self.pid()) == Some('T')
    }

    /// The most resident memory the process ever had (`VmHWM`), in bytes, as last seen.
    ///
    /// The kernel drops the figure when the process ends: ask while it runs, or let
    /// [`Process::wait`] look on the way. 0 if it was never seen.
    pub fn peak_rss_bytes(&mut self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let seen = status.ok().as_deref().and_then(vm_hwm_bytes).unwrap_or(0);
        self.peak_rss_bytes = self.peak_rss_bytes.max(seen);
        self.peak_rss_bytes
    }

    /// Asks whether it has ended first: the id of a reaped child may belong to somebody else.
    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        if let Some(status) = self.ended()? {
            let output = String::new();
            return Err(Error::Ended { program: self.program.clone(), status, output });
        }
        send(self.pid(), signal).map_err(Error::io(format!("sending {signal:?} to {}", self.program)))
    }

    fn late(&self, state: &'static str, limit: Duration) -> Error {
        Error::Late { program: self.program.clone(), state, limit, output: String::new() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // already gone is as good
        let _ = self.kill();
    }
}

/// Sends a signal to one process by its id.
pub(crate) fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, signal)?)
}

/// The ids of the direct children of a process.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| stat(*pid).is_some_and(|(_, its_parent)| its_parent == parent))
        .collect()
}

/// The state letter of proc(5): `R`, `S`, `D`, `T` stopped, `Z` ended but not reaped.
pub(crate) fn state(pid: u32) -> Option<char> {
    stat(pid).map(|(state, _)| state)
}

/// A zombie that nobody has reaped yet is not alive.
pub(crate) fn is_alive(pid: u32) -> bool {
    !matches!(state(pid), None | Some('Z'))
}

/// State and parent. The program's name, in parentheses, may contain anything, hence the
/// search from the right.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// `VmHWM:     5120 kB`, where kB means 1,024 bytes.
fn vm_hwm_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn appended(path: &Path) -> Result<Stdio, Error> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map(Stdio::from).map_err(Error::io(format!("opening {}", path.display())))
}

/// The last lines of a captured output, for an error message.
pub(crate) fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::vm_hwm_bytes;

    #[test]
    fn the_peak_is_in_bytes() {
        assert_eq!(vm_hwm_bytes("VmPeak:\t 99 kB\nVmHWM:\t    5120 kB\n"), Some(5_242_880));
        assert_eq!(vm_hwm_bytes("State:\tZ (zombie)\n"), None);
    }
}
