//! Debian packages without installing them: `apt-get` resolves and downloads with folders of
//! its own, `dpkg-deb` unpacks. Needs no root, starts no service, changes nothing of the machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

/// Not unpacked, for they are large: the compiler of queries, which tests switch off, and what
/// only the machine's own clusters are managed with.
const UNUSED: [&str; 6] = ["libllvm", "libz3", "perl", "libperl", "locales", "libc-l10n"];

/// Replaces `target` by a tree of these packages and of what they need and the machine lacks.
pub(crate) fn bring(packages: &[&str], target: &Path) -> anyhow::Result<()> {
    let by_hand = || format!("cannot fetch {}: install it yourself, by the name your system has for it", packages.join(", "));
    ensure!(Path::new("/usr/bin/apt-get").exists(), "{} (only apt-get is known here)", by_hand());
    let parent = target.parent().context("the tree needs a folder around it")?;
    fs::create_dir_all(parent)?;
    // beside the target: a tree is moved into place whole, or not at all
    let work = tempfile::Builder::new().prefix("servers-").tempdir_in(parent)?;
    let archives = download(packages, work.path()).with_context(by_hand)?;
    let tree = work.path().join("tree");
    unpack(&archives, &tree)?;
    if target.exists() {
        fs::remove_dir_all(target).with_context(|| format!("removing {}", target.display()))?;
    }
    fs::rename(&tree, target).with_context(|| format!("moving the tree to {}", target.display()))
}

/// With the machine's package lists if it has any and they are fresh enough, else with
/// private ones.
fn download(packages: &[&str], work: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let machines = Apt::new(work, Path::new("/var/lib/apt/lists"))?;
    if machines.has_lists() {
        match machines.download(packages) {
            Ok(archives) => return Ok(archives),
            Err(error) => println!("the machine's package lists do not do: {error:#}"),
        }
    }
    println!("fetching package lists");
    let private = Apt::new(work, &work.join("lists"))?;
    // a third party's broken source is no reason to stop: what counts is the download
    if let Err(error) = private.get(&["update"]) {
        println!("{error:#}");
    }
    private.download(packages)
}

fn unpack(archives: &[PathBuf], tree: &Path) -> anyhow::Result<()> {
    for archive in archives {
        let file = archive.file_name().unwrap_or_default().to_string_lossy();
        if UNUSED.iter().any(|unused| file.starts_with(unused)) {
            continue;
        }
        println!("unpacking {file}");
        output(Command::new("dpkg-deb").arg("-x").arg(archive).arg(tree))?;
    }
    Ok(())
}

/// apt with a configuration of its own.
struct Apt {
    conf: PathBuf,
    lists: PathBuf,
    archives: PathBuf,
}

impl Apt {
    fn new(work: &Path, lists: &Path) -> anyhow::Result<Self> {
        let (conf, archives) = (work.join("apt.conf"), work.join("archives"));
        if archives.exists() {
            // half of an attempt with other lists, so perhaps other versions
            fs::remove_dir_all(&archives)?;
        }
        fs::create_dir_all(archives.join("partial"))?;
        if lists.starts_with(work) {
            fs::create_dir_all(lists.join("partial"))?;
        }
        let text = configuration(&work.display().to_string(), &lists.display().to_string());
        fs::write(&conf, text).with_context(|| format!("writing {}", conf.display()))?;
        Ok(Self { conf, lists: lists.to_path_buf(), archives })
    }

    fn has_lists(&self) -> bool {
        let entries = fs::read_dir(&self.lists).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
    }

    fn download(&self, packages: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
        let mut real = Vec::new();
        for package in packages {
            real.extend(self.real(package)?);
        }
        println!("fetching {} and what they need", real.join(", "));
        // what is installed too: asked for is asked for
        let mut args = vec!["install", "--download-only", "--reinstall", "--no-remove"];
        args.extend(real.iter().map(String::as_str));
        self.get(&args)?;
        let files = fs::read_dir(&self.archives)?.flatten().map(|entry| entry.path());
        Ok(files.filter(|file| file.extension().is_some_and(|end| end == "deb")).collect())
    }

    fn real(&self, package: &str) -> anyhow::Result<Vec<String>> {
        let depends = output(Command::new("apt-cache").arg("-c").arg(&self.conf).args(["depends", package]))?;
        Ok(behind(package, &depends))
    }

    fn get(&self, args: &[&str]) -> anyhow::Result<String> {
        output(Command::new("apt-get").arg("-c").arg(&self.conf).args(["-qq", "--yes"]).args(args))
    }
}

/// `postgresql` is an empty package that depends on `postgresql-15`: meant are that one and its
/// client. Any other package is its own.
fn behind(package: &str, depends: &str) -> Vec<String> {
    let version = depends.lines().find_map(|line| {
        let version = line.trim().strip_prefix("Depends: ")?.strip_prefix(package)?.strip_prefix('-')?;
        version.parse::<u32>().ok()
    });
    match version {
        Some(version) => vec![format!("{package}-{version}"), format!("{package}-client-{version}")],
        None => vec![package.to_owned()],
    }
}

/// Read after the machine's own configuration, see apt.conf(5).
fn configuration(work: &str, lists: &str) -> String {
    format!(
        r#"Dir::State::Lists "{lists}";
Dir::Cache "{work}";
Dir::Cache::Archives "{work}/archives";
// nothing of the machine is written, so nothing needs its locks
Debug::NoLocking "1";
// root would become a user who may not enter this folder
APT::Sandbox::User "";
APT::Install-Recommends "0";
// the machine's hooks tidy up and index what is the machine's
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"#
    )
}

/// What a command printed, or an error with its last words.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive").stdin(std::process::Stdio::null());
    let output = command.output().with_context(|| format!("starting {program}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{program} ended with {}: {}", output.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::behind;

    #[test]
    fn a_metapackage_means_what_it_depends_on() {
        let depends = "postgresql\n  Depends: postgresql-15\n  Suggests: postgresql-doc\n";
        assert_eq!(behind("postgresql", depends), ["postgresql-15", "postgresql-client-15"]);
        assert_eq!(behind("libfaketime", "libfaketime\n  Depends: libc6\n"), ["libfaketime"]);
    }
}
