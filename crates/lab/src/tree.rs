//! Copies of what `cargo xtask servers` unpacked, for a server's user who cannot get at it, as in a checkout below `/root`.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use crate::Error;

/// Copies these folders of a tree to another place, those that are there.
pub(crate) fn copy(root: &Path, folders: &[&str], to: &Path) -> Result<(), Error> {
    for below in folders.iter().filter(|below| root.join(below).is_dir()) {
        let from = root.join(below);
        link(&from, &to.join(below)).map_err(Error::io(format!("copying {}", from.display())))?;
    }
    Ok(())
}

/// Whether the command, as it is, can be run by its user.
pub(crate) fn is_reachable(probe: &mut Command) -> bool {
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Hard links where the file system allows it: a tree is large, a link costs nothing.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from)? {
        let (source, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let target = to.join(source.file_name().unwrap_or_default());
        if kind.is_dir() {
            link(&source, &target)?;
        } else if source.exists() && fs::hard_link(&source, &target).is_err() {
            // a link to a link is refused by some file systems, across two it always is
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
