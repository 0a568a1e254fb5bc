//! Values that are never printed whole.

use super::url::shown;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A password.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For who must know it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { "***" }
    }
}

impl From<String> for Secret {
    fn from(word: String) -> Self {
        Secret(word)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

/// Addresses with commas between them, each of which may carry a password. A comma in a password is written `%2C`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Urls(String);

impl Urls {
    pub(crate) fn list(&self) -> Vec<String> {
        super::locks::listed(&self.0)
    }

    /// Where one of them cannot be taken apart, a comma was perhaps none between addresses: then nothing is shown.
    fn shown(&self) -> String {
        let shown: Vec<_> = self.list().iter().map(|url| address(url)).collect();
        if shown.iter().any(|url| url == "***") { "***".to_owned() } else { shown.join(",") }
    }
}

/// `host:port` is an address too.
fn address(url: &str) -> String {
    let is_plain = !url.is_empty() && url.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-_[]".contains(&byte));
    if is_plain { url.to_owned() } else { shown(url) }
}

impl From<&str> for Urls {
    fn from(words: &str) -> Self {
        Urls(words.to_owned())
    }
}

impl fmt::Debug for Urls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl Serialize for Urls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_printed() {
        let urls = Urls::from("redis://me:s3cr3t@a:6379, rediss://:s3cr3t@b,redis://c");
        let shown = "redis://me:***@a:6379,rediss://:***@b,redis://c";
        assert_eq!(format!("{urls:?}"), format!("{shown:?}"));
        assert_eq!(serde_json::to_string(&urls).expect("JSON"), format!("{shown:?}"));
        let secret = Secret::from("s3cr3t".to_owned());
        assert_eq!((format!("{secret:?}"), serde_json::to_string(&secret).expect("JSON")), ("\"***\"".into(), "\"***\"".into()));
        assert_eq!(secret.expose(), "s3cr3t");
    }

    #[test]
    fn a_list_that_is_not_understood_is_not_shown() {
        for (words, expected) in [
            ("a:2379,b:2379", "a:2379,b:2379"),
            ("https://a:2379,http://[::1]:2379", "https://a:2379,http://[::1]:2379"),
            ("http://u:s3cr3t@a:2379", "http://u:***@a:2379"),
            ("redis://u:1234,56@h", "***"),
            ("u:s3cr3t@h:1", "***"),
        ] {
            assert_eq!(Urls::from(words).shown(), expected);
        }
    }

    #[test]
    fn a_list_may_have_spaces_and_ends() {
        assert_eq!(Urls::from(" a ,b,").list(), ["a", "b"]);
        assert!(Urls::default().list().is_empty());
    }
}
