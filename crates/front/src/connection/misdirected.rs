//! Requests for a host that the connection was not secured for (RFC 9110 section 15.5.20, RFC 9113 section 9.1.2): the client has
//! checked the certificate of another application.

use super::Connection;
use crate::exchange::response_head::Recipient;

impl Connection {
    /// Whether the client should ask for this host on another connection. Trusted proxies choose the name of a connection for
    /// themselves, and clients that name none in the handshake get a certificate in spite of that.
    pub(super) fn is_misdirected(&self, bytes: &[u8]) -> bool {
        let (Some(https), Some(host)) = (&self.shared.https, self.request.head.host()) else { return false };
        let host = host.name(bytes);
        let host = host.strip_suffix(b".").unwrap_or(host);
        self.stream.look_at_server_name(|name| {
            let Some(name) = name.filter(|name| !host.eq_ignore_ascii_case(name.as_bytes())) else {
                return false;
            };
            let host = String::from_utf8_lossy(host).to_ascii_lowercase();
            self.recipient() != Recipient::Proxy && https.tls.is_misdirected(name, &host)
        })
    }
}
