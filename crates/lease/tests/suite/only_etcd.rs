//! What only etcd has.

pub(crate) type EtcdCase = (&'static str, fn() -> Result<(), lab::Error>);

pub(crate) const CASES: &[EtcdCase] = &[];
