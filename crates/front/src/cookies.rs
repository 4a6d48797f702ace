//! Cookies of the front (RFC 6265): their values in requests, and the line that gives one to a client.

/// The values of the cookies with this name in the value of a `Cookie` field. The name ends with `=`.
pub(crate) fn values_in<'a>(cookies: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    cookies.split(|byte| *byte == b';').filter_map(move |cookie| cookie.trim_ascii().strip_prefix(name))
}

/// The line of an answer by which a client gets this cookie, below a path of the server (empty: everywhere). `kept`: for how many
/// seconds; `None`: until the browser is closed.
pub(crate) fn set_cookie_line(cookie: &str, path: &str, kept: Option<u32>, is_tls: bool) -> Vec<u8> {
    let path = if path.is_empty() { "/" } else { path };
    let kept = kept.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    let secure = if is_tls { "; Secure" } else { "" };
    format!("set-cookie: {cookie}; Path={path}{kept}; HttpOnly; SameSite=Lax{secure}\r\n").into_bytes()
}
