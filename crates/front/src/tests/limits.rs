//! Limits for tests; each changes those that it is about.

use std::path::PathBuf;
use std::time::Duration;

use highball_config::Limits;

pub(crate) fn limits() -> Limits {
    Limits {
        target_bytes: 1000,
        head_bytes: 10_000,
        header_fields: 50,
        body_memory_bytes: 1000,
        response_buffer_bytes: 1000,
        response_spool_bytes: 0,
        buffer_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        connections: 10,
        http2_streams: 10,
        head_timeout: Duration::from_secs(1),
        body_timeout: Duration::from_secs(1),
        body_bytes_per_second: 0,
        idle_timeout: Duration::from_secs(1),
        send_timeout: Duration::from_secs(1),
        spool_dir: PathBuf::new(),
        spool_bytes: None,
    }
}
