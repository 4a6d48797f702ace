//! Paths between processes of Highball, as serde writes them: every path arrives as it was, of whatever bytes. One of UTF-8 is
//! a string, any other an array of bytes.
//!
//! `#[serde(with = "highball_text::exact")]` stands before each such field.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What holds paths.
pub trait Paths: Sized {
    /// The form in which they are written.
    type Written: Serialize + DeserializeOwned;

    /// Writes them.
    fn written(&self) -> Self::Written;

    /// Reads them.
    fn read(written: Self::Written) -> Self;
}

/// A path, as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Written {
    /// One of UTF-8.
    Text(String),
    /// Any other.
    Bytes(Vec<u8>),
}

impl Paths for PathBuf {
    type Written = Written;

    fn written(&self) -> Written {
        match self.to_str() {
            Some(text) => Written::Text(text.into()),
            None => Written::Bytes(self.as_os_str().as_bytes().into()),
        }
    }

    fn read(written: Written) -> PathBuf {
        match written {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

impl<T: Paths> Paths for Option<T> {
    type Written = Option<T::Written>;

    fn written(&self) -> Self::Written {
        self.as_ref().map(T::written)
    }

    fn read(written: Self::Written) -> Self {
        written.map(T::read)
    }
}

impl<T: Paths> Paths for Vec<T> {
    type Written = Vec<T::Written>;

    fn written(&self) -> Self::Written {
        self.iter().map(T::written).collect()
    }

    fn read(written: Self::Written) -> Self {
        written.into_iter().map(T::read).collect()
    }
}

/// Writes paths.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<T: Paths, S: Serializer>(paths: &T, serializer: S) -> Result<S::Ok, S::Error> {
    paths.written().serialize(serializer)
}

/// Reads paths.
///
/// # Errors
/// Errors of the deserializer.
pub fn deserialize<'de, T: Paths, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Written::deserialize(deserializer).map(T::read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "crate::exact")]
        path: PathBuf,
        #[serde(with = "crate::exact")]
        other: Option<PathBuf>,
    }

    #[test]
    fn every_path_arrives_as_it_was() {
        for bytes in [&b"/srv/blog"[..], b"/srv/caf\xe9", b"/\x1b\xff", "/ü".as_bytes(), b""] {
            let path = PathBuf::from(OsString::from_vec(bytes.into()));
            for other in [None, Some(path.clone())] {
                let holder = Holder { path: path.clone(), other };
                let text = serde_json::to_string(&holder).unwrap();
                assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), holder, "{text}");
            }
        }
        let text = serde_json::to_string(&Holder { path: "/a".into(), other: None }).unwrap();
        assert_eq!(text, r#"{"path":"/a","other":null}"#);
    }
}
