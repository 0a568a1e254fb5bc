//! One command and its answer over a connection of its own: the serialization protocol of Redis, version 2.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// A server that is up answers within milliseconds; a frozen one must not hang its test.
const LIMIT: Duration = Duration::from_secs(10);

/// Sends one command. Arrays are answered one element a line, nothing as `(nil)`, errors as errors.
pub(super) fn ask(server: SocketAddr, command: &[&str]) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&server, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut bytes = format!("*{}\r\n", command.len());
    for word in command {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.write_all(bytes.as_bytes())?;
    answer(&mut BufReader::new(stream))
}

fn answer(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| nonsense(line))?;
    match kind {
        "+" | ":" => Ok(rest.to_owned()),
        "-" => Err(io::Error::other(rest.to_owned())),
        "$" | "*" if rest == "-1" => Ok("(nil)".to_owned()),
        "$" => {
            let len: usize = rest.parse().map_err(|_| nonsense(line))?;
            let mut text = vec![0; len + 2];
            from.read_exact(&mut text)?;
            text.truncate(len);
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        "*" => {
            let len: usize = rest.parse().map_err(|_| nonsense(line))?;
            let elements = (0..len).map(|_| answer(from)).collect::<io::Result<Vec<_>>>()?;
            Ok(elements.join("\n"))
        }
        _ => Err(nonsense(line)),
    }
}

fn nonsense(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not an answer of Redis: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn every_kind_of_answer_is_read() {
        let read = |bytes: &str| answer(&mut bytes.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read("+PONG\r\n").as_deref(), Ok("PONG"));
        assert_eq!(read(":-2\r\n").as_deref(), Ok("-2"));
        assert_eq!(read("$5\r\na\r\nbc\r\n").as_deref(), Ok("a\r\nbc"));
        assert_eq!(read("$-1\r\n").as_deref(), Ok("(nil)"));
        assert_eq!(read("*2\r\n$1\r\na\r\n*1\r\n:3\r\n").as_deref(), Ok("a\n3"));
        assert_eq!(read("-ERR no\r\n"), Err("ERR no".to_owned()));
        assert!(read("HTTP/1.1 200\r\n").is_err());
    }
}
