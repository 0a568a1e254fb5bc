//! A lease as a key of Redis, and the few requests there are about it. Shared with `redlock.rs`. Needs `contract.rs`.
//!
//! The key is the prefix and the lease's name, the value is `<holder> <nonce>`. A lease that is there has an expiry from its first
//! instant: one command or one script sets both, and nothing here sets one without the other.

use crate::{Ask, LeaseName, Nonce};
use domain::ids::HolderId;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind};
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// What is there when `SET … NX` was refused. Our own value is the repeat of a request whose reply was lost: extended, in the step
/// that compares it.
const OURS_OR_WHOSE: &str = "\
local value = redis.call('GET', KEYS[1])
if value == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {1, value, 0}
end
return {0, value, redis.call('PTTL', KEYS[1])}";

/// An expired key reads as absent, so nothing expired is revived.
const EXTEND: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0";

const GIVE_UP: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0";

/// The answer to [`take`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    Ours,
    Theirs(Stored),
}

/// A key as it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Nothing where it is no string, or went away meanwhile.
    pub(crate) value: Option<Vec<u8>>,
    /// Nothing where it has no expiry, or went away meanwhile.
    pub(crate) left_ms: Option<i64>,
}

/// Sets the key with its expiry, if there is none.
pub(crate) async fn take(connection: &mut MultiplexedConnection, prefix: &Prefix, ask: &Ask) -> RedisResult<Taken> {
    let mut set = redis::cmd("SET");
    set.arg(prefix.key(&ask.name)).arg(value(ask)).arg("NX").arg("PX").arg(millis(ask.ttl));
    let set: Option<String> = set.query_async(connection).await?;
    if set.is_some() {
        return Ok(Taken::Ours);
    }
    let (ours, value, left): (bool, Option<Vec<u8>>, i64) = run(connection, OURS_OR_WHOSE, prefix, ask).await?;
    Ok(if ours { Taken::Ours } else { Taken::Theirs(Stored { value, left_ms: (left >= 0).then_some(left) }) })
}

/// Whether it was ours and unexpired, and is for another TTL.
pub(crate) async fn extend(connection: &mut MultiplexedConnection, prefix: &Prefix, ask: &Ask) -> RedisResult<bool> {
    run(connection, EXTEND, prefix, ask).await
}

/// Whether it was ours and unexpired. It is not there now.
pub(crate) async fn give_up(connection: &mut MultiplexedConnection, prefix: &Prefix, ask: &Ask) -> RedisResult<bool> {
    run(connection, GIVE_UP, prefix, ask).await
}

/// By its digest; in full where the server does not know it, which it then does.
async fn run<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    code: &'static str,
    prefix: &Prefix,
    ask: &Ask,
) -> RedisResult<T> {
    let call = |command: &str, script: &str| -> Cmd {
        let mut call = redis::cmd(command);
        call.arg(script).arg(1).arg(prefix.key(&ask.name)).arg(value(ask)).arg(millis(ask.ttl));
        call
    };
    match call("EVALSHA", Script::new(code).get_hash()).query_async(connection).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            call("EVAL", code).query_async(connection).await
        }
        answer => answer,
    }
}

/// The keys whose leases begin with `begin`, in no order, a key perhaps twice. Looks at every key of the database.
pub(crate) async fn list(
    connection: &mut MultiplexedConnection,
    prefix: &Prefix,
    begin: &str,
) -> RedisResult<Vec<(LeaseName, Stored)>> {
    let (mut cursor, mut found) = (0u64, Vec::new());
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(prefix.pattern(begin)).arg("COUNT").arg(1000);
        let (next, keys): (u64, Vec<Vec<u8>>) = scan.query_async(connection).await?;
        if !keys.is_empty() {
            // MGET reads a key of another type as nothing, where GET would fail
            let mut look = redis::pipe();
            look.cmd("MGET").arg(&keys);
            for key in &keys {
                look.cmd("PTTL").arg(key);
            }
            let answers: Vec<redis::Value> = look.query_async(connection).await?;
            found.extend(stored(prefix, &keys, answers)?);
        }
        if next == 0 {
            return Ok(found);
        }
        cursor = next;
    }
}

/// Without those that went away meanwhile, and those that cannot be a lease.
fn stored(prefix: &Prefix, keys: &[Vec<u8>], answers: Vec<redis::Value>) -> RedisResult<Vec<(LeaseName, Stored)>> {
    let mut answers = answers.into_iter();
    let values: Vec<Option<Vec<u8>>> = redis::from_redis_value(answers.next().unwrap_or(redis::Value::Nil))?;
    let left = answers.map(redis::from_redis_value).collect::<Result<Vec<i64>, _>>()?;
    let rows = keys.iter().zip(values).zip(left).filter(|(_, left)| *left != GONE);
    Ok(rows
        .filter_map(|((key, value), left)| Some((prefix.name(key)?, Stored { value, left_ms: (left >= 0).then_some(left) })))
        .collect())
}

/// What PTTL says of a key that is not there.
const GONE: i64 = -2;

/// What every key begins with.
#[derive(Debug, Clone)]
pub(crate) struct Prefix(pub(crate) String);

impl Prefix {
    pub(crate) fn key(&self, name: &LeaseName) -> String {
        format!("{}{name}", self.0)
    }

    fn name(&self, key: &[u8]) -> Option<LeaseName> {
        let name = std::str::from_utf8(key).ok()?.strip_prefix(&self.0)?;
        LeaseName::from_str(name).ok()
    }

    /// A pattern of SCAN that means these characters and nothing else.
    fn pattern(&self, begin: &str) -> String {
        let literal = self.0.chars().chain(begin.chars()).flat_map(|c| {
            let special = matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-');
            special.then_some('\\').into_iter().chain([c])
        });
        literal.chain(['*']).collect()
    }
}

pub(crate) fn value(ask: &Ask) -> String {
    format!("{} {}", ask.holder, ask.nonce.0)
}

/// Whose value it is, where it is one of ours.
pub(crate) fn owner(value: &[u8]) -> Option<(HolderId, Nonce)> {
    let (holder, nonce) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    Some((HolderId(Uuid::from_str(holder).ok()?), Nonce(Uuid::from_str(nonce).ok()?)))
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        let prefix = Prefix("settled:".to_owned());
        assert_eq!(prefix.pattern("a/b"), "settled:a/b*");
        assert_eq!(prefix.pattern(r"[a-b]*?\^"), r"settled:\[a\-b\]\*\?\\\^*");
    }

    #[test]
    fn a_value_says_whose_it_is() {
        let ask = Ask {
            name: LeaseName::from_str("a").expect("a name"),
            holder: HolderId(Uuid::from_u128(1)),
            nonce: Nonce(Uuid::from_u128(2)),
            ttl: Duration::from_secs(1),
        };
        assert_eq!(owner(value(&ask).as_bytes()), Some((ask.holder, ask.nonce)));
        assert_eq!(owner(b"somebody else"), None);
        assert_eq!(owner(&[0xff]), None);
    }

    /// L17: a lock without an expiry outlives a crash for ever.
    #[test]
    fn nothing_is_set_without_an_expiry() {
        for script in [OURS_OR_WHOSE, EXTEND, GIVE_UP] {
            for forbidden in ["'SET'", "SETNX", "PERSIST", "INCR"] {
                assert!(!script.contains(forbidden), "{forbidden} in {script}");
            }
        }
    }
}
