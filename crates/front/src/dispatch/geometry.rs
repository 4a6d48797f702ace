//! How large the rings are, and which places of a worker are for whom.

use highball_config::{App, Limits};
use highball_ring::request::{FIELD_BYTES, FIXED_BYTES};
use highball_ring::Geometry;

use crate::transport::tls::clients::MOST_BYTES_IN_HEAD;

/// Most requests placed ahead in a ring, beyond what its threads can begin.
const LOOK_AHEAD: u32 = 32;

/// The part of the places that are kept from [kinds](super::kinds) of requests that crowd a worker, rounded up.
const RESERVED_PART: u32 = 8;

/// The rings of an application that fit what clients may send: a slot holds the largest head and the largest body that is not
/// spooled.
pub fn geometry(limits: &Limits, app: &App) -> Geometry {
    // In the head block a name takes the prefix `HTTP_` and lengths beside it; the request line is repeated in several
    // fields, and so is the host, which may be as long as a head. A client's certificate comes beside what it sends.
    let fields = limits.header_fields * (FIELD_BYTES + 8);
    let request_line = 3 * limits.target_bytes + 1024;
    let certificate = if app.client_certificates.are_asked_for() { MOST_BYTES_IN_HEAD } else { 0 };
    let head_block = FIXED_BYTES + 2 * limits.head_bytes + fields + request_line + certificate;
    let most = Geometry::new(u32::from(app.threads.most), LOOK_AHEAD, head_block + limits.body_memory_bytes);
    Geometry { least_threads: u32::from(app.threads.least), ..most }
}

/// How many places of a worker are for all kinds, if it may have between these numbers of threads.
pub(super) fn common_places(least: u32, most: u32) -> u32 {
    if least == most {
        return u32::MAX;
    }
    most - most.div_ceil(RESERVED_PART).min(most - least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_the_places_is_kept() {
        let kept = |least, most| most - common_places(least, most);
        assert_eq!([kept(3, 32), kept(3, 8), kept(1, 2), kept(3, 4), kept(31, 32)], [4, 1, 1, 1, 1]);
        assert_eq!(common_places(3, 3), u32::MAX);
    }
}
