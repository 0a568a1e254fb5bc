//! The proxy against an echo server: each fault is seen at both ends.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use lab::proxy::{Proxy, Way};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough to say that nothing comes.
const SILENCE: Duration = Duration::from_millis(300);

/// A server that says back what it hears, and a proxy in front of it.
fn echo() -> Proxy {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(n @ 1..) = client.read(&mut buffer) {
                    if client.write_all(&buffer[..n]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Proxy::start(address).expect("a proxy")
}

fn client(proxy: &Proxy) -> TcpStream {
    let client = TcpStream::connect(proxy.address()).expect("a connection");
    client.set_read_timeout(Some(PATIENCE)).expect("a limit");
    client
}

/// Says something and reads what comes back.
fn echoed(client: &mut TcpStream, word: &str) -> std::io::Result<String> {
    client.write_all(word.as_bytes())?;
    let mut heard = vec![0; word.len()];
    client.read_exact(&mut heard)?;
    Ok(String::from_utf8(heard).expect("UTF-8"))
}

fn hears_nothing(client: &mut TcpStream) -> bool {
    client.set_read_timeout(Some(SILENCE)).expect("a limit");
    let heard = client.read(&mut [0; 8]);
    client.set_read_timeout(Some(PATIENCE)).expect("a limit");
    heard.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn passes_and_counts() {
    let proxy = echo();
    assert_eq!(echoed(&mut client(&proxy), "hello").expect("an echo"), "hello");
    assert_eq!((proxy.passed(Way::There), proxy.passed(Way::Back), proxy.accepted()), (5, 5, 1));
}

#[test]
fn a_delay_is_for_each_way() {
    let proxy = echo();
    let mut client = client(&proxy);
    echoed(&mut client, "warm").expect("an echo");
    proxy.delay(Duration::from_millis(100));
    let begun = Instant::now();
    echoed(&mut client, "slow").expect("an echo");
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

#[test]
fn silence_one_way_keeps_what_was_said() {
    let proxy = echo();
    let mut client = client(&proxy);
    proxy.silence(Way::Back);
    client.write_all(b"late").expect("it is sent");
    assert!(hears_nothing(&mut client));
    assert_eq!(proxy.passed(Way::There), 4, "the server heard it");
    proxy.heal();
    let mut heard = [0; 4];
    client.read_exact(&mut heard).expect("what was kept");
    assert_eq!(&heard, b"late");
}

#[test]
fn silence_the_other_way_keeps_the_question() {
    let proxy = echo();
    let mut client = client(&proxy);
    proxy.silence(Way::There);
    client.write_all(b"late").expect("it is sent");
    assert!(hears_nothing(&mut client));
    assert_eq!(proxy.passed(Way::There), 0);
    proxy.heal();
    client.read_exact(&mut [0; 4]).expect("the question arrived after all");
}

#[test]
fn a_half_open_client_is_told_nothing() {
    let proxy = echo();
    let mut old = client(&proxy);
    echoed(&mut old, "warm").expect("an echo");
    proxy.half_open();
    old.write_all(b"anyone").expect("it seems to be sent");
    assert!(hears_nothing(&mut old));
    assert_eq!(echoed(&mut client(&proxy), "new").expect("new connections work"), "new");
}

#[test]
fn a_reset_is_an_error_at_once() {
    let proxy = echo();
    let mut client = client(&proxy);
    echoed(&mut client, "warm").expect("an echo");
    proxy.reset();
    assert!(echoed(&mut client, "gone").is_err());
}

#[test]
fn a_refused_connection_ends() {
    let proxy = echo();
    proxy.refuse();
    let mut client = client(&proxy);
    assert!(echoed(&mut client, "gone").is_err());
    proxy.heal();
    assert!(echoed(&mut self::client(&proxy), "back").is_ok());
}

#[test]
fn cut_in_the_middle_of_an_answer() {
    let proxy = echo();
    proxy.cut_after(Way::Back, 3);
    let mut client = client(&proxy);
    client.write_all(b"hello").expect("it is sent");
    let mut heard = Vec::new();
    let _ = client.read_to_end(&mut heard);
    assert_eq!(heard, b"hel");
    assert_eq!(echoed(&mut self::client(&proxy), "whole").expect("once only"), "whole");
}
