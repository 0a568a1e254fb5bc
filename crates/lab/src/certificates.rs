//! Certificates for one server, made by `openssl`: an authority of its own, a server and a client it vouches for.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::Error;

/// Files in the folder of the server they were made for.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    pub(crate) fn make(home: &Path) -> Result<Self, Error> {
        let made = Self { folder: home.join("tls") };
        fs::create_dir(&made.folder).map_err(Error::io("creating a folder for certificates"))?;
        let extensions = made.folder.join("extensions");
        let text = "basicConstraints=critical,CA:FALSE\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n";
        fs::write(&extensions, text).map_err(Error::io("writing the extensions of a certificate"))?;
        made.openssl("req -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.crt")?;
        for who in ["server", "client"] {
            made.openssl(&format!("req -subj /CN={who} -keyout {who}.key -out {who}.csr"))?;
            made.openssl(&format!(
                "x509 -req -days 2 -in {who}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile extensions -out {who}.crt"
            ))?;
        }
        Ok(made)
    }

    /// Who vouches for the server.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// Whom the server believes.
    pub fn client_certificate(&self) -> PathBuf {
        self.folder.join("client.crt")
    }

    /// The key of [`Certificates::client_certificate`].
    pub fn client_key(&self) -> PathBuf {
        self.folder.join("client.key")
    }

    /// What the server shows.
    pub(crate) fn server_certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    /// The key of [`Certificates::server_certificate`].
    pub(crate) fn server_key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    fn openssl(&self, words: &str) -> Result<(), Error> {
        let mut command = Command::new("openssl");
        command.args(words.split(' ')).current_dir(&self.folder).stdin(Stdio::null());
        if words.starts_with("req") {
            command.args(["-newkey", "rsa:2048", "-nodes"]);
        }
        let output = command.output().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::Missing { what: "openssl", package: "openssl", looked: "PATH".into() },
            _ => Error::io("starting openssl")(error),
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Error::Ended { program: "openssl".into(), status: output.status, output: said })
    }
}
