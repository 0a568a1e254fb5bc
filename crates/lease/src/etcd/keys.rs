//! What is stored, and the transactions on it. Needs nothing of its neighbours.
//!
//! The layout is that of the mutex of etcd's Go client (`concurrency.Mutex`), which `etcdctl lock` uses as well: one key for each who
//! holds or waits, `<prefix><lease name>/<etcd lease in hexadecimal>`, and the lock is his whose key was created first. Our value says
//! whose grant it is; the Go client writes none, and whoever reads it knows that it is none of ours.

use crate::{Ask, LeaseName, Nonce};
use domain::ids::HolderId;
use etcd_client::{
    Compare, CompareOp, GetOptions, KeyValue, PutOptions, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse,
};
use uuid::Uuid;

/// The lock of one name: all its keys begin like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock(String);

impl Lock {
    pub(super) fn of(prefix: &str, name: &LeaseName) -> Lock {
        Lock(format!("{prefix}{name}/"))
    }

    /// The key of whoever has that etcd lease.
    pub(super) fn key(&self, lease: i64) -> String {
        format!("{}{lease:x}", self.0)
    }

    /// Puts the key, if the lock has no key at all; else reads the first. A comparison over a range holds when the range is empty.
    pub(super) fn take(&self, ask: &Ask, lease: i64) -> Txn {
        let nobody = Compare::create_revision(self.0.clone(), CompareOp::Equal, 0).with_prefix();
        Txn::new().when([nobody]).and_then([self.put(ask, lease)]).or_else([self.first()])
    }

    /// Puts the key behind all others, if it is not there, and reads the two newest: itself, and whom it waits for. Else reads it.
    pub(super) fn queue(&self, ask: &Ask, lease: i64) -> Txn {
        let key = self.key(lease);
        let newest = GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Descend).with_limit(2);
        Txn::new()
            .when([Compare::create_revision(key.clone(), CompareOp::Equal, 0)])
            .and_then([self.put(ask, lease), TxnOp::get(self.0.clone(), Some(newest))])
            .or_else([TxnOp::get(key, None)])
    }

    /// If the key is still the one of that revision: reads who is first.
    pub(super) fn who_is_first(&self, key: &str, revision: i64) -> Txn {
        Txn::new().when([unchanged(key, revision)]).and_then([self.first()])
    }

    /// If the key is still the one of that revision: reads the newest of the older ones.
    pub(super) fn who_is_before(&self, key: &str, revision: i64) -> Txn {
        let older = GetOptions::new().with_prefix().with_max_create_revision(revision - 1);
        let newest = older.with_sort(SortTarget::Create, SortOrder::Descend).with_limit(1);
        Txn::new().when([unchanged(key, revision)]).and_then([TxnOp::get(self.0.clone(), Some(newest))])
    }

    /// Everybody, in the order in which they came.
    pub(super) fn everybody(&self) -> (String, GetOptions) {
        (self.0.clone(), GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend))
    }

    fn first(&self) -> TxnOp {
        let (range, everybody) = self.everybody();
        TxnOp::get(range, Some(everybody.with_limit(1)))
    }

    fn put(&self, ask: &Ask, lease: i64) -> TxnOp {
        TxnOp::put(self.key(lease), value(ask), Some(PutOptions::new().with_lease(lease)))
    }
}

/// Nothing but the question whether the key is still the one of that revision.
///
/// The read is there to be read: a transaction of comparisons alone counts as one that may be answered from memory, and a member
/// that was paused or cut off would answer it with what it remembers.
pub(super) fn prove(key: &str, revision: i64) -> Txn {
    Txn::new().when([unchanged(key, revision)]).and_then([TxnOp::get(key, Some(GetOptions::new().with_count_only()))])
}

/// Deletes the key, if it is still the one of that revision.
pub(super) fn delete(key: &str, revision: i64) -> Txn {
    Txn::new().when([unchanged(key, revision)]).and_then([TxnOp::delete(key, None)])
}

/// Puts the key under another etcd lease, if it is still the one of that revision; its revision of creation stays.
pub(super) fn hand_over(key: &str, revision: i64, lease: i64) -> Txn {
    let options = PutOptions::new().with_ignore_value().with_lease(lease);
    Txn::new().when([unchanged(key, revision)]).and_then([TxnOp::put(key, "", Some(options))])
}

fn unchanged(key: &str, revision: i64) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, revision)
}

/// Whose grant it is.
pub(super) fn value(ask: &Ask) -> String {
    format!("{} {}", ask.holder.0, ask.nonce.0)
}

/// Whose grant it is; nothing where a program of others put the key.
pub(super) fn whose(value: &[u8]) -> Option<(HolderId, Nonce)> {
    let (holder, nonce) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    Some((HolderId(Uuid::parse_str(holder).ok()?), Nonce(Uuid::parse_str(nonce).ok()?)))
}

/// Which lease a key belongs to; nothing where the key is none of ours in form.
pub(super) fn name_of(prefix: &str, key: &[u8]) -> Option<LeaseName> {
    let (name, lease) = std::str::from_utf8(key).ok()?.strip_prefix(prefix)?.rsplit_once('/')?;
    i64::from_str_radix(lease, 16).ok()?;
    name.parse().ok()
}

/// What the last read of a transaction found.
pub(super) fn found(answer: &TxnResponse) -> Vec<KeyValue> {
    let mut responses = answer.op_responses().into_iter().rev();
    let read = responses.find_map(|response| match response {
        TxnOpResponse::Get(mut read) => Some(read.take_kvs()),
        _ => None,
    });
    read.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_layout_is_that_of_the_go_client() {
        let lock = Lock::of("settled/", &"ledger/unit/3".parse().expect("a name"));
        assert_eq!(lock.key(0x694d_8f4a_2b1c_0d3e), "settled/ledger/unit/3/694d8f4a2b1c0d3e");
        let name = name_of("settled/", lock.key(255).as_bytes()).expect("ours");
        assert_eq!(name.as_str(), "ledger/unit/3");
        for foreign in ["other/ledger/unit/3/ff", "settled/ff", "settled/ledger/unit/three", "settled/a b/ff"] {
            assert_eq!(name_of("settled/", foreign.as_bytes()), None, "{foreign}");
        }
    }

    #[test]
    fn a_value_says_whose_it_is() {
        let ask = Ask {
            name: "x".parse().expect("a name"),
            holder: HolderId(Uuid::from_u128(1)),
            nonce: Nonce(Uuid::from_u128(2)),
            ttl: Duration::ZERO,
        };
        assert_eq!(whose(value(&ask).as_bytes()), Some((ask.holder, ask.nonce)));
        assert_eq!(whose(b""), None, "the Go client's");
        assert_eq!(whose(b"one two"), None);
    }
}
