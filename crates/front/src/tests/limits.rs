//! Limits for tests; each changes the limits that it is about.

use highball_config::Limits;

pub(crate) fn limits() -> Limits {
    Limits {
        target_bytes: 1000,
        head_bytes: 10_000,
        header_fields: 50,
        body_memory_bytes: 1000,
        response_buffer_bytes: 1000,
        buffer_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        connections: 10,
        http2_streams: 10,
        ..Limits::default()
    }
}
