//! Files of an application that hold secrets.

use highball_tenant::{Links, TenantFolder};
use std::io::Read;

/// What is read of each, in bytes.
const FILE_BYTES: u64 = 64 * 1024;
/// Files with settings, some of them secret.
pub(crate) const SETTINGS: &[&str] = &[
    ".env",
    ".env.local",
    ".env.development",
    ".env.development.local",
    ".env.test",
    ".env.production",
    ".bundle/config",
    "config/application.yml",
    "config/cable.yml",
    "config/database.yml",
    "config/mongoid.yml",
    "config/redis.yml",
    "config/secrets.yml",
    "config/storage.yml",
];
/// Files that are a secret as a whole.
pub(crate) const KEYS: &[&str] = &[
    "config/master.key",
    "config/credentials/development.key",
    "config/credentials/production.key",
    "config/credentials/staging.key",
    "config/credentials/test.key",
];

/// The beginning of a file; nothing if it cannot be read or is no file.
pub(crate) fn read_start(folder: &TenantFolder, name: &str) -> String {
    let mut bytes = Vec::new();
    if let Ok((file, _)) = folder.file(name, Links::Anywhere) {
        let _ = file.take(FILE_BYTES).read_to_end(&mut bytes); // after an error, the text ends there
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
