//! How large the rings are.

use highball_config::Limits;
use highball_ring::request::{FIELD_BYTES, FIXED_BYTES};
use highball_ring::Geometry;

/// Most requests placed ahead in a ring, beyond those that its threads can begin.
const LOOK_AHEAD: u32 = 32;

/// The rings that fit what clients may send: a slot holds the largest head and the largest body that is not
/// spooled.
pub fn geometry(limits: &Limits, threads: u16) -> Geometry {
    // In the head block a name takes the prefix `HTTP_` and lengths beside it; the request line is repeated in several
    // fields, and so is the host, which may be as long as a head.
    let fields = limits.header_fields * (FIELD_BYTES + 8);
    let request_line = 3 * limits.target_bytes + 1024;
    let head_block = FIXED_BYTES + 2 * limits.head_bytes + fields + request_line;
    Geometry::new(u32::from(threads), LOOK_AHEAD, head_block + limits.body_memory_bytes)
}
