//! The files of TLS. Needs `error.rs`.
//!
//! They are looked at when a connector is made, so that a wrong path is an error of the configuration; and read again at every connection,
//! so that renewed certificates are taken. A file that cannot be read then is being renewed: an outage like another, which is waited out.

use crate::LeaseError;
use std::io::ErrorKind;
use std::path::Path;

/// Whether the file is there and has something of PEM in it.
///
/// # Errors
/// [`LeaseError::Invalid`].
pub(crate) fn check(service: &str, file: &Path) -> Result<(), LeaseError> {
    let found = std::fs::read(file).and_then(|bytes| {
        let begins = bytes.windows(11).any(|window| window == b"-----BEGIN ");
        if begins { Ok(()) } else { Err(std::io::Error::new(ErrorKind::InvalidData, "nothing in it is PEM")) }
    });
    found.map_err(|error| LeaseError::Invalid {
        what: format!("the certificate file {} for {service}: {error}; name a PEM file that this user can read", file.display()),
    })
}

/// Its bytes, now.
///
/// # Errors
/// [`LeaseError::Unavailable`].
pub(crate) async fn read(service: &str, file: &Path) -> Result<Vec<u8>, LeaseError> {
    tokio::fs::read(file).await.map_err(|source| LeaseError::Unavailable {
        what: format!("{service}, certificate file {}", file.display()),
        doing: "connect",
        source: Box::new(source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn wrong_at_the_start_is_invalid_and_later_an_outage() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        assert!(matches!(check("etcd", &file), Err(LeaseError::Invalid { .. })));
        std::fs::write(&file, "no certificate").expect("a file");
        assert!(matches!(check("etcd", &file), Err(LeaseError::Invalid { .. })));
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----").expect("a file");
        assert!(check("etcd", &file).is_ok());
        assert!(read("etcd", &file).await.is_ok());
        std::fs::remove_file(&file).expect("renewed just now");
        assert!(matches!(read("etcd", &file).await, Err(LeaseError::Unavailable { .. })));
    }
}
