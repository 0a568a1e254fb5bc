//! The copy that is broken.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use lab::servers_dir;

use super::table::Mutation;

/// A copy of what git knows of, changes included.
pub(super) struct Tree {
    root: PathBuf,
}

/// A mutation in force. Dropped, it is taken back.
pub(super) struct Applied {
    file: PathBuf,
    original: String,
}

impl Tree {
    /// Writes only what differs, so that cargo builds only what differs.
    pub(super) fn copy() -> anyhow::Result<Self> {
        let target = servers_dir().parent().context("target/servers has a parent")?.to_owned();
        let from = target.parent().context("target has a parent")?;
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(from).output().context("starting git")?;
        ensure!(listed.status.success(), "git does not list the files of {}", from.display());
        let root = target.join("mutants/tree");
        for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            // deleted, and git has not been told yet
            let Ok(content) = fs::read(from.join(name)) else { continue };
            write_if_changed(&root.join(name), &content)?;
            // .cargo/protoc is a program
            fs::set_permissions(root.join(name), fs::metadata(from.join(name))?.permissions())?;
        }
        link(&root, &target)?;
        Ok(Self { root })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A target folder for all of it, so that what is not broken is built once.
    pub(super) fn target(&self) -> PathBuf {
        self.root.with_file_name("build")
    }

    pub(super) fn apply(&self, mutation: &Mutation) -> anyhow::Result<Applied> {
        let file = self.root.join(&mutation.file);
        let original = fs::read_to_string(&file).with_context(|| format!("{}: {}", mutation.name, mutation.file))?;
        let times = original.matches(&mutation.find).count();
        ensure!(times == 1, "{}: what it looks for is {times} times in {}", mutation.name, mutation.file);
        fs::write(&file, original.replace(&mutation.find, &mutation.replace))?;
        Ok(Applied { file, original })
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.file, &self.original) {
            eprintln!("{} stays broken: {error}", self.file.display());
        }
    }
}

fn write_if_changed(to: &Path, content: &[u8]) -> anyhow::Result<()> {
    if fs::read(to).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::write(to, content).with_context(|| format!("writing {}", to.display()))
}

/// What was brought for tests is looked for in the target folder of the copy.
fn link(root: &Path, target: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(root.join("target"))?;
    let (brought, link) = (target.join("servers"), root.join("target/servers"));
    if brought.exists() && !link.exists() {
        std::os::unix::fs::symlink(brought, link).context("linking the servers")?;
    }
    Ok(())
}
