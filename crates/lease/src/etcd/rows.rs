//! Leases as people see them. Needs `keys.rs`.

use super::reach::unavailable;
use super::{EtcdBackend, keys};
use crate::{LeaseError, LeaseName, LeaseRow};
use etcd_client::{GetOptions, KeyValue};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

const DOING: &str = "inspect";

impl EtcdBackend {
    pub(super) async fn rows(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        let range = format!("{}{prefix}", self.prefix);
        let everything = Some(GetOptions::new().with_prefix());
        let read = self.client.get(range, everything).await.map_err(|error| unavailable(&self.place, DOING, error))?;
        let mut rows = Vec::new();
        let mut left = HashMap::new();
        for (name, holder) in holders(&self.prefix, read.kvs()) {
            let lease = holder.lease();
            if lease != 0 && !left.contains_key(&lease) {
                left.insert(lease, self.left_s(lease).await?);
            }
            let left_s = left.get(&lease).copied();
            if left_s == Some(-1) {
                continue; // it went between the two questions
            }
            let (of, nonce) = keys::whose(holder.value()).unzip();
            rows.push(LeaseRow { name, holder: of, nonce, expires_in_ms: left_s.map(|left| left * 1000) });
        }
        Ok(rows)
    }

    /// -1 for a lease that is not there any more.
    async fn left_s(&mut self, lease: i64) -> Result<i64, LeaseError> {
        let answer = self.client.lease_time_to_live(lease, None).await;
        Ok(answer.map_err(|error| unavailable(&self.place, DOING, error))?.ttl())
    }
}

/// The first of each lock, by name. The others wait.
fn holders<'a>(prefix: &str, found: &'a [KeyValue]) -> BTreeMap<LeaseName, &'a KeyValue> {
    let mut holders: BTreeMap<LeaseName, &KeyValue> = BTreeMap::new();
    for key in found {
        let Some(name) = keys::name_of(prefix, key.key()) else { continue };
        match holders.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(key)),
            Entry::Occupied(mut entry) if key.create_revision() < entry.get().create_revision() => drop(entry.insert(key)),
            Entry::Occupied(_) => {}
        }
    }
    holders
}
