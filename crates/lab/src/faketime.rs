//! A child whose clock is wrong, by way of libfaketime.

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

fn below(root: &Path) -> Option<PathBuf> {
    let triplets = fs::read_dir(root.join("usr/lib")).ok()?.flatten();
    let folders = triplets.map(|entry| entry.path().join("faketime"));
    folders
        .flat_map(|folder| ["libfaketimeMT.so.1", "libfaketime.so.1"].map(|file| folder.join(file)))
        .find(|library| library.is_file())
}
