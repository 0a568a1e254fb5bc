//! What a lease of one name is, if everything happened one after the other.

use stateright::semantics::SequentialSpec;

/// A grant, by number.
pub(super) type Grant = usize;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Call {
    /// The lease.
    Acquire(Grant),
    /// More of it. With the token that this renewal proves, where it is the first after the token was drawn.
    Renew(Grant, Option<i64>),
    /// Its end.
    Release(Grant),
    /// An acquisition that nobody knows the end of begins: from now on it may have been granted.
    Orphan,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Came {
    /// Done; a grant with the lock service's own token, where that counts.
    Ok(Option<i64>),
    /// Refused: held by another, or not held any more.
    No,
}

/// The lease. Expiry is not written down by anybody, so it may come at any time; here it comes as late as it can, when something is
/// only legal after it. That is no loss: nothing that is legal after an expiry is illegal before it, but what forces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct Lease {
    /// The newest grant, while it may be alive.
    alive: Option<Alive>,
    /// The highest token that anybody had.
    highest: Option<i64>,
    /// Acquisitions without an end that have not been needed yet.
    orphans: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Alive {
    Known(Grant),
    /// One of the orphans.
    Orphan,
}

impl Lease {
    fn token(&mut self, token: Option<i64>) -> bool {
        let Some(token) = token else { return true };
        let grows = self.highest.is_none_or(|highest| token > highest);
        self.highest = Some(token);
        grows
    }

    fn is_newest(&self, grant: Grant) -> bool {
        self.alive == Some(Alive::Known(grant))
    }

    fn ends(&mut self, grant: Grant) {
        if self.is_newest(grant) {
            self.alive = None;
        }
    }

    /// The grant that kept an acquisition out.
    fn is_held(&mut self) -> bool {
        if self.alive.is_none() && self.orphans > 0 {
            self.orphans -= 1;
            self.alive = Some(Alive::Orphan);
        }
        self.alive.is_some()
    }
}

impl SequentialSpec for Lease {
    type Op = Call;
    type Ret = Came;

    /// As a lock does that expires leases at once.
    fn invoke(&mut self, call: &Call) -> Came {
        match *call {
            Call::Acquire(grant) => self.alive = Some(Alive::Known(grant)),
            Call::Renew(grant, _) if self.is_newest(grant) => {}
            Call::Release(grant) if self.is_newest(grant) => self.alive = None,
            Call::Renew(..) | Call::Release(_) => return Came::No,
            Call::Orphan => self.orphans += 1,
        }
        Came::Ok(None)
    }

    fn is_valid_step(&mut self, call: &Call, came: &Came) -> bool {
        match (*call, *came) {
            // over a grant that may be alive: it has expired
            (Call::Acquire(grant), Came::Ok(token)) => {
                self.alive = Some(Alive::Known(grant));
                self.token(token)
            }
            (Call::Acquire(_), Came::No) => self.is_held(),
            (Call::Renew(grant, token), Came::Ok(_)) => self.is_newest(grant) && self.token(token),
            (Call::Release(grant), Came::Ok(_)) => {
                let held = self.is_newest(grant);
                self.ends(grant);
                held
            }
            (Call::Renew(grant, _) | Call::Release(grant), Came::No) => {
                self.ends(grant);
                true
            }
            (Call::Orphan, _) => {
                self.orphans += 1;
                true
            }
        }
    }
}
