//! A process that stops itself, and the tiny one that wakes it.
//!
//! A frozen process cannot wake itself, so a second process of this program is started first. It says on its standard output that it is
//! watching; only then does the first one stop. It waits until the other is really stopped, sleeps the span, sends SIGCONT, and ends.
//! Where anything about it fails there is no freeze: nobody would end it. See signal(7), pidfd_open(2).

use rustix::process::{Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open, pidfd_send_signal};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Error, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

/// What the helper says when it watches.
const WATCHING: &str = "watching";
/// How often the helper looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A stop takes effect within microseconds, except for a thread that waits for a disk.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Until a thread that has sent a stop to its process is surely stopped, on a busy machine too: kill(2) may return before. Over by
/// the time it goes on.
const STOP_TAKES: Duration = Duration::from_millis(100);

/// Freezes this process.
pub(super) struct Freezer {
    program: OsString,
    /// A second freeze at the same time would be ended by the first one's helper.
    alone: Mutex<()>,
}

impl Freezer {
    /// The helper is the running program, whatever is at its path by now.
    pub(super) fn of_this_program() -> Freezer {
        Freezer { program: "/proc/self/exe".into(), alone: Mutex::new(()) }
    }

    /// Stops this process for `span`; returns when it goes on, with the helper gone.
    ///
    /// # Errors
    /// There is no helper: nothing was stopped.
    pub(super) fn freeze(&self, span: Duration) -> Result<(), Error> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let mut helper = self.helper(span)?;
        let stopped = said_it_watches(&mut helper).and_then(|()| Ok(kill_process(getpid(), Signal::STOP)?));
        if stopped.is_err() {
            let _ = helper.kill();
        }
        // it ends after it has woken us; to wait for it is to be stopped here, and to leave no zombie
        let ended = helper.wait();
        stopped?;
        match ended? {
            status if status.success() => Ok(()),
            status => Err(Error::other(format!("the helper that was to wake this process ended with {status}"))),
        }
    }

    fn helper(&self, span: Duration) -> Result<Child, Error> {
        let mut command = Command::new(&self.program);
        command.arg("wake-frozen").arg(getpid().as_raw_nonzero().to_string()).arg(span.as_millis().to_string());
        // a Ctrl-C at the terminal is for us
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }
}

fn said_it_watches(helper: &mut Child) -> Result<(), Error> {
    let pipe = helper.stdout.take().ok_or_else(|| Error::other("the helper has no output"))?;
    let mut line = String::new();
    BufReader::new(pipe).read_line(&mut line)?;
    match line.trim_end() {
        WATCHING => Ok(()),
        "" => Err(Error::other("the helper ended at once")),
        why => Err(Error::other(format!("the helper says: {why}"))),
    }
}

/// Stops this process until somebody wakes it.
///
/// # Errors
/// The signal cannot be sent.
pub(super) fn stop() -> Result<(), Error> {
    kill_process(getpid(), Signal::STOP)?;
    std::thread::sleep(STOP_TAKES);
    Ok(())
}

/// The helper: wakes the process that started it, `parent`, when it has been stopped for `span`. Ends by itself where that one ends, and
/// wakes it early when asked to end.
///
/// # Errors
/// The process cannot be watched, which is said on standard output too, or did not stop.
pub async fn wake_frozen(parent: i32, span: Duration) -> Result<(), Error> {
    let watched = Watched::open(parent);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", watched.as_ref().map_or_else(ToString::to_string, |_| WATCHING.to_owned()))?;
    out.flush()?;
    drop(out);
    let watched = watched?;
    // whatever ends a process politely; SIGKILL leaves nobody to wake the other
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (mut hangup, mut quit) = (signal(SignalKind::hangup())?, signal(SignalKind::quit())?);
    let woken = tokio::select! {
        stopped = watched.stopped(span) => stopped,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        _ = hangup.recv() => Ok(()),
        _ = quit.recv() => Ok(()),
    };
    if watched.is_there() {
        pidfd_send_signal(&watched.handle, Signal::CONT)?;
    }
    woken
}

/// The process that started this one. As long as it is our parent it lives, and the handle means it and no later one with its id.
struct Watched {
    pid: Pid,
    handle: OwnedFd,
}

impl Watched {
    fn open(parent: i32) -> Result<Watched, Error> {
        let pid = Pid::from_raw(parent).ok_or_else(|| Error::other(format!("{parent} is no process")))?;
        let watched = Watched { pid, handle: pidfd_open(pid, PidfdFlags::empty())? };
        if !watched.is_there() {
            return Err(Error::other(format!("process {parent} did not start this one, or has ended")));
        }
        let own = getpid().as_raw_nonzero().to_string();
        if std::fs::read_link("/proc/self")?.as_os_str() != own.as_str() {
            return Err(Error::other("/proc shows other processes than ours: it belongs to another PID namespace"));
        }
        Ok(watched)
    }

    fn is_there(&self) -> bool {
        getppid() == Some(self.pid)
    }

    /// Resolves when it has been stopped for `span`, or has ended.
    async fn stopped(&self, span: Duration) -> Result<(), Error> {
        let limit = Instant::now() + STOP_LIMIT;
        while self.is_there() && !self.is_stopped() {
            if Instant::now() > limit {
                return Err(Error::other(format!("process {} did not stop", self.pid.as_raw_nonzero())));
            }
            sleep(LOOK_EVERY).await;
        }
        let until = Instant::now() + span;
        while self.is_there() && Instant::now() < until {
            sleep(LOOK_EVERY.max(Duration::from_millis(50)).min(until - Instant::now())).await;
        }
        Ok(())
    }

    /// Every thread, not only the first: they stop one by one.
    fn is_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_nonzero()));
        let mut tasks = tasks.into_iter().flatten().flatten().peekable();
        tasks.peek().is_some()
            && tasks.all(|task| std::fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| is_stopped(&stat)))
    }
}

/// The third field of proc_pid_stat(5); the second, in parentheses, may contain anything.
fn is_stopped(stat: &str) -> bool {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn freezer(program: &str) -> Freezer {
        Freezer { program: program.into(), alone: Mutex::new(()) }
    }

    /// This very test would never end otherwise.
    #[test]
    fn nobody_is_frozen_whom_nobody_would_wake() {
        for (program, told) in
            [("/nowhere/settled", "No such file"), ("/bin/true", "ended at once"), ("/bin/echo", "wake-frozen")]
        {
            let error = freezer(program).freeze(Duration::from_secs(3_600)).expect_err(program);
            assert!(error.to_string().contains(told), "{program}: {error}");
        }
    }

    #[test]
    fn a_name_with_a_parenthesis_is_no_state() {
        assert!(is_stopped("7 (a) T (b) T 1 7"));
        assert!(!is_stopped("7 (a) T 1) S 1 7"));
        assert!(!is_stopped(""));
    }

    #[tokio::test]
    async fn only_its_own_parent_is_watched() {
        let own = getpid().as_raw_nonzero().get();
        let error = wake_frozen(own, Duration::ZERO).await.expect_err("we did not start ourselves");
        assert!(error.to_string().contains("did not start this one"), "{error}");
        assert!(wake_frozen(0, Duration::ZERO).await.is_err());
    }
}
