//! What stands below the protocols: how connections come, and from whom.

pub mod proxy_header;
