//! The little HTTP that a member's gateway needs: one question, one answer, a field of it.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// A member that is busy answers late; one that is frozen never.
const LIMIT: Duration = Duration::from_secs(2);

/// Asks a member on that port. `body`: a `POST` of JSON, else a `GET`.
pub(super) fn ask(port: u16, path: &str, body: Option<&str>) -> io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    let (verb, body) = body.map_or(("GET", ""), |body| ("POST", body));
    // 1.0, so that the answer ends with the connection and is not in chunks
    write!(stream, "{verb} {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The value of the first `"name":"value"` of a JSON text.
pub(super) fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let json = r#"{"header":{"member_id":"12"},"leaders":"no","leader":"34"}"#;
        assert_eq!(field(json, "leader"), Some("34"));
        assert_eq!(field(json, "member_id"), Some("12"));
        assert_eq!(field(json, "raft"), None);
    }
}
