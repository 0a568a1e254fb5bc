//! A lock service that fails, hangs or loses its replies on demand, around any real one.

use async_trait::async_trait;
use domain::ids::HolderId;
use lease::{
    Acquire, Ask, Backend, Connector, Keeper, KeeperSettings, LeaseError, LeaseName, LeaseRow, Line, Release, Renew, TokenSource,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::place::Place;
use super::{someone, until};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sky {
    /// It never arrives, and we are told.
    Fails,
    /// It never arrives, and we are not told.
    Hangs,
    /// It takes effect, but its reply is an error.
    LosesReply,
    /// It takes effect, but its reply never comes.
    HangsAfter,
    /// Of a place in line: it is always our turn, and never is.
    Restless,
    /// It takes its time on the way there and on the way back, in milliseconds.
    Slow(u64, u64),
}

#[derive(Default)]
struct Report {
    skies: HashMap<(&'static str, Option<LeaseName>), Sky>,
    begun: HashMap<&'static str, u32>,
    done: HashMap<&'static str, u32>,
}

/// Shared by a case and the connectors it influences.
#[derive(Clone, Default)]
pub(crate) struct Weather(Arc<Mutex<Report>>);

pub(crate) const EVERYTHING: [&str; 6] = ["connect", "acquire", "line", "renew", "release", "inspect"];

impl Weather {
    fn report(&self) -> MutexGuard<'_, Report> {
        self.0.lock().expect("no case panics inside")
    }

    pub(crate) fn set(&self, doing: &'static str, sky: Sky) {
        self.report().skies.insert((doing, None), sky);
    }

    pub(crate) fn set_for(&self, doing: &'static str, name: &LeaseName, sky: Sky) {
        self.report().skies.insert((doing, Some(name.clone())), sky);
    }

    pub(crate) fn set_all(&self, sky: Sky) {
        EVERYTHING.into_iter().for_each(|doing| self.set(doing, sky));
    }

    pub(crate) fn clear(&self) {
        self.report().skies.clear();
    }

    fn is(&self, doing: &'static str, sky: Sky) -> bool {
        self.report().skies.get(&(doing, None)) == Some(&sky)
    }

    pub(crate) fn begun(&self, doing: &'static str) -> u32 {
        self.report().begun.get(doing).copied().unwrap_or(0)
    }

    /// Waits until a request took effect at the service.
    pub(crate) async fn until_done(&self, doing: &'static str, times: u32) {
        until(doing, Duration::from_secs(20), async || self.report().done.get(doing).copied().unwrap_or(0) >= times).await;
    }

    pub(crate) async fn until_begun(&self, doing: &'static str, times: u32) {
        until(doing, Duration::from_secs(20), async || self.begun(doing) >= times).await;
    }

    pub(crate) fn connector(&self, place: &Place) -> Box<dyn Connector> {
        Box::new(Under { weather: self.clone(), inner: place.connector() })
    }

    pub(crate) fn keeper(&self, place: &Place, ttl: Duration) -> Keeper {
        self.keeper_of(place, someone(), ttl)
    }

    pub(crate) fn keeper_of(&self, place: &Place, holder: HolderId, ttl: Duration) -> Keeper {
        Keeper::start(self.connector(place), holder, KeeperSettings::new(ttl)).expect("a keeper")
    }

    async fn pass<T>(
        &self,
        doing: &'static str,
        name: Option<&LeaseName>,
        request: impl Future<Output = Result<T, LeaseError>>,
    ) -> Result<T, LeaseError> {
        let sky = {
            let mut report = self.report();
            *report.begun.entry(doing).or_default() += 1;
            report.skies.get(&(doing, name.cloned())).or_else(|| report.skies.get(&(doing, None))).copied()
        };
        match sky {
            Some(Sky::Fails) => return Err(broken(doing)),
            Some(Sky::Hangs) => return std::future::pending().await,
            Some(Sky::Slow(there, _)) => tokio::time::sleep(Duration::from_millis(there)).await,
            _ => {}
        }
        let answer = request.await?;
        *self.report().done.entry(doing).or_default() += 1;
        match sky {
            Some(Sky::LosesReply) => Err(broken(doing)),
            Some(Sky::HangsAfter) => std::future::pending().await,
            Some(Sky::Slow(_, back)) => {
                tokio::time::sleep(Duration::from_millis(back)).await;
                Ok(answer)
            }
            _ => Ok(answer),
        }
    }
}

fn broken(doing: &'static str) -> LeaseError {
    LeaseError::Unavailable { what: "weather".to_owned(), doing, source: "connection reset".into() }
}

struct Under<T: ?Sized> {
    weather: Weather,
    inner: Box<T>,
}

#[async_trait]
impl Connector for Under<dyn Connector> {
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let inner = self.weather.pass("connect", None, self.inner.connect()).await?;
        Ok(Box::new(Under { weather: self.weather.clone(), inner }))
    }

    fn capabilities(&self) -> lease::Capabilities {
        self.inner.capabilities()
    }

    fn check(&self, settings: &KeeperSettings) -> Result<(), LeaseError> {
        self.inner.check(settings)
    }
}

#[async_trait]
impl Backend for Under<dyn Backend> {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn token_source(&self) -> TokenSource {
        self.inner.token_source()
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        self.weather.pass("acquire", Some(&ask.name), self.inner.try_acquire(ask)).await
    }

    async fn stand_in_line(&mut self, ask: &Ask) -> Result<Line, LeaseError> {
        let line = self.weather.pass("line", Some(&ask.name), self.inner.stand_in_line(ask)).await?;
        Ok(if self.weather.is("line", Sky::Restless) { Line::Place(Box::pin(std::future::ready(()))) } else { line })
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        self.weather.pass("renew", Some(&ask.name), self.inner.renew(ask)).await
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        self.weather.pass("release", Some(&ask.name), self.inner.release(ask)).await
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        self.weather.pass("inspect", None, self.inner.inspect(prefix)).await
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        self.inner.leave().await
    }
}
