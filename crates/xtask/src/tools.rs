//! `cargo xtask tools`: brings the programs of Debian that `.ci/deploy` checks the deployment files with.

use std::{path::Path, process::ExitCode};

use anyhow::ensure;
use lab::servers_dir;

use crate::apt;

/// A program by its path in a Debian system, and its package.
const TOOLS: [(&str, &str); 3] =
    [("usr/bin/promtool", "prometheus"), ("usr/bin/kubectl", "kubernetes-client"), ("usr/bin/systemd-analyze", "systemd")];

/// Unpacks them below `target/tools/debian`, unless they are there; nothing of the machine is used, so that everybody checks with the
/// same versions.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let tree = servers_dir().with_file_name("tools").join("debian");
    if missing(&tree).is_some() {
        apt::bring(&TOOLS.map(|(_, package)| package), &tree)?;
    }
    let missing = missing(&tree);
    ensure!(missing.is_none(), "{} is in none of the packages just unpacked", missing.unwrap_or_default());
    println!("{}", tree.display());
    Ok(ExitCode::SUCCESS)
}

fn missing(tree: &Path) -> Option<&'static str> {
    TOOLS.iter().map(|(program, _)| *program).find(|program| !tree.join(program).exists())
}
