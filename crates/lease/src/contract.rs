//! The contract: what a lock service must do to keep leases. Needs `error.rs`, `settings.rs`, `capability.rs`, `domain::ids`.
//!
//! Six requests, all mandatory. "Held by another" and "lost" are values; an error means that the service did not answer, and then
//! **nothing is known about the effect of the request**. The keeper turns these into a protocol; a backend decides nothing.

use crate::{Capabilities, KeeperSettings, LeaseError};
use async_trait::async_trait;
use domain::ids::{HolderId, LedgerId};
use std::pin::Pin;
use std::time::Duration;
use uuid::Uuid;

/// The name of a lease: `<ledger id>/unit/<n>`. The ledger's id comes first, so that two ledgers on one lock service do not
/// exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseName(String);

impl LeaseName {
    /// Longer names do not fit the key column of every database.
    pub const MAX_BYTES: usize = 200;

    /// The lease of one unit of one ledger.
    #[must_use]
    pub fn unit(ledger: LedgerId, unit: i32) -> LeaseName {
        LeaseName(format!("{ledger}/unit/{unit}"))
    }

    /// What is sent to the service.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for LeaseName {
    type Err = LeaseError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        // visible ASCII: every service compares these byte for byte, whatever its collation
        let usable = !word.is_empty() && word.len() <= Self::MAX_BYTES && word.bytes().all(|b| b.is_ascii_graphic());
        if usable {
            return Ok(LeaseName(word.to_owned()));
        }
        let limit = Self::MAX_BYTES;
        Err(LeaseError::Invalid {
            what: format!("{word:?} is not a lease name (1 to {limit} visible ASCII characters, no spaces)"),
        })
    }
}

impl std::fmt::Display for LeaseName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One grant. A fresh one for every acquisition, so that a late message about an earlier grant of the same holder hits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub Uuid);

impl Nonce {
    /// A nonce nobody has used.
    #[must_use]
    pub fn fresh() -> Nonce {
        Nonce(Uuid::new_v4())
    }
}

/// What every request repeats: whose grant of which lease is meant.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Which lease.
    pub name: LeaseName,
    /// Which process start.
    pub holder: HolderId,
    /// Which grant.
    pub nonce: Nonce,
    /// How long the service keeps it from the instant it grants or renews, by its own clock. Whole milliseconds.
    pub ttl: Duration,
}

/// Who makes the fencing tokens of the grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// The ledger, from its own counter, after the grant. [`Acquire::Granted`] carries none.
    LedgerMinted,
    /// The lock service: a number that grows with every grant of a name, survives release and expiry, and can be compared on the
    /// service when ownership is proven.
    External {
        /// Which service instance. Tokens of different ids do not compare.
        id: String,
    },
}

/// The answer to [`Backend::try_acquire`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquire {
    /// It is ours for the TTL, counted by the service from an instant after the request was sent.
    Granted {
        /// The fencing token, exactly when the source is external.
        token: Option<i64>,
    },
    /// Somebody else's grant has not expired. What is known of it is a hint for a reader, already old when it arrives.
    HeldByAnother {
        /// Who.
        holder: Option<HolderId>,
        /// For how long, unless renewed.
        remaining: Option<Duration>,
    },
}

/// The answer to [`Backend::stand_in_line`].
pub enum Line {
    /// The service has no queue, or none for us: ask again after a pause of one's own.
    None,
    /// We have a place in the line of that name, for a TTL from now.
    Place(Turn),
}

/// Resolves when it may be our turn, or our place may be gone: time to ask again. Needs no keeper and may be dropped at any time.
pub type Turn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The answer to [`Backend::renew`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renew {
    /// It was ours, had not expired, and is ours for another TTL.
    Renewed,
    /// It expired, was released, or was taken over.
    Lost,
}

/// The answer to a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// It was ours and had not expired; it is free now.
    Released,
    /// It was not ours any more: expired, taken over, or released before.
    NotHeld,
    /// The service did not answer. The lease is free at the latest when it expires. Never said by a backend.
    Unknown,
}

/// A lease as the service stores it, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// Which lease.
    pub name: LeaseName,
    /// Which process start; nothing where the service does not say, or where somebody else's program holds it.
    pub holder: Option<HolderId>,
    /// Which grant; nothing where the holder is none of ours, or the service does not say.
    pub nonce: Option<Nonce>,
    /// Milliseconds until it expires by the service's clock, negative when it has; nothing where the service does not say.
    pub expires_in_ms: Option<i64>,
}

/// One connection to a lock service.
///
/// Every method is one atomic step at the service: a request that is cancelled or times out has happened or has not, never half.
/// After an error, or after a future was dropped before it was ready, the backend is not used again: its connection may hold an
/// answer that belongs to the earlier question.
#[async_trait]
pub trait Backend: Send {
    /// Which lock service, in a word.
    fn kind(&self) -> &'static str;

    /// Who makes the tokens.
    fn token_source(&self) -> TokenSource;

    /// After `Granted`, every acquisition under another nonce is refused until the TTL is over or the grant released. It is granted
    /// only when nobody's unexpired grant is there, or this very one (same name, holder and nonce): a repeat after a lost reply.
    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError>;

    /// A place in the line of those who wait for the name, where the service keeps one; asked again with the same `ask`, keeps that
    /// place for another TTL. Only the first in line is woken by a release, so that many who wait do not stampede.
    ///
    /// `try_acquire` with the same `ask` is the way out of the line with a grant, `release` the way out without one.
    ///
    /// # Errors
    /// The place that an earlier call gave is gone: whoever waited has waited in vain, and never has the lease.
    async fn stand_in_line(&mut self, ask: &Ask) -> Result<Line, LeaseError>;

    /// After `Renewed`, the grant was still ours **and unexpired** when the service looked, and holds for a TTL from then. Compares
    /// and extends in one step: it never extends another's grant, and never revives an expired one.
    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError>;

    /// After any answer, this grant is not at the service. Never touches another's.
    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError>;

    /// The leases whose names begin with `prefix`, in name order, expired ones included where the service still has them.
    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError>;

    /// The process is about to end and has given its grants back: gives up what they shared at the service, if they shared anything.
    async fn leave(&mut self) -> Result<(), LeaseError>;
}

/// Makes connections. Called again after every failed or timed-out request; the failed [`Backend`] is dropped with its connection.
#[async_trait]
pub trait Connector: Send {
    /// A connection that no other task uses, not from a pool that work draws from.
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError>;

    /// What the service gives beyond this contract.
    fn capabilities(&self) -> Capabilities;

    /// Whether the service can keep leases like these, besides its shortest TTL. Asks nobody.
    ///
    /// # Errors
    /// [`LeaseError::Invalid`] with a sentence about what does not fit.
    fn check(&self, settings: &KeeperSettings) -> Result<(), LeaseError>;
}
