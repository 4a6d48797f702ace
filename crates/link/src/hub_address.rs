//! The address of the hub, for processes of applications.

use highball_config::AppId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// Bytes of the secret.
pub const HUB_SECRET_BYTES: usize = 32;

/// Bytes of a key: 128 bits cannot be guessed.
const KEY_BYTES: usize = 16;

/// Messages that a server process can number before its numbers meet those of the next one.
const MOST_MESSAGES: u64 = 1 << 40;

/// How a server process numbers the messages of each application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubSequence {
    /// Random number of the first process in a row of hot restarts.
    pub epoch: u64,
    /// Number before the first message of this process.
    pub after: u64,
}

impl HubSequence {
    /// Returns the sequence of the process that takes over. Its numbers are larger than all of this one's.
    pub fn of_next_process(self) -> HubSequence {
        HubSequence { after: self.after.saturating_add(MOST_MESSAGES), ..self }
    }
}

/// The socket of the hub, and the keys of applications.
pub struct HubAddress {
    /// Name of the abstract socket.
    name: String,
    secret: [u8; HUB_SECRET_BYTES],
}

impl fmt::Debug for HubAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HubAddress({})", self.name)
    }
}

impl HubAddress {
    /// Returns the address of the abstract socket with this name. Keys depend on the secret.
    pub fn new(name: String, secret: [u8; HUB_SECRET_BYTES]) -> HubAddress {
        HubAddress { name, secret }
    }

    /// Returns the address for processes of this application: `NAME/APP/KEY`. They send the part after the first slash.
    pub fn of(&self, app: AppId) -> String {
        format!("{}/{}", self.name, self.credentials(app))
    }

    /// Returns the sequence of a process that takes over from no other. Its epoch differs between processes.
    pub fn sequence(&self) -> HubSequence {
        let digest = Sha256::new().chain_update(self.secret).chain_update(b"epoch").finalize();
        HubSequence { epoch: u64::from_le_bytes(*digest.first_chunk().unwrap_or(&[0; 8])), after: 0 }
    }

    fn credentials(&self, app: AppId) -> String {
        let digest = Sha256::new().chain_update(self.secret).chain_update(app.0.to_le_bytes()).finalize();
        let key: String = digest[..KEY_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}/{key}", app.0)
    }

    /// Returns the application whose key is in these credentials.
    pub fn app_with(&self, credentials: &str) -> Option<AppId> {
        let (app, _) = credentials.split_once('/')?;
        let app = AppId(app.parse().ok()?);
        // Comparing digests reveals nothing by its time.
        let is_right = Sha256::digest(credentials) == Sha256::digest(self.credentials(app));
        is_right.then_some(app)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_good_for_one_application() {
        let [hub, other] = [1, 2].map(|byte| HubAddress::new("hub".into(), [byte; HUB_SECRET_BYTES]));
        let address = hub.of(AppId(7));
        let (name, credentials) = address.split_once('/').unwrap();
        assert_eq!(name, "hub");
        assert_eq!(hub.app_with(credentials), Some(AppId(7)));
        assert_eq!(other.app_with(credentials), None);
        assert_eq!(hub.app_with(&credentials.replacen('7', "8", 1)), None);
        for wrong in ["", "7", "7/", "x/y", &credentials[..credentials.len() - 1]] {
            assert_eq!(hub.app_with(wrong), None, "{wrong}");
        }
    }
}
