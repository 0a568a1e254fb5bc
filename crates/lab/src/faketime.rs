//! A child whose clock is wrong, or is set while it runs, by way of libfaketime.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

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
    command
        .env("LD_PRELOAD", library()?)
        .env("FAKETIME", offset)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        // file times stay real
        .env("NO_FAKE_STAT", "1");
    Ok(())
}

/// The wall clock of a child that is set while it runs. Read anew at every look at the clock, so a step is seen at once.
///
/// Works for one child or several, which then share the clock. The monotonic clocks stay, as when an administrator or NTP sets
/// the time of a machine.
#[derive(Debug, Clone)]
pub struct SteppedClock {
    file: PathBuf,
}

impl SteppedClock {
    /// Right at first. Its file is kept in `folder`, which must outlive the child.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let clock = Self { file: folder.join("clock") };
        clock.set("+0")?;
        Ok(clock)
    }

    /// Makes this the clock of a command.
    ///
    /// libc comes second in the list although it is loaded anyway: its `malloc` is then found before that of an allocator the
    /// program brings, whose start reads the clock, which allocates, and never comes back (Redis with jemalloc).
    pub fn apply(&self, command: &mut Command) -> Result<(), Error> {
        command
            .env("LD_PRELOAD", format!("{} libc.so.6", library()?.display()))
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1");
        Ok(())
    }

    /// From now on the clock is off by so much, for instance `"+60s"`, see faketime(1).
    pub fn set(&self, offset: &str) -> Result<(), Error> {
        // renamed into place: a reader never sees half of it
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{offset}\n"))
            .and_then(|()| fs::rename(&new, &self.file))
            .map_err(Error::io(format!("setting the clock {}", self.file.display())))
    }
}

fn below(root: &Path) -> Option<PathBuf> {
    let triplets = fs::read_dir(root.join("usr/lib")).ok()?.flatten();
    let folders = triplets.map(|entry| entry.path().join("faketime"));
    folders
        .flat_map(|folder| ["libfaketimeMT.so.1", "libfaketime.so.1"].map(|file| folder.join(file)))
        .find(|library| library.is_file())
}
