//! One database, by its URL.

use std::{fmt, ops::Deref, process::Command};

use super::Binaries;
use crate::Error;

/// The URL of one database, with a superuser: `postgres://postgres@127.0.0.1:40123/t_7`.
///
/// It is a `&str` wherever one is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// Takes a URL as it is.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same server, another database.
    pub fn with_database(&self, name: &str) -> Self {
        let (url, query) = match self.0.split_once('?') {
            Some((url, query)) => (url, format!("?{query}")),
            None => (self.0.as_str(), String::new()),
        };
        let authority = url.find("://").map_or(0, |at| at + 3);
        let end = url[authority..].find('/').map_or(url.len(), |at| authority + at);
        Self(format!("{}/{name}{query}", &url[..end]))
    }

    /// Runs SQL with `psql` and returns the rows as lines, columns separated by `|`.
    ///
    /// Each call is a process and a connection of its own: for a look from outside, and for
    /// `create database`. Fails on the first error in the SQL.
    pub fn query(&self, sql: &str) -> Result<String, Error> {
        let output = psql()
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["--set", "ON_ERROR_STOP=1", "--command", sql, &self.0])
            .output()
            .map_err(Error::io("starting psql (package postgresql-client)"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        Err(Error::Ended {
            program: format!("psql {} --command {sql:?}", self.0),
            status: output.status,
            output: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
        })
    }

    /// Creates an empty database beside this one.
    pub fn create_database(&self, name: &str) -> Result<Self, Error> {
        self.query(&format!("create database \"{name}\""))?;
        Ok(self.with_database(name))
    }

    /// Drops a database beside this one, closing whatever is connected to it.
    pub fn drop_database(&self, name: &str) -> Result<(), Error> {
        self.query(&format!("drop database if exists \"{name}\" with (force)")).map(drop)
    }
}

/// The one beside the server if there is a server here, else the one of the PATH: the server
/// may run elsewhere.
fn psql() -> Command {
    match Binaries::find() {
        Ok(binaries) if binaries.dir().join("psql").is_file() => binaries.command("psql"),
        _ => Command::new("psql"),
    }
}

impl Deref for PostgresUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::PostgresUrl;

    #[test]
    fn another_database_of_the_same_server() {
        let other = |url: &str| PostgresUrl::new(url).with_database("t").to_string();
        assert_eq!(other("postgres://me@127.0.0.1:5432/postgres"), "postgres://me@127.0.0.1:5432/t");
        assert_eq!(other("postgres://127.0.0.1"), "postgres://127.0.0.1/t");
        assert_eq!(other("postgres://h/db?sslmode=disable"), "postgres://h/t?sslmode=disable");
    }
}
