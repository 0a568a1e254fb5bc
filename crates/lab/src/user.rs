//! The user a server runs as. PostgreSQL refuses to run as root, and containers usually are.

use std::{
    fs, io,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

use crate::Error;

/// The ids of another user, when this process is root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// `postgres` if the machine has that user, else `nobody`; `None` when this process is
    /// not root and the server can simply run as we do.
    pub(crate) fn for_servers() -> Result<Option<Self>, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").map_err(Error::io("reading /etc/passwd"))?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| Self::in_passwd(&passwd, name))
            .map(Some)
            .ok_or_else(|| Error::io("looking for the user postgres or nobody in /etc/passwd")(io::ErrorKind::NotFound.into()))
    }

    /// A line is `name:password:uid:gid:…`, see passwd(5).
    fn in_passwd(passwd: &str, name: &str) -> Option<Self> {
        let fields =
            passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields.first() == Some(&name))?;
        Some(Self { uid: fields.get(2)?.parse().ok()?, gid: fields.get(3)?.parse().ok()? })
    }

    /// Makes the command run as this user, without root's other groups.
    pub(crate) fn apply(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives the folder itself (not what is in it) to this user.
    pub(crate) fn own(self, folder: &Path) -> Result<(), Error> {
        chown(folder, Some(self.uid), Some(self.gid))
            .map_err(Error::io(format!("giving {} to the server's user", folder.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::User;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0::/root:/bin/sh\nnobody2:x:7:7::/:/bin/sh\nnobody:x:65534:65533::/:/bin/false\n";
        let nobody = User::in_passwd(passwd, "nobody").expect("nobody");
        assert_eq!((nobody.uid, nobody.gid), (65534, 65533));
        assert!(User::in_passwd(passwd, "postgres").is_none());
    }
}
