//! Where an etcd is and how we show who we are. Needs nothing of its neighbours.

use crate::{LeaseError, pem};
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use std::path::PathBuf;
use std::time::Duration;

/// etcd ends connections that ping more often than every five seconds.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_LIMIT: Duration = Duration::from_secs(5);

/// How to reach one etcd cluster.
#[derive(Clone)]
pub struct EtcdOptions {
    /// Its members, as `host:port`, `http://host:port` or `https://host:port`. Any that can be reached will do.
    pub endpoints: Vec<String>,
    /// What every key begins with. Programs that are to exclude each other use the same.
    pub prefix: String,
    /// User and password, where etcd has users.
    pub user: Option<(String, String)>,
    /// PEM file with the authorities that may sign the members' certificates; those of the system where nothing is said.
    pub ca_file: Option<PathBuf>,
    /// PEM files with a certificate of ours and its key, where etcd asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// How long to look for a member that answers.
    pub connect_timeout: Duration,
}

impl EtcdOptions {
    /// What keys begin with where nothing is said.
    pub const PREFIX: &'static str = "settled/";

    /// Members without users and without TLS.
    #[must_use]
    pub fn new(endpoints: Vec<String>) -> EtcdOptions {
        let (prefix, connect_timeout) = (Self::PREFIX.to_owned(), Duration::from_secs(5));
        EtcdOptions { endpoints, prefix, user: None, ca_file: None, certificate: None, connect_timeout }
    }

    pub(super) fn validate(&self) -> Result<(), LeaseError> {
        let refuse = |what: String| Err(LeaseError::Invalid { what });
        if self.endpoints.is_empty() {
            return refuse("etcd has no endpoints; name at least one as host:port".to_owned());
        }
        for endpoint in &self.endpoints {
            // an endpoint is shown in errors, and in this one it may hold a password
            if endpoint.contains('@') {
                return refuse("an etcd endpoint has an @; give user and password apart from it".to_owned());
            }
            if !is_usable(endpoint) {
                return refuse(format!(
                    "{endpoint:?} is no etcd endpoint; write host:port, http://host:port or https://host:port"
                ));
            }
            if self.has_tls_files() && endpoint.starts_with("http://") {
                return refuse(format!(
                    "etcd endpoint {endpoint} is without TLS, but certificates are given; write https://, or leave them out"
                ));
            }
        }
        let with_tls = self.endpoints.iter().filter(|endpoint| endpoint.starts_with("https://")).count();
        if with_tls > 0 && with_tls < self.endpoints.len() {
            return refuse(
                "some etcd endpoints begin with https:// and some do not; write it before all of them, or none".to_owned(),
            );
        }
        if !self.prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse(format!("the etcd prefix {:?} is not of visible ASCII characters without spaces", self.prefix));
        }
        let of_us = self.certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.ca_file.iter().chain(of_us).try_for_each(|file| pem::check("etcd", file))
    }

    fn has_tls_files(&self) -> bool {
        self.ca_file.is_some() || self.certificate.is_some()
    }

    /// Read at every connection, so that renewed certificates are taken.
    pub(super) async fn for_connecting(&self) -> Result<ConnectOptions, LeaseError> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.connect_timeout)
            .with_keep_alive(PING_EVERY, PING_LIMIT)
            // a member that has lost its leader refuses to answer, and ends its streams instead of falling silent
            .with_require_leader(true);
        if let Some((user, password)) = &self.user {
            options = options.with_user(user, password);
        }
        if self.has_tls_files() || self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")) {
            options = options.with_tls(self.tls().await?);
        }
        Ok(options)
    }

    async fn tls(&self) -> Result<TlsOptions, LeaseError> {
        let mut tls = TlsOptions::new();
        tls = match &self.ca_file {
            Some(file) => tls.ca_certificate(Certificate::from_pem(pem::read("etcd", file).await?)),
            None => tls.with_native_roots(),
        };
        if let Some((certificate, key)) = &self.certificate {
            tls = tls.identity(Identity::from_pem(pem::read("etcd", certificate).await?, pem::read("etcd", key).await?));
        }
        Ok(tls)
    }
}

/// A host and a port, which has no default here: the driver's would be that of the web.
fn is_usable(endpoint: &str) -> bool {
    let place = ["http://", "https://"].iter().find_map(|scheme| endpoint.strip_prefix(scheme)).unwrap_or(endpoint);
    let Some((host, port)) = place.rsplit_once(':') else { return false };
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_name = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    (is_address || is_name) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

impl std::fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("user", &self.user.as_ref().map(|(user, _)| user))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoint: &str) -> EtcdOptions {
        EtcdOptions::new(vec![endpoint.to_owned()])
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let tls = EtcdOptions { ca_file: Some("ca.pem".into()), ..options("http://db:2379") };
        let prefix = EtcdOptions { prefix: "a b".to_owned(), ..options("db:2379") };
        for broken in [EtcdOptions::new(Vec::new()), options(""), options("a b:1"), tls, prefix] {
            assert!(matches!(broken.validate(), Err(LeaseError::Invalid { .. })), "{broken:?}");
        }
        for endpoint in ["db", "db:", "db:99999", "db:0", ":2379", "ftp://db:2379", "http://db:2379/x", "http:///db:2379"] {
            assert!(options(endpoint).validate().is_err(), "{endpoint}");
        }
        let mixed = EtcdOptions::new(vec!["db:2379".to_owned(), "https://db:2380".to_owned()]);
        assert!(mixed.validate().is_err());
        for fine in ["db:2379", "http://db:2379", "https://db:2379", "[::1]:2379"] {
            assert!(options(fine).validate().is_ok(), "{fine}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        let given = EtcdOptions { user: Some(("u".to_owned(), "hunter2".to_owned())), ..options("db:2379") };
        assert!(!format!("{given:?}").contains("hunter2"));
        let error = options("http://u:hunter2@db:2379").validate().expect_err("apart");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
