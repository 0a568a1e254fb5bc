//! The way to the lock service, which can be cut: connections are dropped, and nothing is reached until it is whole again.

use super::What;
use async_trait::async_trait;
use lease::clock::{BootClock, BootInstant, Clock};
use lease::{
    Acquire, Ask, Backend, Capabilities, Connector, KeeperSettings, LeaseError, LeaseRow, Line, Release, Renew, TokenSource,
};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// The way of one process.
#[derive(Clone)]
pub struct Way(Arc<Inner>);

struct Inner {
    state: watch::Sender<State>,
    /// Connections that are open, to be dropped.
    open: Mutex<Vec<Weak<Place>>>,
}

/// How often it was cut, and until when it is. A connection from before a cut is not used again after it.
#[derive(Debug, Clone, Copy)]
struct State {
    cuts: u64,
    until: BootInstant,
}

/// Where a connection is while it is not asked.
type Place = Mutex<Option<Box<dyn Backend>>>;

impl Way {
    pub(super) fn whole() -> Way {
        let state = State { cuts: 0, until: BootInstant::from_nanos(0) };
        Way(Arc::new(Inner { state: watch::Sender::new(state), open: Mutex::default() }))
    }

    /// Cuts it for `span` from now.
    pub(super) fn cut(&self, span: Duration) {
        let until = BootClock.now() + span;
        // first, so that no connection goes back to its place meanwhile
        self.0.state.send_modify(|state| *state = State { cuts: state.cuts + 1, until });
        let open = std::mem::take(&mut *self.0.open.lock().unwrap_or_else(PoisonError::into_inner));
        for place in open.iter().filter_map(Weak::upgrade) {
            drop(place.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }

    /// The same service, reached by this way.
    #[must_use]
    pub fn to(&self, service: Box<dyn Connector>) -> Box<dyn Connector> {
        Box::new(CutConnector { way: self.clone(), service })
    }

    /// # Errors
    /// It is cut.
    fn check(&self, kind: &'static str, doing: &'static str) -> Result<State, LeaseError> {
        let state = *self.0.state.borrow();
        let left = BootClock.now().until(state.until);
        if left.is_zero() { Ok(state) } else { Err(cut_off(kind, doing)) }
    }

    fn opened(&self, place: &Arc<Place>) {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|place| place.strong_count() > 0);
        open.push(Arc::downgrade(place));
    }
}

fn cut_off(kind: &'static str, doing: &'static str) -> LeaseError {
    let what = What::Cut(Duration::ZERO).word();
    LeaseError::Unavailable { what: kind.to_owned(), doing, source: format!("chaos mode has {what} the way to it").into() }
}

struct CutConnector {
    way: Way,
    service: Box<dyn Connector>,
}

#[async_trait]
impl Connector for CutConnector {
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let kind = self.service.capabilities().name;
        let state = self.way.check(kind, "connect")?;
        let backend = self.service.connect().await?;
        let (kind, source) = (backend.kind(), backend.token_source());
        let place = Arc::new(Mutex::new(Some(backend)));
        self.way.opened(&place);
        // it may have been cut meanwhile; then the first request says so
        Ok(Box::new(CutBackend { way: self.way.clone(), cuts: state.cuts, place, kind, source }))
    }

    fn capabilities(&self) -> Capabilities {
        self.service.capabilities()
    }

    fn check(&self, settings: &KeeperSettings) -> Result<(), LeaseError> {
        self.service.check(settings)
    }
}

struct CutBackend {
    way: Way,
    /// As many as there had been when it was connected.
    cuts: u64,
    place: Arc<Place>,
    kind: &'static str,
    source: TokenSource,
}

impl CutBackend {
    fn take(&self, doing: &'static str) -> Result<Box<dyn Backend>, LeaseError> {
        let taken = self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.filter(|_| !self.was_cut()).ok_or_else(|| cut_off(self.kind, doing))
    }

    fn was_cut(&self) -> bool {
        self.way.0.state.borrow().cuts != self.cuts
    }

    /// The answer, or that the way was cut before it came. Then the request has had its effect, or has not, as with any lost reply.
    async fn answer<T>(
        &self,
        doing: &'static str,
        request: impl Future<Output = Result<T, LeaseError>> + Send,
    ) -> Result<T, LeaseError> {
        tokio::select! {
            biased;
            () = cut_after(&self.way, self.cuts) => Err(cut_off(self.kind, doing)),
            answer = request => answer,
        }
    }

    /// Only with an answer: see [`Backend`]. Where it was cut meanwhile, the connection ends here.
    fn put_back(&self, backend: Box<dyn Backend>) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.was_cut() {
            *place = Some(backend);
        }
    }
}

/// Resolves when the way has been cut more often than `cuts` times.
async fn cut_after(way: &Way, cuts: u64) {
    let mut state = way.0.state.subscribe();
    // the sender is in `way`, so this does not end otherwise
    let _ = state.wait_for(|state| state.cuts != cuts).await;
}

#[async_trait]
impl Backend for CutBackend {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn token_source(&self) -> TokenSource {
        self.source.clone()
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        let mut backend = self.take("acquire")?;
        let answer = self.answer("acquire", backend.try_acquire(ask)).await?;
        self.put_back(backend);
        Ok(answer)
    }

    async fn stand_in_line(&mut self, ask: &Ask) -> Result<Line, LeaseError> {
        let mut backend = self.take("stand in line")?;
        let answer = self.answer("stand in line", backend.stand_in_line(ask)).await?;
        self.put_back(backend);
        let Line::Place(turn) = answer else { return Ok(answer) };
        let (way, cuts) = (self.way.clone(), self.cuts);
        // who waits asks again, and is told
        Ok(Line::Place(Box::pin(async move {
            tokio::select! { () = turn => {}, () = cut_after(&way, cuts) => {} }
        })))
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        let mut backend = self.take("renew")?;
        let answer = self.answer("renew", backend.renew(ask)).await?;
        self.put_back(backend);
        Ok(answer)
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        let mut backend = self.take("release")?;
        let answer = self.answer("release", backend.release(ask)).await?;
        self.put_back(backend);
        Ok(answer)
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        let mut backend = self.take("inspect")?;
        let answer = self.answer("inspect", backend.inspect(prefix)).await?;
        self.put_back(backend);
        Ok(answer)
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        let mut backend = self.take("leave")?;
        self.answer("leave", backend.leave()).await?;
        self.put_back(backend);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ids::{HolderId, LedgerId};
    use lease::{LeaseName, Nonce, SqliteConnector};
    use uuid::Uuid;

    const TTL: Duration = Duration::from_secs(60);

    fn ask() -> Ask {
        let name = LeaseName::unit(LedgerId(Uuid::new_v4()), 0);
        Ask { name, holder: HolderId(Uuid::new_v4()), nonce: Nonce::fresh(), ttl: TTL }
    }

    fn is_told<T>(answer: Result<T, LeaseError>) -> bool {
        answer.err().is_some_and(|error| error.to_string().contains("chaos mode has cut the way to it"))
    }

    #[tokio::test]
    async fn nothing_is_reached_until_it_is_whole_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let way = Way::whole();
        let mut connector = way.to(Box::new(SqliteConnector::new(&folder.path().join("ledger.db"))));
        let (mut old, ask) = (connector.connect().await.expect("a connection"), ask());
        assert_eq!(old.try_acquire(&ask).await.expect("an answer"), Acquire::Granted { token: None });
        let place = way.0.open.lock().expect("nobody panics")[0].upgrade().expect("it is open");
        assert!(place.lock().expect("nobody panics").is_some(), "the connection waits in its place");
        way.cut(TTL);
        assert!(place.lock().expect("nobody panics").is_none(), "dropped at once, not at the next request");
        assert!(is_told(old.renew(&ask).await) && is_told(connector.connect().await));
        // whole again: the old connection is gone for good, a new one finds what was there
        way.cut(Duration::ZERO);
        assert!(is_told(old.renew(&ask).await));
        let mut new = connector.connect().await.expect("a connection");
        assert_eq!(new.renew(&ask).await.expect("an answer"), Renew::Renewed);
    }

    #[tokio::test]
    async fn a_request_that_is_under_way_gets_no_answer() {
        let way = Way::whole();
        let (place, source) = (Arc::default(), TokenSource::LedgerMinted);
        let backend = CutBackend { way: way.clone(), cuts: 0, place, kind: "etcd", source };
        let (answer, ()) = tokio::join!(backend.answer("renew", std::future::pending::<Result<(), _>>()), async { way.cut(TTL) });
        assert!(is_told(answer));
    }
}
