//! A child whose clock is wrong, or is set while it runs, by way of libfaketime.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use tempfile::NamedTempFile;

use crate::{Error, servers_dir};

/// The library to preload, or [`Error::Missing`].
///
/// Debian has two: `libfaketime.so.1`, and `libfaketimeMT.so.1`, which locks its state and is
/// the one for programs with threads. The latter is taken where it is there.
pub fn library() -> Result<PathBuf, Error> {
    [PathBuf::from("/"), servers_dir()].iter().find_map(|root| below(root)).ok_or_else(|| Error::Missing {
        what: "libfaketime.so.1",
        package: "libfaketime",
        looked: "/usr/lib/*/faketime, target/servers".into(),
    })
}

/// Shifts the wall clock of a command, for instance by `"+180s"` or `"-3m"`, see faketime(1).
///
/// The monotonic clocks stay: a wrong clock is an offset, time still passes.
pub fn shift(command: &mut Command, offset: &str) -> Result<(), Error> {
    preload(command)?.env("FAKETIME", offset);
    Ok(())
}

fn preload(command: &mut Command) -> Result<&mut Command, Error> {
    Ok(command
        .env("LD_PRELOAD", library()?)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        // file times stay real
        .env("NO_FAKE_STAT", "1"))
}

/// A wall clock that is set forward while the programs that have it run. Right at first.
#[derive(Debug, Clone)]
pub struct SteppedClock {
    /// Holds the offset. libfaketime reads it again at every look at the clock.
    file: Arc<NamedTempFile>,
}

impl SteppedClock {
    /// A right one.
    pub fn new() -> Result<Self, Error> {
        library()?;
        let file = NamedTempFile::new().map_err(Error::io("creating a file for a clock"))?;
        let clock = Self { file: Arc::new(file) };
        clock.forward(Duration::ZERO)?;
        Ok(clock)
    }

    /// Makes it the clock of a command, or of several, which then share it.
    ///
    /// libc comes second in the list although it is loaded anyway: its `malloc` is then found before that of an allocator the
    /// program brings, whose start reads the clock, which allocates, and never comes back (Redis with jemalloc).
    pub fn give(&self, command: &mut Command) -> Result<(), Error> {
        let preloaded = format!("{} libc.so.6", library()?.display());
        preload(command)?.env("LD_PRELOAD", preloaded).env("FAKETIME_TIMESTAMP_FILE", self.file.path());
        command.env("FAKETIME_NO_CACHE", "1").env_remove("FAKETIME");
        Ok(())
    }

    /// From now on it is so far ahead of the machine's.
    pub fn forward(&self, by: Duration) -> Result<(), Error> {
        self.set(&format!("+{}s", by.as_secs()))
    }

    /// From now on it is off by so much, for instance `"-60s"`, see faketime(1).
    pub fn set(&self, offset: &str) -> Result<(), Error> {
        // into place whole: who reads it at this instant must not find it empty
        let next = self.file.path().with_extension("next");
        fs::write(&next, format!("{offset}\n"))
            .and_then(|()| readable(&next))
            .and_then(|()| fs::rename(&next, self.file.path()))
            .map_err(Error::io("setting a clock"))
    }
}

/// To everyone: servers run as another user.
fn readable(file: &Path) -> std::io::Result<()> {
    fs::set_permissions(file, fs::Permissions::from_mode(0o644))
}

fn below(root: &Path) -> Option<PathBuf> {
    let triplets = fs::read_dir(root.join("usr/lib")).ok()?.flatten();
    let folders = triplets.map(|entry| entry.path().join("faketime"));
    folders
        .flat_map(|folder| ["libfaketimeMT.so.1", "libfaketime.so.1"].map(|file| folder.join(file)))
        .find(|library| library.is_file())
}
