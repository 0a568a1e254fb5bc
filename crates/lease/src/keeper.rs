//! The keeper: acquires, renews and releases the leases of one process, on a thread of its own. Needs `contract.rs`, `clock.rs`,
//! `handle.rs` (with `deadline.rs`) and its own folder.
//!
//! A renewal that waits behind a busy worker is a lost lease, so nothing here is shared with the work: own OS thread, own
//! single-threaded runtime, own connection. Handles reach it through a channel that never blocks.
//!
//! **One connection, one request at a time.** A slow answer therefore delays the others, but not for long: an attempt is bounded by
//! [`KeeperSettings::attempt`] (at most a fifth of the TTL) and by what remains of its own lease. Renewal starts at a third of the
//! TTL and the local deadline is at nine tenths, so two attempts may hang, be they a lease's own or its neighbours', and the third
//! still comes in time. Commands and renewals take turns. A process that keeps dozens of leases on a slow service wants a longer
//! TTL.
//!
//! **One lease of a name per process.** The map of kept leases is the mutex: a second task that asks for a name this process
//! already holds gets `None`, as if another process held it.

mod engine;
mod session;
mod waiting;

use crate::clock::{BootClock, Clock};
use crate::handle::{Grant, Lease, Proof};
use crate::{Ask, Capabilities, Connector, KeeperSettings, LeaseError, LeaseName, LeaseRow, Nonce, Release, TokenSource, Turn};
use domain::ids::HolderId;
use engine::Engine;
use session::Session;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Renewals by `outcome` (`renewed`, `lost`, `unknown`), for whoever installs a recorder of metrics.
pub const RENEWALS: &str = "settled_lease_renewals_total";
/// What was left until the local deadline when a renewal was answered, in seconds; 0 for a lease that was lost by its deadline.
pub const TIME_LEFT: &str = "settled_lease_time_left_seconds";

/// What handles send to the thread. Unbounded, because `Drop` must not wait; every caller but `Drop` has one command under way.
pub(crate) type Commands = mpsc::UnboundedSender<Command>;

pub(crate) enum Command {
    Acquire { ask: Ask, wait: bool, commands: Commands, reply: oneshot::Sender<Result<Try, LeaseError>> },
    Dismiss { ask: Ask, reply: Option<oneshot::Sender<Release>> },
    Source { reply: oneshot::Sender<Result<TokenSource, LeaseError>> },
    Prove { grant: Arc<Grant>, reply: oneshot::Sender<Result<Proof, LeaseError>> },
    Release { grant: Arc<Grant>, reply: Option<oneshot::Sender<Release>> },
    Inspect { prefix: String, reply: oneshot::Sender<Result<Vec<LeaseRow>, LeaseError>> },
    Shutdown { reply: oneshot::Sender<()> },
}

/// What one try to acquire came to.
pub(crate) enum Try {
    Granted(Lease),
    /// By another, or by another task of this process.
    Held,
    /// By another, and we stand in line.
    InLine(Turn),
}

/// Keeps this process's leases. The thread ends with [`Keeper::shutdown`], or when the keeper and all its leases are dropped.
pub struct Keeper {
    commands: Commands,
    holder: HolderId,
    settings: KeeperSettings,
}

impl Keeper {
    /// Starts the thread. Does not wait for the service: it may be down now and come later.
    ///
    /// # Errors
    /// Settings that do not fit together, or a system without threads to give.
    pub fn start(connector: Box<dyn Connector>, holder: HolderId, settings: KeeperSettings) -> Result<Keeper, LeaseError> {
        Self::start_with_clock(connector, holder, settings, Arc::new(BootClock))
    }

    /// [`Keeper::start`] with another clock for the local deadlines.
    ///
    /// # Errors
    /// As [`Keeper::start`].
    pub fn start_with_clock(
        connector: Box<dyn Connector>,
        holder: HolderId,
        settings: KeeperSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Keeper, LeaseError> {
        settings.validate()?;
        fits(connector.as_ref(), &settings)?;
        let session = Session::new(connector);
        let (commands, inbox) = mpsc::unbounded_channel();
        let engine = Engine::new(settings, holder, clock, session, inbox);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        std::thread::Builder::new()
            .name("lease-keeper".to_owned())
            .spawn(move || {
                let last_words = runtime.block_on(engine.run());
                drop(runtime); // the connection is closed before shutdown() returns
                if let Some(reply) = last_words {
                    let _ = reply.send(());
                }
            })
            .map_err(no_thread)?;
        Ok(Keeper { commands, holder, settings })
    }

    /// One try to get the lease. `None`: held by another, or by another task of this process. Does not wait for it to become free.
    ///
    /// Dropping the future at any point leaves nothing owned: a grant that nobody takes is released.
    ///
    /// # Errors
    /// The service did not answer, within a bounded time. What it may have granted is released by nonce.
    pub async fn try_acquire(&self, name: &LeaseName) -> Result<Option<Lease>, LeaseError> {
        match self.attempt(self.fresh(name), false).await? {
            Try::Granted(lease) => Ok(Some(lease)),
            Try::Held | Try::InLine(_) => Ok(None),
        }
    }

    /// The leases whose names begin with `prefix`.
    ///
    /// # Errors
    /// The service did not answer.
    pub async fn inspect(&self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        self.ask(|reply| Command::Inspect { prefix: prefix.to_owned(), reply }).await?
    }

    /// Who makes the tokens of the service that answers now; connects where there is no connection. A grant says whose its token is
    /// ([`Lease::source`]): the service may have been rebuilt between this answer and that grant.
    ///
    /// # Errors
    /// The service did not answer.
    pub async fn source(&self) -> Result<TokenSource, LeaseError> {
        self.ask(|reply| Command::Source { reply }).await?
    }

    /// Releases every lease (their handles say `Lost(Released)`), closes the connection and ends the thread. Bounded: what the
    /// service does not confirm in time expires.
    pub async fn shutdown(self) {
        let _ = self.ask(|reply| Command::Shutdown { reply }).await;
    }

    fn fresh(&self, name: &LeaseName) -> Ask {
        Ask { name: name.clone(), holder: self.holder, nonce: Nonce::fresh(), ttl: self.settings.ttl }
    }

    async fn attempt(&self, ask: Ask, wait: bool) -> Result<Try, LeaseError> {
        let commands = self.commands.clone();
        self.ask(|reply| Command::Acquire { ask, wait, commands, reply }).await?
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, LeaseError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| LeaseError::Closed)?;
        answer.await.map_err(|_| LeaseError::Closed)
    }
}

/// Whether a service can keep leases like these. Asks nobody; [`Keeper::start`] begins with it.
///
/// # Errors
/// [`LeaseError::Invalid`] with a sentence about what does not fit.
pub fn fits(connector: &dyn Connector, settings: &KeeperSettings) -> Result<(), LeaseError> {
    let Capabilities { name, shortest_ttl, .. } = connector.capabilities();
    if settings.ttl < shortest_ttl {
        let ttl = settings.ttl;
        let what = format!("a lease TTL of {ttl:?} is too short for {name}, which keeps leases of {shortest_ttl:?} or longer");
        return Err(LeaseError::Invalid { what });
    }
    connector.check(settings)
}

fn no_thread(source: std::io::Error) -> LeaseError {
    LeaseError::Unavailable { what: "keeper".to_owned(), doing: "starting its thread", source: Box::new(source) }
}
