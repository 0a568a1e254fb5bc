//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};

use crate::Error;

/// A TCP port of 127.0.0.1 on which nobody listens at this moment.
///
/// Somebody else may take it before the caller binds it, and a process just being forked holds
/// it for a moment: a server that cannot bind must be started again on another one, as
/// [`crate::postgres`] does.
pub fn free() -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(Error::io("asking for a free port of 127.0.0.1"))
}
