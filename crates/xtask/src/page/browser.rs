//! The browser: Debian's headless Chromium, unpacked below `target/tools`; nothing of the machine is used, so that everybody looks
//! with the same version and at the same letters.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use lab::servers_dir;

use crate::apt;

const PACKAGE: &str = "chromium-headless-shell";
const PROGRAM: &str = "usr/lib/chromium/chromium-headless-shell";
/// Where the letters are that come with it.
const FONTS: &str = "usr/share/fonts";

/// A tree with the browser and its libraries.
#[derive(Debug)]
pub(crate) struct Browser {
    tree: PathBuf,
}

/// The one that is there, or a fresh one.
pub(crate) fn find() -> anyhow::Result<Browser> {
    let tree = servers_dir().with_file_name("tools").join("browser");
    if !tree.join(PROGRAM).exists() {
        // asked for by name, or a machine that has fonts would not unpack any
        apt::bring(&[PACKAGE, "fonts-dejavu-core", "fontconfig-config"], &tree)?;
    }
    ensure!(tree.join(PROGRAM).exists(), "{PROGRAM} is in none of the packages just unpacked");
    Ok(Browser { tree })
}

impl Browser {
    /// Told over its standard input and output, one file for each direction; its profile is in a folder of its own.
    pub(crate) fn command(&self, profile: &Path) -> anyhow::Result<Command> {
        let fonts = profile.join("fonts.conf");
        fs::write(&fonts, self.fonts(profile)).with_context(|| format!("writing {}", fonts.display()))?;
        // the protocol is on the file descriptors 3 and 4, which only a shell can give without unsafe code
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#, "sh"]).arg(self.tree.join(PROGRAM));
        command.arg(format!("--user-data-dir={}", profile.display()));
        // root has no sandbox; and nothing is to be asked of anybody
        command.args(["--remote-debugging-pipe", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.args(["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"]);
        command.args(["--disable-sync", "--hide-scrollbars", "about:blank"]);
        command.env("LD_LIBRARY_PATH", self.libraries()?).env("FONTCONFIG_FILE", fonts).env("HOME", profile);
        Ok(command)
    }

    /// Every folder of libraries in the tree: some are below the one of the machine's kind.
    fn libraries(&self) -> anyhow::Result<String> {
        let mut folders = vec![self.tree.join("usr/lib/chromium")];
        for below in ["usr/lib", "lib"].map(|folder| self.tree.join(folder)) {
            let kinds = fs::read_dir(&below).into_iter().flatten().flatten().map(|entry| entry.path());
            for kind in kinds.filter(|kind| kind.to_string_lossy().ends_with("-linux-gnu")) {
                let below = fs::read_dir(&kind)?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
                folders.extend(below);
                folders.push(kind);
            }
        }
        Ok(folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":"))
    }

    fn fonts(&self, profile: &Path) -> String {
        let (fonts, cache) = (self.tree.join(FONTS), profile.join("fontcache"));
        format!("<fontconfig><dir>{}</dir><cachedir>{}</cachedir></fontconfig>\n", fonts.display(), cache.display())
    }
}
