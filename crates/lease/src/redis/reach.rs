//! Where a Redis is, and a connection to it that may grant. Shared with `redlock.rs`. Needs `error.rs`.
//!
//! With sentinels the primary is resolved anew for every connection, so a primary that was demoted is left when it first refuses a
//! write. All sentinels are asked together, the first whose answer leads to a primary is followed: a frozen sentinel holds nobody up.
//! Whatever we are led to is asked for its role, as Redis' guide for clients of Sentinel has it, for a sentinel may not know yet.

use crate::{LeaseError, pem};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisError, TlsCertificates,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The files of TLS, for `rediss://` URLs. Read at every connection, so that renewed certificates are taken.
#[derive(Debug, Clone, Default)]
pub struct RedisTls {
    /// PEM file with the authorities that may sign the servers' certificates; those of the system where nothing is said.
    pub ca_file: Option<PathBuf>,
    /// PEM files with a certificate of ours and its key, where the server asks for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl RedisTls {
    /// # Errors
    /// A file that is not there or no PEM.
    pub(crate) fn check(&self) -> Result<(), LeaseError> {
        let of_us = self.certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.ca_file.iter().chain(of_us).try_for_each(|file| pem::check("redis", file))
    }
}

/// One server. Its `Debug` shows no password: the driver's does not.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    info: ConnectionInfo,
    tls: RedisTls,
    /// Whether it evicts was looked at, and told. Once for a process.
    looked: Arc<AtomicBool>,
}

impl Server {
    /// `what` is the URL's place in the configuration, as a person calls it. The URL itself is not shown: it may hold a password.
    pub(crate) fn new(what: &str, url: &str, tls: &RedisTls) -> Result<Server, LeaseError> {
        let refuse = |why: String| {
            Err(LeaseError::Invalid {
                what: format!("{what}: {why}; write redis://user:password@host:6379/0, or rediss:// for TLS"),
            })
        };
        let info = match url.into_connection_info() {
            Ok(info) => info.clone().set_redis_settings(info.redis_settings().clone().set_skip_set_lib_name()),
            Err(error) => return refuse(error.to_string()),
        };
        if info.redis_settings().protocol() != ProtocolVersion::RESP2 {
            return refuse("of the protocol only RESP2 is spoken here".to_owned());
        }
        match info.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => return refuse("#insecure is not supported".to_owned()),
            ConnectionAddr::Tcp(..) if tls.ca_file.is_some() || tls.certificate.is_some() => {
                return refuse("certificates are given, but the URL is without TLS".to_owned());
            }
            _ => {}
        }
        Ok(Server { info, tls: tls.clone(), looked: Arc::default() })
    }

    /// For logs and errors; without user and password.
    pub(crate) fn place(&self) -> String {
        format!("redis at {}/{}", self.info.addr(), self.info.redis_settings().db())
    }

    /// Host and port, whatever is kept there.
    pub(crate) fn address(&self) -> String {
        self.info.addr().to_string()
    }

    /// The host of the URL.
    fn host(&self) -> String {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            other => other.to_string(),
        }
    }

    /// The same user, password, database and certificates at another address.
    fn at(&self, host: String, port: u16) -> Server {
        let addr = match self.info.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        Server { info: self.info.clone().set_addr(addr), ..self.clone() }
    }

    /// A connection to a server that takes writes. Connecting and each answer take at most `limit`.
    pub(crate) async fn primary(&self, limit: Duration) -> Result<MultiplexedConnection, LeaseError> {
        let mut connection = self.open(limit).await?;
        let failed = |error| unavailable(&self.place(), "connect", limit, error);
        if is_replica(&mut connection).await.map_err(failed)? {
            let source = "it is a replica and takes no writes; name its primary, or the sentinels that know it".into();
            return Err(LeaseError::Unavailable { what: self.place(), doing: "connect", source });
        }
        if !self.looked.load(Ordering::Relaxed) {
            if let Some(policy) = eviction(&mut connection).await.map_err(failed)? {
                let redis = self.place();
                tracing::warn!(%redis, %policy, "redis evicts keys when its memory is full, leases too; set maxmemory-policy noeviction");
            }
            self.looked.store(true, Ordering::Relaxed);
        }
        Ok(connection)
    }

    async fn open(&self, limit: Duration) -> Result<MultiplexedConnection, LeaseError> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(limit)).set_response_timeout(Some(limit));
        let client = self.client().await?;
        let opened = client.get_multiplexed_async_connection_with_config(&config).await;
        opened.map_err(|error| unavailable(&self.place(), "connect", limit, error))
    }

    async fn client(&self) -> Result<Client, LeaseError> {
        let is_tls = matches!(self.info.addr(), ConnectionAddr::TcpTls { .. });
        let client = if is_tls {
            let root_cert = match &self.tls.ca_file {
                Some(file) => Some(pem::read("redis", file).await?),
                None => None,
            };
            let client_tls = match &self.tls.certificate {
                Some((certificate, key)) => Some(ClientTlsConfig {
                    client_cert: pem::read("redis", certificate).await?,
                    client_key: pem::read("redis", key).await?,
                }),
                None => None,
            };
            Client::build_with_tls(self.info.clone(), TlsCertificates { client_tls, root_cert })
        } else {
            Client::open(self.info.clone())
        };
        client.map_err(|error| unavailable(&self.place(), "connect", Duration::ZERO, error))
    }
}

/// A server, or those who know where it is now.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    One(Server),
    /// The host in the primary's URL is the name under which the sentinels know it.
    Sentinels {
        sentinels: Vec<Server>,
        primary: Server,
    },
}

impl Reach {
    pub(crate) fn place(&self) -> String {
        match self {
            Reach::One(server) => server.place(),
            Reach::Sentinels { primary, .. } => format!("redis {} of the sentinels", primary.host()),
        }
    }

    pub(crate) async fn connect(&self, limit: Duration) -> Result<MultiplexedConnection, LeaseError> {
        let (sentinels, primary) = match self {
            Reach::One(server) => return server.primary(limit).await,
            Reach::Sentinels { sentinels, primary } => (sentinels, primary),
        };
        let mut asked = JoinSet::new();
        for sentinel in sentinels {
            let (sentinel, primary) = (sentinel.clone(), primary.clone());
            asked.spawn(async move { named_by(&sentinel, &primary, limit).await?.primary(limit).await });
        }
        let mut last = None;
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => last = Some(error),
                Err(panicked) => last = Some(no_answer(self.place(), Box::new(panicked))),
            }
        }
        Err(last.unwrap_or_else(|| no_answer(self.place(), "no sentinels are named".into())))
    }
}

/// Where a sentinel says that the primary is.
async fn named_by(sentinel: &Server, primary: &Server, limit: Duration) -> Result<Server, LeaseError> {
    let (name, place) = (primary.host(), format!("sentinel at {}", sentinel.info.addr()));
    let mut connection = sentinel.open(limit).await?;
    let mut ask = redis::cmd("SENTINEL");
    ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&name);
    match ask.query_async::<Option<(String, u16)>>(&mut connection).await {
        Ok(Some((host, port))) => Ok(primary.at(host, port)),
        Ok(None) => {
            let unknown = format!("it knows no primary called {name:?}; the host of the URL is that name");
            Err(no_answer(place, unknown.into()))
        }
        Err(error) => Err(unavailable(&place, "ask for the primary", limit, error)),
    }
}

fn no_answer(what: String, source: Box<dyn std::error::Error + Send + Sync>) -> LeaseError {
    LeaseError::Unavailable { what, doing: "connect", source }
}

/// Whether it says that it is one. A user who may not ask for the role is told by the first write.
async fn is_replica(connection: &mut MultiplexedConnection) -> Result<bool, RedisError> {
    match redis::cmd("ROLE").query_async::<Vec<redis::Value>>(connection).await {
        Ok(role) => Ok(role.first() != Some(&redis::Value::BulkString(b"master".to_vec()))),
        Err(error) if is_refusal(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// How a server that forgets keys when its memory is full is set up; nothing where it forgets none, or does not say.
///
/// # Errors
/// It did not answer.
async fn eviction(connection: &mut MultiplexedConnection) -> Result<Option<String>, RedisError> {
    let answer: Result<Vec<String>, _> = redis::cmd("CONFIG").arg("GET").arg("maxmemory*").query_async(connection).await;
    match answer {
        Ok(pairs) => Ok(evicts(&pairs)),
        // users of limited rights and hosted servers may not ask
        Err(error) if is_refusal(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn evicts(pairs: &[String]) -> Option<String> {
    let value = |name: &str| pairs.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].as_str());
    let policy = value("maxmemory-policy")?;
    let is_limited = value("maxmemory").is_some_and(|bytes| bytes != "0");
    (is_limited && policy != "noeviction").then(|| policy.to_owned())
}

/// The server answered, and the answer is no.
fn is_refusal(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

pub(crate) fn unavailable(place: &str, doing: &'static str, after: Duration, error: RedisError) -> LeaseError {
    if error.is_timeout() {
        return LeaseError::TimedOut { what: place.to_owned(), doing, after };
    }
    LeaseError::Unavailable { what: place.to_owned(), doing, source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_evicts_is_told() {
        let answer = |limit: &str, policy: &str| {
            evicts(&["maxmemory-clients", "0", "maxmemory", limit, "maxmemory-policy", policy].map(str::to_owned))
        };
        assert_eq!(answer("1000", "volatile-lru").as_deref(), Some("volatile-lru"));
        assert_eq!(answer("1000", "noeviction"), None);
        assert_eq!(answer("0", "allkeys-lru"), None, "without a limit nothing is evicted");
        assert_eq!(evicts(&[]), None);
    }

    #[test]
    fn neither_an_error_nor_debug_shows_a_password() {
        let none = RedisTls::default();
        for broken in [
            "redis://u:hunter2@:x/0",
            "redis://u:hunter2@h/?protocol=resp3",
            "redis://u:hunter2@h:1/nonsense",
            "http://u:hunter2@h",
            "rediss://u:hunter2@h#insecure",
        ] {
            let shown = Server::new("redis.url", broken, &none).expect_err("no such URL").to_string();
            assert!(!shown.contains("hunter2") && shown.contains("redis.url"), "{shown}");
        }
        let fine = Server::new("redis.url", "redis://u:hunter2@db:6380/3", &none).expect("a URL");
        assert_eq!(fine.place(), "redis at db:6380/3");
        assert!(!format!("{fine:?}").contains("hunter2"), "{fine:?}");
    }

    #[test]
    fn certificates_without_tls_are_refused() {
        let tls = RedisTls { ca_file: Some("ca.crt".into()), certificate: None };
        assert!(Server::new("redis.url", "redis://db", &tls).is_err());
        assert!(Server::new("redis.url", "rediss://db", &tls).is_ok());
    }
}
