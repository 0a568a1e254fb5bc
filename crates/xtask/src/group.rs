//! A child with all its descendants, ended together.

use std::{
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::{consts, flag};

/// The signals that ask us to end, noted instead of obeyed, so that what we started is
/// stopped first.
pub(crate) struct Signals {
    noted: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let signals = [(Signal::INT, consts::SIGINT), (Signal::TERM, consts::SIGTERM), (Signal::HUP, consts::SIGHUP)];
        let mut noted = Vec::new();
        for (signal, number) in signals {
            let arrived = Arc::new(AtomicBool::new(false));
            flag::register(number, Arc::clone(&arrived)).context("listening for Ctrl-C")?;
            noted.push((signal, arrived));
        }
        Ok(Self { noted })
    }

    /// Runs the command to its end and returns its exit code, 128 + n for a death by signal n
    /// as a shell has it.
    ///
    /// The command gets a process group of its own: a terminal sends Ctrl-C to every process
    /// of ours, an init sends SIGTERM to us alone, and in either case it is passed on once, to
    /// cargo and to the tests it started.
    pub(crate) fn run(&self, command: &mut Command) -> anyhow::Result<ExitCode> {
        let mut child = command.process_group(0).spawn().context("starting cargo")?;
        loop {
            self.pass_on(&child);
            if let Some(status) = child.try_wait().context("waiting for cargo")? {
                let code = status.code().or_else(|| status.signal().map(|number| 128 + number));
                return Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn pass_on(&self, child: &Child) {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        for (signal, arrived) in &self.noted {
            if arrived.swap(false, Ordering::Relaxed)
                && let Some(group) = group
            {
                // a group that has just ended is as good
                let _ = kill_process_group(group, *signal);
            }
        }
    }
}
