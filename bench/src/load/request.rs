//! A request as it goes over the wire.

use crate::workload::Request;

/// What a body is made of.
pub(crate) const BODY_BYTE: u8 = b'x';

/// The request's head, with the empty line behind it.
pub(crate) fn head(request: &Request, host: &str, keep_alive: bool) -> String {
    let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if request.body_bytes > 0 || matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
        head.push_str(&format!("Content-Length: {}\r\n", request.body_bytes));
    }
    if !keep_alive {
        head.push_str("Connection: close\r\n");
    }
    head + "\r\n"
}
