//! Which content becomes shorter.

/// Of `application`, beside those with a suffix that tells their form.
const APPLICATION: [&str; 17] = [
    "ecmascript",
    "graphql",
    "javascript",
    "json",
    "json5",
    "jsonl",
    "ndjson",
    "rtf",
    "sql",
    "toml",
    "vnd.ms-fontobject",
    "wasm",
    "x-javascript",
    "x-ndjson",
    "x-yaml",
    "xml",
    "yaml",
];

/// Whether content of this type usually becomes shorter: text of all kinds, and fonts and images that are not compressed in
/// themselves.
pub(crate) fn is_compressible(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or(b"").trim_ascii();
    let Some(slash) = memchr::memchr(b'/', essence) else { return false };
    let (kind, subtype) = (&essence[..slash], &essence[slash + 1..]);
    let is_one_of = |known: &[&str]| known.iter().any(|one| subtype.eq_ignore_ascii_case(one.as_bytes()));
    let suffix = subtype.rsplit(|&byte| byte == b'+').next().filter(|suffix| suffix.len() < subtype.len());
    let is_text = suffix.is_some_and(|suffix| {
        ["json", "xml", "yaml"].iter().any(|known| suffix.eq_ignore_ascii_case(known.as_bytes()))
    });
    match &*kind.to_ascii_lowercase() {
        b"text" => true,
        b"application" => is_text || is_one_of(&APPLICATION),
        b"font" => is_one_of(&["collection", "otf", "sfnt", "ttf"]),
        b"image" => is_text || is_one_of(&["bmp", "vnd.microsoft.icon", "x-icon"]),
        b"model" => is_text || is_one_of(&["gltf-binary", "obj", "stl"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_compressed_and_what_is_compressed_is_not() {
        for (content_type, expected) in [
            ("text/html; charset=utf-8", true),
            ("TEXT/HTML", true),
            ("text/event-stream", true),
            ("text/vnd.turbo-stream.html; charset=utf-8", true),
            ("application/json", true),
            ("application/vnd.api+json; version=1", true),
            ("application/atom+xml", true),
            ("application/wasm", true),
            ("image/svg+xml", true),
            ("image/x-icon", true),
            ("font/ttf", true),
            ("", false),
            ("json", false),
            ("application/octet-stream", false),
            ("application/zip", false),
            ("application/pdf", false),
            ("application/json+zip", false),
            ("image/png", false),
            ("font/woff2", false),
            ("video/mp4", false),
            ("multipart/x-mixed-replace", false),
            ("+json", false),
        ] {
            assert_eq!(is_compressible(content_type.as_bytes()), expected, "{content_type:?}");
        }
    }
}
