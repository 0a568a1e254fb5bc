//! URLs of databases and lock services, taken apart as far as it needs to tell secrets from the rest. What cannot be taken apart is not shown at all.

/// A URL: `scheme://user:password@place?key=value&…`.
pub(crate) struct SecretUrl<'a> {
    /// Scheme and user.
    head: &'a str,
    /// As it is written: with percent signs, or with characters that no URL may have.
    password: Option<&'a str>,
    /// From the `@`, or from the host where there is no login, to the query.
    place: &'a str,
    query: Vec<(&'a str, Option<&'a str>)>,
}

/// Keys of the query whose values are secrets. The key of a certificate may be a path, or the key itself.
const SECRETS: [&str; 3] = ["password", "sslpassword", "sslkey"];

impl<'a> SecretUrl<'a> {
    /// `None` where a part may be something else than it seems.
    pub(crate) fn parse(url: &'a str) -> Option<SecretUrl<'a>> {
        let start = ["postgres://", "postgresql://", "redis://", "rediss://", "http://", "https://"]
            .into_iter()
            .find(|scheme| url.starts_with(scheme))?
            .len();
        let (before, query) = url.split_once('?').map_or((url, None), |(before, query)| (before, Some(query)));
        // a password with a question mark in it ends in what looks like the query
        if query.is_some_and(|query| query.contains('@')) {
            return None;
        }
        let (head, password, place) = match before[start..].rfind('@').map(|at| before.split_at(start + at)) {
            // the first colon: a user has none, a password may have many
            Some((login, place)) => match login[start..].find(':').map(|at| start + at) {
                Some(colon) => (&login[..colon], Some(&login[colon + 1..]), place),
                None => (login, None, place),
            },
            None if has_port_of_digits(&before[start..]) => (&before[..start], None, &before[start..]),
            None => return None,
        };
        let pairs = query.into_iter().flat_map(|query| query.split('&'));
        let query: Vec<_> =
            pairs.map(|pair| pair.split_once('=').map_or((pair, None), |(key, value)| (key, Some(value)))).collect();
        // a key with percent signs may be any
        let plain = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.[]".contains(c));
        query.iter().all(|(key, _)| plain(key)).then_some(SecretUrl { head, password, place, query })
    }

    /// With `***` for every secret.
    fn shown(&self) -> String {
        let password = if self.password.is_some() { ":***" } else { "" };
        let pairs = self.query.iter().map(|(key, value)| match value {
            Some(_) if SECRETS.contains(&key.to_ascii_lowercase().as_str()) => format!("{key}=***"),
            Some(value) => format!("{key}={value}"),
            None => (*key).to_owned(),
        });
        format!("{}{password}{}{}", self.head, self.place, query(pairs))
    }

    /// Without its password, for a command line, which every user of the machine can read.
    pub(crate) fn without_password(&self) -> String {
        let open = self.query.iter().filter(|(key, _)| !matches!(*key, "password" | "sslpassword"));
        let pairs = open.map(|(key, value)| value.map_or((*key).to_owned(), |value| format!("{key}={value}")));
        format!("{}{}{}", self.head, self.place, query(pairs))
    }

    /// The password as the server wants it. One in the query comes last and counts.
    pub(crate) fn password(&self) -> Option<String> {
        let in_query = self.query.iter().rev().find(|(key, _)| *key == "password").and_then(|(_, value)| *value);
        in_query.or(self.password).map(decoded)
    }
}

fn has_port_of_digits(place: &str) -> bool {
    let authority = place.split('/').next().unwrap_or_default();
    // the colons of an IPv6 address are in brackets
    let after_address = authority.rsplit(']').next().unwrap_or_default();
    after_address.split_once(':').is_none_or(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
}

fn query(pairs: impl Iterator<Item = String>) -> String {
    let pairs: Vec<_> = pairs.collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// `%2F` is `/`. What only looks like it stays as it is.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, others @ ..] = rest {
        let hex = others.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &others[2..]),
            None => (bytes.push(*first), rest = others),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The URL as it may be shown: `postgres://user:***@host/name`.
pub(crate) fn shown(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    SecretUrl::parse(url).map_or_else(|| "***".to_owned(), |url| url.shown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        for (url, expected) in [
            ("postgres://me:secret@db:5432/ledger?sslmode=require", "postgres://me:***@db:5432/ledger?sslmode=require"),
            ("postgresql://me:secret@db/ledger", "postgresql://me:***@db/ledger"),
            ("postgres://me:p@ss:w/rd@db/ledger", "postgres://me:***@db/ledger"),
            ("postgres://me:a/b@c/d:e@[::1]:5432/ledger", "postgres://me:***@[::1]:5432/ledger"),
            ("postgres://me:@db/ledger", "postgres://me:***@db/ledger"),
            ("postgres://h/db?user=u&password=secret", "postgres://h/db?user=u&password=***"),
            (
                "postgres://h/db?Password=a=b&sslpassword=c&sslmode=require",
                "postgres://h/db?Password=***&sslpassword=***&sslmode=require",
            ),
            ("postgres://h/db?sslkey=-----BEGIN", "postgres://h/db?sslkey=***"),
            ("redis://:secret@cache:6379/0", "redis://:***@cache:6379/0"),
            ("rediss://me:secret@cache", "rediss://me:***@cache"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        for url in [
            "sqlite:settled.db",
            "postgres://db/ledger",
            "postgres://me@db/ledger",
            "postgres://me@db",
            "postgres://[::1]:5432/ledger",
            "postgres://db:5432/ledger?sslmode=require&options[search_path]=books",
        ] {
            assert_eq!(shown(url), url);
        }
    }

    #[test]
    fn what_is_not_understood_is_not_shown() {
        for url in [
            "",
            "secret",
            "mysql://me:secret@db/ledger",
            "postgres:me:secret@db/ledger",
            "postgres://me:secret",
            "postgres://me:sec?ret@db/ledger",
            "postgres://db/ledger?p%61ssword=secret",
        ] {
            assert_eq!(shown(url), "***", "{url}");
        }
    }

    #[test]
    fn a_command_line_has_no_password() {
        let apart = |url| SecretUrl::parse(url).map(|url| (url.without_password(), url.password()));
        let expected = |url: &str, password: Option<&str>| Some((url.to_owned(), password.map(str::to_owned)));
        assert_eq!(
            apart("postgres://me:a%2Fb%zz%@db/x?sslmode=require"),
            expected("postgres://me@db/x?sslmode=require", Some("a/b%zz%"))
        );
        assert_eq!(apart("postgres://me:old@db/x?password=new&user=u"), expected("postgres://me@db/x?user=u", Some("new")));
        assert_eq!(apart("postgres://db/x?sslpassword=secret"), expected("postgres://db/x", None));
    }
}
