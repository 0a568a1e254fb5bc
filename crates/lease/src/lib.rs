//! Leases: who works on a unit, for how long, and how the holder learns that it no longer does.
//!
//! # The protocol
//!
//! A lease is a row at a lock service: *name, holder, nonce, expires at*. It is granted when there is no row of that name or the
//! row has expired by the **service's** clock, and never otherwise. The *holder* is a process start; the *nonce* is one grant. All
//! later requests repeat the three, so nobody renews, proves or releases a grant that is not his own.
//!
//! 1. **Acquire.** The [`Keeper`] notes the instant, sends the request, and on a grant counts the *local deadline*: that instant
//!    **before the request was sent**, plus the TTL, minus a margin. The service starts counting later than we do, so our deadline
//!    is never behind its expiry, however long the reply travelled. A grant whose reply arrives after its own deadline is given
//!    back and not handed out.
//! 2. **Renew**, at a third of the TTL with jitter, from a thread, a runtime and a connection of the keeper's own: neither busy
//!    workers nor an exhausted pool can starve it. *Renewed* moves the deadline; *Lost* ends the lease. An attempt that fails or
//!    times out is neither: what it did is unknown, so it is repeated until the deadline, and at the deadline the lease is lost.
//!    A renewal never revives an expired lease, not even one that nobody has taken yet.
//! 3. **Check.** [`Lease::check`] compares the deadline with `CLOCK_BOOTTIME`. It asks nobody: a process that was frozen and has
//!    just woken learns that it lost without its keeper having run. Loss is final for the handle.
//! 4. **Prove.** [`Lease::prove`] is a renewal made now, on the service: *Owner* means that we owned the lease at some instant
//!    between the call and its return. Whoever mints a token and proves ownership afterwards held the lease while minting.
//! 5. **Release** waits for the renewal in flight, then deletes the row of its own nonce, and says what it found: *Released*,
//!    *NotHeld* or *Unknown*. A handle that is dropped, a grant that nobody took because the caller went away, and a request that
//!    may have been granted after we stopped listening are all released by nonce too, or expire.
//!
//! # What a lease is not
//!
//! Mutual exclusion. Between a check and the write that follows it the process can freeze for longer than the TTL; the lock
//! service can lose its memory; a clock can step. A lease saves duplicate work and makes takeover fast. That a superseded holder
//! writes nothing is decided by the ledger, which compares the fence of every write.
//!
//! Sources: C. Gray and D. Cheriton, "Leases" (SOSP 1989); M. Burrows, "The Chubby lock service" (OSDI 2006).
//!
//! # Reading order
//!
//! [`contract`] (what every lock service must do) → [`keeper`] → one backend: [`postgres`] and [`sqlite`] are the shortest, then
//! [`postgres_advisory`], [`mod@redis`], [`redlock`] and [`etcd`]. A new backend is one file that implements [`Backend`] and [`Connector`],
//! a line in `services.rs`, and a place in `tests/suite/place.rs` that the cases of `tests/conformance.rs` are run over.

pub mod capability;
pub mod clock;
pub mod contract;
mod deadline;
mod error;
pub mod etcd;
mod gate;
mod handle;
pub mod keeper;
mod pem;
pub mod postgres;
pub mod postgres_advisory;
pub mod redis;
pub mod redlock;
mod services;
mod settings;
pub mod sqlite;

pub use capability::Capabilities;
pub use clock::{BootClock, BootInstant, Clock};
pub use contract::{Acquire, Ask, Backend, Connector, LeaseName, LeaseRow, Line, Nonce, Release, Renew, TokenSource, Turn};
pub use deadline::LostWhy;
pub use error::LeaseError;
pub use etcd::{EtcdConnector, EtcdOptions};
pub use handle::{Lease, Lost, Proof};
pub use keeper::{Keeper, RENEWALS, TIME_LEFT};
pub use postgres::{PostgresBackend, PostgresConnector};
pub use postgres_advisory::{PostgresAdvisoryBackend, PostgresAdvisoryConnector};
pub use redis::{RedisBackend, RedisConnector, RedisOptions, RedisTls};
pub use redlock::{RedlockBackend, RedlockConnector, RedlockOptions};
pub use services::SERVICES;
pub use settings::KeeperSettings;
pub use sqlite::{SqliteBackend, SqliteConnector};
