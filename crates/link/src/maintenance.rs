//! Maintenance of an application: what `highball maintenance on` writes into a file, and the server reads.

use highball_config::{networks, Network};
use serde::{Deserialize, Serialize};

/// Default time after which visitors are asked to come back, in seconds.
const RETRY_AFTER_SECONDS: u32 = 600;

/// Longest file, in bytes.
pub const NOTICE_BYTES: u64 = 16 * 1024;

/// Shortest key in the link by which a browser passes, in bytes: a shorter one could be guessed.
const KEY_BYTES: usize = 16;

/// The state in which visitors get a page instead of the application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MaintenanceNotice {
    /// Message on the page.
    pub message: Option<String>,
    /// Time of the switch, in milliseconds since 1970; 0 if unknown.
    pub since_ms: u64,
    /// Time after which visitors are asked to come back.
    pub retry_after_seconds: u32,
    /// Clients that reach the application: addresses and networks.
    pub allow: Vec<String>,
    /// The key in the link by which a browser passes.
    pub key: Option<String>,
}

impl Default for MaintenanceNotice {
    fn default() -> Self {
        let retry_after_seconds = RETRY_AFTER_SECONDS;
        MaintenanceNotice { message: None, since_ms: 0, retry_after_seconds, allow: Vec::new(), key: None }
    }
}

impl MaintenanceNotice {
    /// Reads the notice in a file. An empty file is a notice without a message.
    ///
    /// # Errors
    /// The mistake in a malformed file.
    pub fn read(text: &[u8]) -> Result<(MaintenanceNotice, Vec<Network>), String> {
        if text.trim_ascii().is_empty() {
            return Ok(Default::default());
        }
        let notice: MaintenanceNotice = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if notice.key.as_ref().is_some_and(|key| key.len() < KEY_BYTES) {
            return Err(format!("its key has fewer than {KEY_BYTES} characters"));
        }
        let allowed = notice.allow.iter().map(|text| networks(text)).collect::<Result<Vec<_>, _>>()?;
        Ok((notice, allowed.concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_read() {
        assert_eq!(MaintenanceNotice::read(b" \n").unwrap().0, MaintenanceNotice::default());
        let text =
            br#"{"message": "Back at noon", "retry_after_seconds": 60, "allow": ["10.0.0.0/8", "loopback"]}"#;
        let (notice, allowed) = MaintenanceNotice::read(text).unwrap();
        assert_eq!((notice.message.as_deref(), notice.retry_after_seconds), (Some("Back at noon"), 60));
        assert!(Network::any_contains(&allowed, "10.1.2.3".parse().unwrap()));
        assert!(!Network::any_contains(&allowed, "11.1.2.3".parse().unwrap()));
        for wrong in [&b"down"[..], b"[1]", br#"{"allow": ["everybody"]}"#, br#"{"key": "short"}"#, b"\xff"] {
            assert!(MaintenanceNotice::read(wrong).is_err());
        }
    }
}
