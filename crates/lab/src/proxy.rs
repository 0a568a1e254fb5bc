//! A TCP proxy that does to a connection what networks do: delay, silence in one direction or both, half-open ends, resets, and an
//! end in the middle of a message.
//!
//! Bytes of a silent direction are kept and delivered when it is healed, as TCP would by sending them again: a request that its sender
//! gave up long ago can still arrive and take effect.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use crate::Error;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    There,
    /// From the server to the client.
    Back,
}

/// What happens to bytes at this moment.
#[derive(Debug, Default)]
struct Network {
    delay: Duration,
    silent: [bool; 2],
    /// So many more bytes pass before the connection that carries the last of them is closed.
    cut_after: [Option<u64>; 2],
    refuses: bool,
    links: Vec<Link>,
    /// Connections whose client still believes in them.
    half_open: Vec<Link>,
    closed: bool,
}

/// Both ends of one connection, to end it from outside.
#[derive(Debug)]
struct Link {
    client: TcpStream,
    server: TcpStream,
    /// The end of one side is not told to the other.
    mute: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Shared {
    network: Mutex<Network>,
    changed: Condvar,
    passed: [AtomicU64; 2],
    accepted: AtomicU64,
}

/// A listener on a free port of 127.0.0.1 in front of one server. Dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// In front of `server`, which need not be up yet.
    pub fn start(server: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::io("binding a proxy to 127.0.0.1"))?;
        let address = listener.local_addr().map_err(Error::io("reading the address of a proxy"))?;
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, server, &accepting));
        Ok(Self { address, shared })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on every chunk takes so long in each direction.
    pub fn delay(&self, each_way: Duration) {
        self.change(|network| network.delay = each_way);
    }

    /// Nothing passes this way until [`Proxy::heal`], on connections old and new; nobody is told.
    pub fn silence(&self, way: Way) {
        self.change(|network| network.silent[way as usize] = true);
    }

    /// The servers' ends of all connections are closed, the clients' stay open and get no word. New connections work.
    pub fn half_open(&self) {
        self.change(|network| {
            for link in std::mem::take(&mut network.links) {
                link.mute.store(true, Ordering::SeqCst);
                let _ = link.server.shutdown(Shutdown::Both);
                network.half_open.push(link);
            }
        });
    }

    /// Every connection ends with a reset, in both directions.
    pub fn reset(&self) {
        self.change(|network| network.links.drain(..).for_each(Link::reset));
    }

    /// New connections are reset at once, until [`Proxy::heal`].
    pub fn refuse(&self) {
        self.change(|network| network.refuses = true);
    }

    /// After so many more bytes in this direction the connection that carries the last of them is closed. Once.
    pub fn cut_after(&self, way: Way, bytes: u64) {
        self.change(|network| network.cut_after[way as usize] = Some(bytes));
    }

    /// Everything passes again, without delay. Connections that ended have ended.
    pub fn heal(&self) {
        self.change(|network| {
            let (links, half_open) = (std::mem::take(&mut network.links), std::mem::take(&mut network.half_open));
            *network = Network { links, half_open, ..Network::default() };
        });
    }

    /// How many bytes were delivered in this direction so far.
    pub fn passed(&self, way: Way) -> u64 {
        self.shared.passed[way as usize].load(Ordering::Relaxed)
    }

    /// How many connections were made so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut Network)) {
        change(&mut self.shared.lock());
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|network| {
            network.closed = true;
            network.links.drain(..).chain(network.half_open.drain(..)).for_each(Link::reset);
        });
        // wakes the listener, which sees that it is over
        let _ = TcpStream::connect(self.address);
    }
}

impl Link {
    fn reset(self) {
        for end in [&self.client, &self.server] {
            // no time to linger: what is not sent is thrown away, and the other side gets a reset
            let _ = rustix::net::sockopt::set_socket_linger(end, Some(Duration::ZERO));
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, server: SocketAddr, shared: &Arc<Shared>) {
    for client in listener.incoming().filter_map(Result::ok) {
        let mut network = shared.lock();
        if network.closed {
            return;
        }
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        let refuses = network.refuses;
        let server = if refuses { Err(io::ErrorKind::ConnectionRefused.into()) } else { TcpStream::connect(server) };
        let Ok(server) = server else {
            let _ = rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO));
            continue;
        };
        if let Ok(link) = carry(client, server, shared) {
            network.links.push(link);
        }
    }
}

/// Starts the four threads of a connection: a reader and a writer each way.
fn carry(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) -> io::Result<Link> {
    for end in [&client, &server] {
        end.set_nodelay(true)?;
    }
    let mute = Arc::new(AtomicBool::new(false));
    for (way, from, to) in [(Way::There, &client, &server), (Way::Back, &server, &client)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        let (shared, mute) = (Arc::clone(shared), Arc::clone(&mute));
        let (chunks, arriving) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                if chunks.send((Instant::now(), buffer[..n].to_vec())).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || {
            deliver(way, &arriving, &mut to, &shared);
            if !mute.load(Ordering::SeqCst) {
                let _ = to.shutdown(Shutdown::Both);
            }
        });
    }
    Ok(Link { client, server, mute })
}

/// Writes what arrives, when its time has come, until one of the sides has ended.
fn deliver(way: Way, arriving: &mpsc::Receiver<(Instant, Vec<u8>)>, to: &mut TcpStream, shared: &Shared) {
    for (came, mut chunk) in arriving {
        let Some(cut) = wait_for_turn(way, came, &mut chunk, shared) else { return };
        shared.passed[way as usize].fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if to.write_all(&chunk).is_err() || cut {
            return;
        }
    }
}

/// Waits until the chunk may pass, and shortens it where the connection is to be cut inside it. Says whether it is; `None`: the
/// proxy is gone.
fn wait_for_turn(way: Way, came: Instant, chunk: &mut Vec<u8>, shared: &Shared) -> Option<bool> {
    let mut network = shared.lock();
    loop {
        if network.closed {
            return None;
        }
        let due = came + network.delay;
        let now = Instant::now();
        if network.silent[way as usize] {
            network = shared.changed.wait(network).unwrap_or_else(PoisonError::into_inner);
        } else if due > now {
            network = shared.changed.wait_timeout(network, due - now).unwrap_or_else(PoisonError::into_inner).0;
        } else {
            break;
        }
    }
    let left = &mut network.cut_after[way as usize];
    let Some(bytes) = *left else { return Some(false) };
    let len = chunk.len() as u64;
    if len < bytes {
        *left = Some(bytes - len);
        return Some(false);
    }
    chunk.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
    *left = None;
    Some(true)
}
