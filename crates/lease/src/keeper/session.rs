//! One connection at a time, and one rule: **a connection that did not answer is never used again.**
//!
//! The reply of a request that timed out may still arrive and would be taken for the answer to the next one. So a backend goes back
//! into its place only together with an answer; an error, a timeout or a cancelled future drops it, and the next request connects.

use crate::{Backend, Connector, LeaseError, TokenSource};
use std::time::Duration;

pub(super) struct Session {
    connector: Box<dyn Connector>,
    backend: Option<Box<dyn Backend>>,
    source: TokenSource,
    kind: &'static str,
    reached: bool,
}

impl Session {
    pub(super) fn new(connector: Box<dyn Connector>) -> Session {
        let kind = connector.capabilities().name;
        Session { connector, backend: None, source: TokenSource::LedgerMinted, kind, reached: false }
    }

    /// Who makes the tokens of the service that answered last.
    pub(super) fn source(&self) -> &TokenSource {
        &self.source
    }

    /// Whether there ever was a connection.
    pub(super) fn was_reached(&self) -> bool {
        self.reached
    }

    /// Asks the service, within `limit`, connecting included.
    ///
    /// A connection that sat idle may have been closed by the other side unseen, so a failure on it is repeated once on a new
    /// one: `request` may run twice, and must be the same question both times.
    pub(super) async fn ask<T>(
        &mut self,
        doing: &'static str,
        limit: Duration,
        mut request: impl AsyncFnMut(&mut dyn Backend) -> Result<T, LeaseError>,
    ) -> Result<T, LeaseError> {
        let mut idle = self.backend.take();
        let answered = tokio::time::timeout(limit, async {
            if let Some(mut backend) = idle.take()
                && let Ok(answer) = request(&mut *backend).await
            {
                return Ok((backend, answer));
            }
            let mut backend = self.connect().await?;
            let answer = request(&mut *backend).await?;
            Ok((backend, answer))
        })
        .await;
        match answered {
            Ok(Ok((backend, answer))) => {
                self.backend = Some(backend);
                Ok(answer)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(LeaseError::TimedOut { what: self.kind.to_owned(), doing, after: limit }),
        }
    }

    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let backend = self.connector.connect().await?;
        self.kind = backend.kind();
        self.reached = true;
        self.source = backend.token_source();
        Ok(backend)
    }
}
