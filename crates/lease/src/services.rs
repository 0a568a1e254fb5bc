//! The lock services there are: the one list of them, in the order of the table that the README shows.

use crate::Capabilities;

/// What each of them gives.
pub const SERVICES: &[Capabilities] = &[
    crate::sqlite::CAPABILITIES,
    crate::postgres::CAPABILITIES,
    crate::postgres_advisory::CAPABILITIES,
    crate::etcd::CAPABILITIES,
    crate::redis::CAPABILITIES,
    crate::redlock::CAPABILITIES,
];
