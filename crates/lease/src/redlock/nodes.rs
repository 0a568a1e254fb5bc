//! Several servers, asked at once. Needs `redis/reach.rs`.
//!
//! A server's broken connection is its own affair: it is dropped, made again at the next question, and disturbs no other.

use crate::redis::reach::Server;
use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What each server said, in their order, or why it said nothing.
pub(super) type Answers<T> = Vec<Result<T, String>>;

#[derive(Debug)]
pub(super) struct Nodes(Vec<Node>);

#[derive(Debug)]
struct Node {
    server: Server,
    connection: Option<MultiplexedConnection>,
}

impl Nodes {
    /// Connects to none of them yet.
    pub(super) fn new(servers: Vec<Server>) -> Nodes {
        Nodes(servers.into_iter().map(|server| Node { server, connection: None }).collect())
    }

    /// Asks all of them and waits for all of them, at most `limit`, connecting included. Dropping the future ends every request.
    pub(super) async fn ask<T, F>(
        &mut self,
        limit: Duration,
        request: impl Fn(MultiplexedConnection) -> F + Clone + Send + 'static,
    ) -> Answers<T>
    where
        T: Send + 'static,
        F: Future<Output = RedisResult<T>> + Send,
    {
        let mut asked = JoinSet::new();
        for (at, node) in self.0.iter_mut().enumerate() {
            // comes back only together with an answer
            let (server, kept, request) = (node.server.clone(), node.connection.take(), request.clone());
            asked.spawn(async move { (at, one(&server, kept, limit, request).await) });
        }
        let mut answers: Vec<_> = self.0.iter().map(|_| Err("its request did not end".to_owned())).collect();
        while let Some(ended) = asked.join_next().await {
            let Ok((at, answer)) = ended else { continue };
            answers[at] = answer.map(|(connection, answer)| {
                self.0[at].connection = Some(connection);
                answer
            });
        }
        answers
    }
}

async fn one<T, F: Future<Output = RedisResult<T>>>(
    server: &Server,
    kept: Option<MultiplexedConnection>,
    limit: Duration,
    request: impl FnOnce(MultiplexedConnection) -> F,
) -> Result<(MultiplexedConnection, T), String> {
    let answered = timeout(limit, async {
        let mut connection = match kept {
            Some(connection) => connection,
            None => server.primary(limit).await.map_err(|error| error.to_string())?,
        };
        connection.set_response_timeout(limit);
        let answer = request(connection.clone()).await.map_err(|error| format!("{}: {error}", server.place()))?;
        Ok((connection, answer))
    });
    answered.await.unwrap_or_else(|_| Err(format!("{}: no answer within {limit:?}", server.place())))
}
