//! A lock service whose requests are written down.

use super::call;
use crate::history::{History, Of, Op, Phase};
use async_trait::async_trait;
use domain::fence::Fence;
use lease::{
    Acquire, Ask, Backend, Capabilities, Connector, KeeperSettings, LeaseError, LeaseRow, Line, Release, Renew, TokenSource,
};
use std::sync::Arc;

/// The connector, with the requests of all its connections written down.
#[must_use]
pub fn connector(connector: Box<dyn Connector>, history: &Arc<History>) -> Box<dyn Connector> {
    Box::new(RecordedConnector { connector, history: Arc::clone(history) })
}

struct RecordedConnector {
    connector: Box<dyn Connector>,
    history: Arc<History>,
}

#[async_trait]
impl Connector for RecordedConnector {
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let backend = self.connector.connect().await?;
        Ok(Box::new(RecordedBackend { backend, history: Arc::clone(&self.history) }))
    }

    fn capabilities(&self) -> Capabilities {
        self.connector.capabilities()
    }

    fn check(&self, settings: &KeeperSettings) -> Result<(), LeaseError> {
        self.connector.check(settings)
    }
}

struct RecordedBackend {
    backend: Box<dyn Backend>,
    history: Arc<History>,
}

#[async_trait]
impl Backend for RecordedBackend {
    fn kind(&self) -> &'static str {
        self.backend.kind()
    }

    fn token_source(&self) -> TokenSource {
        self.backend.token_source()
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        let sent = self.backend.try_acquire(ask);
        call(&self.history, (Op::Acquire, of(ask)), sent, |answer| match answer {
            Ok(Acquire::Granted { token }) => {
                let fence = token.map(|token| Fence { generation: 0, token });
                (Phase::Ok, Of { fence, ..of(ask) })
            }
            Ok(Acquire::HeldByAnother { .. }) => (Phase::Fail, of(ask)),
            Err(error) => unanswered(ask, error),
        })
        .await
    }

    async fn stand_in_line(&mut self, ask: &Ask) -> Result<Line, LeaseError> {
        let sent = self.backend.stand_in_line(ask);
        call(&self.history, (Op::StandInLine, of(ask)), sent, |answer| match answer {
            Ok(Line::Place(_)) => (Phase::Ok, of(ask)),
            Ok(Line::None) => (Phase::Fail, of(ask)),
            Err(error) => unanswered(ask, error),
        })
        .await
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        let sent = self.backend.renew(ask);
        call(&self.history, (Op::Renew, of(ask)), sent, |answer| match answer {
            Ok(Renew::Renewed) => (Phase::Ok, of(ask)),
            Ok(Renew::Lost) => (Phase::Fail, of(ask)),
            Err(error) => unanswered(ask, error),
        })
        .await
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        let sent = self.backend.release(ask);
        call(&self.history, (Op::Release, of(ask)), sent, |answer| match answer {
            Ok(Release::Released) => (Phase::Ok, of(ask)),
            Ok(Release::NotHeld) => (Phase::Fail, of(ask)),
            Ok(Release::Unknown) => (Phase::Unknown, of(ask)),
            Err(error) => unanswered(ask, error),
        })
        .await
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        self.backend.inspect(prefix).await
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        self.backend.leave().await
    }
}

fn of(ask: &Ask) -> Of {
    Of { lease: Some(ask.name.to_string()), nonce: Some(ask.nonce.0), ..Of::default() }
}

/// The contract says of every error that nothing is known of the effect.
fn unanswered(ask: &Ask, error: &LeaseError) -> (Phase, Of) {
    (Phase::Unknown, Of { word: error.to_string(), ..of(ask) })
}
