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

/// So many of them, all different.
pub fn several(count: usize) -> Result<Vec<u16>, Error> {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("asking for free ports of 127.0.0.1"));
    // held until all are there, or the system may give one of them twice
    let held = (0..count).map(bind).collect::<Result<Vec<_>, _>>()?;
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    held.iter().map(port).collect::<Result<_, _>>().map_err(Error::io("reading free ports of 127.0.0.1"))
}
