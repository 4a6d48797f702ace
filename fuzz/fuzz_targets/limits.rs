//! Small limits, so that short inputs reach them.

use std::path::PathBuf;
use std::time::Duration;

use highball_config::Limits;

pub fn limits() -> Limits {
    Limits {
        target_bytes: 200,
        head_bytes: 1000,
        header_fields: 12,
        body_memory_bytes: 100,
        response_buffer_bytes: 100,
        response_spool_bytes: 0,
        connections: 1,
        http2_streams: 1,
        head_timeout: Duration::from_secs(1),
        body_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(1),
        send_timeout: Duration::from_secs(1),
        spool_dir: PathBuf::new(),
        spool_bytes: None,
        buffer_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        hub_bytes: 1 << 20,
        body_bytes_per_second: 0,
    }
}
