//! Encodes a request head for a worker: the head block of the ring's request area (`PROTOCOL.md` of
//! `highball-ring`), with the fields under their Rack env keys.

use std::collections::HashMap;

use highball_ring::request::{
    Fixed, FIELD_BYTES, FIXED_BYTES, HEAD_METHOD, HTTPS, HTTP_1_0, NO_TAKEOVER, ON_FIBER,
};

use super::field_names::{env_byte, known_key, FieldKey, KEY_DROPPED, KEY_OTHER};
use super::{BodyFraming, Method, RequestHead, Version};
use crate::developer_key;
use crate::http_syntax::write_number;

/// Up to this number of fields that are in no table, their names are compared with each other.
const FEW_FIELDS: usize = 16;

/// What the env needs and the head does not say.
#[derive(Debug, Clone, Copy)]
pub struct RingContext<'a> {
    /// The client's address, without port.
    pub remote_addr: &'a str,
    /// SERVER_NAME for requests that name no host.
    pub server_name: &'a str,
    /// SERVER_PORT for requests that name no host.
    pub server_port: u16,
    /// SCRIPT_NAME: the prefix that the application is reached below; empty if there is none.
    pub script_name: &'a str,
    /// The bytes of that prefix in the path as it was sent; the rest is PATH_INFO.
    pub prefix_bytes: usize,
    /// The id that was made for the request. An id that came with it is among its fields.
    pub request_id: Option<&'a [u8]>,
    /// The user whose password came with the request.
    pub remote_user: Option<&'a [u8]>,
    /// Whether the client speaks TLS with us.
    pub https: bool,
    /// Whether the application can take the connection over as it is (full hijack).
    pub takeover: bool,
    /// When the request was received: CLOCK_MONOTONIC, in µs.
    pub received_us: u64,
    /// The length of the body in bytes; needed for a body that came in chunks.
    pub content_length: Option<u64>,
}

impl RequestHead {
    /// Writes the head block for this head to `out`, whose content is replaced.
    ///
    /// Flags and length of the body are added by [`patch_body`]. Left to the worker's
    /// template, because they are nearly always the same: `SCRIPT_NAME` and `QUERY_STRING` where they are empty, and
    /// `SERVER_PROTOCOL` (HTTP/1.1 without the flag) but for HTTP/2.
    pub fn encode_for_ring(&self, buffer: &[u8], context: &RingContext<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.reserve(FIXED_BYTES + 512);
        out.extend_from_slice(&[0; FIXED_BYTES]);
        let mut block = HeadBlock { out, fields: 0 };
        self.encode_request_line(buffer, context, &mut block);
        let others = SameNames::of(self, buffer);
        for (index, field) in self.fields.iter().enumerate() {
            match field.key {
                known_key::HOST | known_key::CONTENT_LENGTH | known_key::TRANSFER_ENCODING => {}
                KEY_DROPPED => {}
                known_key::COOKIE if self.has_developer_cookie(buffer) => {
                    self.encode_other_cookies(index, buffer, &mut block);
                }
                KEY_OTHER => self.encode_other(index, &others, buffer, &mut block),
                key => self.encode_known(index, key, buffer, &mut block),
            }
        }
        let fields = block.fields;
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let fixed = Fixed {
            head_bytes: out.len() as u32,
            fields,
            flags: flag(context.https, HTTPS)
                | flag(self.version == Version::Http10, HTTP_1_0)
                | flag(self.method == Method::Head, HEAD_METHOD)
                | flag(!context.takeover, NO_TAKEOVER),
            limit_ms: 0,
            body_bytes: 0,
            received_us: context.received_us,
            waiting_since_us: context.received_us,
        };
        out[..FIXED_BYTES].copy_from_slice(&fixed.encode());
    }

    /// What comes from the request line, the host and the connection.
    fn encode_request_line(&self, buffer: &[u8], context: &RingContext<'_>, block: &mut HeadBlock<'_>) {
        block.known(known_key::REQUEST_METHOD, self.with(buffer).method_name());
        if !context.script_name.is_empty() {
            block.known(known_key::SCRIPT_NAME, context.script_name.as_bytes());
        }
        block.known(known_key::PATH_INFO, &self.with(buffer).path()[context.prefix_bytes..]);
        if !self.query.is_empty() {
            block.known(known_key::QUERY_STRING, self.with(buffer).query());
        }
        block.known(known_key::REQUEST_URI, self.with(buffer).target());
        if self.version == Version::Http2 {
            block.known(known_key::SERVER_PROTOCOL, b"HTTP/2");
        }
        block.known(known_key::REMOTE_ADDR, context.remote_addr.as_bytes());
        match &self.host {
            Some(host) => {
                let default: &[u8] = if context.https { b"443" } else { b"80" };
                block.known(known_key::HOST, host.whole(buffer));
                block.known(known_key::SERVER_NAME, host.name(buffer));
                match (host.port, host.port_digits(buffer)) {
                    (None, _) => block.known(known_key::SERVER_PORT, default),
                    (Some(_), Some(digits)) => block.known(known_key::SERVER_PORT, digits),
                    (Some(port), None) => block.known_number(known_key::SERVER_PORT, u64::from(port)),
                }
            }
            None => {
                block.known(known_key::SERVER_NAME, context.server_name.as_bytes());
                block.known_number(known_key::SERVER_PORT, u64::from(context.server_port));
            }
        }
        let declared = match self.framing {
            BodyFraming::Length(length) => Some(length),
            BodyFraming::None if self.has(known_key::CONTENT_LENGTH) => Some(0),
            _ => None,
        };
        if let Some(length) = context.content_length.or(declared) {
            block.known_number(known_key::CONTENT_LENGTH, length);
        }
        if let Some(user) = context.remote_user {
            block.known(known_key::REMOTE_USER, user);
            block.known(known_key::AUTH_TYPE, b"Basic");
        }
        if let Some(id) = context.request_id {
            block.known(known_key::X_REQUEST_ID, id);
        }
    }

    /// A field with a well-known name; values of repeated ones are joined where the first stands.
    fn encode_known(&self, index: usize, key: FieldKey, buffer: &[u8], block: &mut HeadBlock<'_>) {
        let value = self.fields[index].value.of_buffer(buffer);
        if key.bit().is_none_or(|bit| self.repeated & bit == 0) {
            block.known(key, value);
        } else if self.fields[..index].iter().all(|earlier| earlier.key != key) {
            // RFC 9110 section 5.3; cookies: RFC 6265 section 5.4.
            let separator: &[u8] = if key == known_key::COOKIE { b"; " } else { b", " };
            let later = self.fields[index + 1..].iter().filter(|later| later.key == key);
            let begin = block.begin(key, b"");
            block.out.extend_from_slice(value);
            for field in later {
                block.out.extend_from_slice(separator);
                block.out.extend_from_slice(field.value.of_buffer(buffer));
            }
            block.end(begin);
        }
    }

    fn has_developer_cookie(&self, buffer: &[u8]) -> bool {
        self.cookies(0, buffer).any(developer_key::may_be_in)
    }

    fn cookies<'a>(&'a self, from: usize, buffer: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let cookies = self.fields[from..].iter().filter(|field| field.key == known_key::COOKIE);
        cookies.map(|field| field.value.of_buffer(buffer))
    }

    /// All cookies but the developer's, which is no application's to know, where the first of them stands.
    fn encode_other_cookies(&self, index: usize, buffer: &[u8], block: &mut HeadBlock<'_>) {
        if self.fields[..index].iter().any(|earlier| earlier.key == known_key::COOKIE) {
            return;
        }
        let others = self.cookies(index, buffer).map(developer_key::without_ours);
        let others: Vec<Vec<u8>> = others.filter(|cookies| !cookies.is_empty()).collect();
        if !others.is_empty() {
            block.known(known_key::COOKIE, &others.join(&b"; "[..]));
        }
    }

    /// A field with any other name; values of repeated ones are joined where the first stands.
    fn encode_other(&self, index: usize, others: &SameNames, buffer: &[u8], block: &mut HeadBlock<'_>) {
        let name = self.fields[index].name.of_buffer(buffer);
        let mut same = others.indices(self, name, buffer);
        if same.next() != Some(index) {
            return;
        }
        let begin = block.begin(KEY_OTHER, name);
        block.out.extend_from_slice(self.fields[index].value.of_buffer(buffer));
        for later in same {
            block.out.extend_from_slice(b", ");
            block.out.extend_from_slice(self.fields[later].value.of_buffer(buffer));
        }
        block.end(begin);
    }
}

/// Which fields that are in no table have the same name, whatever its case.
enum SameNames {
    /// They are few, and compared with each other.
    Few,
    /// They are many, and may be long and alike: their indices by name, in lower case.
    Many(HashMap<Vec<u8>, Vec<usize>>),
}

impl SameNames {
    fn of(head: &RequestHead, buffer: &[u8]) -> Self {
        let others = || head.fields.iter().enumerate().filter(|(_, field)| field.key == KEY_OTHER);
        if others().nth(FEW_FIELDS).is_none() {
            return SameNames::Few;
        }
        let mut names: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (index, field) in others() {
            names.entry(field.name.of_buffer(buffer).to_ascii_lowercase()).or_default().push(index);
        }
        SameNames::Many(names)
    }

    /// The indices of the fields with this name, in the order in which they came.
    fn indices<'a>(
        &'a self,
        head: &'a RequestHead,
        name: &'a [u8],
        buffer: &'a [u8],
    ) -> impl Iterator<Item = usize> + 'a {
        let (few, many) = match self {
            SameNames::Few => (&head.fields[..], &[][..]),
            SameNames::Many(names) => {
                (&[][..], names.get(&name.to_ascii_lowercase()).map_or(&[][..], |same| same))
            }
        };
        let is_same = move |field: &super::Field| {
            field.key == KEY_OTHER && field.name.of_buffer(buffer).eq_ignore_ascii_case(name)
        };
        let few = few.iter().enumerate().filter(move |(_, field)| is_same(field)).map(|(index, _)| index);
        few.chain(many.iter().copied())
    }
}

/// Sets what is known once the body has come: the flag that says where it is, and its length in bytes.
pub fn patch_body(block: &mut [u8], flag: u32, body_length: u64) {
    add_flag(block, flag);
    block[16..24].copy_from_slice(&body_length.to_le_bytes());
}

/// Notes that the request runs on a fiber.
pub fn patch_fiber(block: &mut [u8]) {
    add_flag(block, ON_FIBER);
}

fn add_flag(block: &mut [u8], flag: u32) {
    let flags = u32::from_le_bytes([block[8], block[9], block[10], block[11]]) | flag;
    block[8..12].copy_from_slice(&flags.to_le_bytes());
}

/// Adds the time for the answer to begin, from when the request was received, in ms.
pub fn patch_limit(block: &mut [u8], limit_ms: u32) {
    block[12..16].copy_from_slice(&limit_ms.to_le_bytes());
}

/// Sets when the request's wait for a worker began: µs, CLOCK_MONOTONIC.
pub fn patch_wait(block: &mut [u8], since_us: u64) {
    block[32..40].copy_from_slice(&since_us.to_le_bytes());
}

/// Adds CONTENT_LENGTH, in bytes, once a body that came in chunks is whole.
pub fn append_content_length(block: &mut Vec<u8>, length: u64) {
    append(block, |open| open.known_number(known_key::CONTENT_LENGTH, length));
}

/// Adds the mark by which a worker knows that it is probed: then it says which exception was raised. No header field of a
/// client's becomes an entry of this name.
pub fn append_mark_of_probe(block: &mut Vec<u8>) {
    append(block, |open| open.other(b"highball.probe", b"1"));
}

/// Adds the valid certificate that the client has shown, in PEM, or that it has shown none. No header field of a client's becomes an
/// entry of these names, which begin without `HTTP_`.
pub(crate) fn append_client_certificate(block: &mut Vec<u8>, certificate: Option<&str>) {
    append(block, |open| {
        let verified: &[u8] = if certificate.is_some() { b"SUCCESS" } else { b"NONE" };
        open.other(b"SSL_CLIENT_VERIFY", verified);
        certificate.iter().for_each(|pem| open.other(b"SSL_CLIENT_CERT", pem.as_bytes()));
    });
}

/// Tells the worker that the front would hold the WebSocket that is asked for, or that there are too many.
pub(crate) fn append_cable_offer(block: &mut Vec<u8>, offer: &[u8]) {
    append(block, |open| open.other(b"highball.cable_offer", offer));
}

/// Makes the head of a request for a WebSocket of Action Cable one about it, with a body of this length that the front has written. No
/// client can send either.
pub(crate) fn make_cable_question(block: &mut Vec<u8>, body_length: u64, received_us: u64) {
    append(block, |open| {
        open.other(b"highball.cable", b"1");
        open.known_number(known_key::CONTENT_LENGTH, body_length);
    });
    let now = received_us.to_le_bytes();
    block[24..32].copy_from_slice(&now);
    block[32..40].copy_from_slice(&now);
}

/// Makes a head of a request with these flags and these fields, which are named by their env keys.
pub(crate) fn head_of<'a>(flags: u32, fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut block = Fixed { flags, head_bytes: FIXED_BYTES as u32, ..Fixed::default() }.encode().to_vec();
    append(&mut block, |open| {
        fields.for_each(|(name, value)| match FieldKey::of_env(name) {
            KEY_OTHER => open.other(name.as_bytes(), value),
            key => open.known(key, value),
        });
    });
    block
}

/// Returns the flags of a head.
pub(crate) fn flags_of(block: &[u8]) -> u32 {
    block.first_chunk::<FIXED_BYTES>().map_or(0, |fixed| Fixed::decode(fixed).flags)
}

/// Adds a field with a well-known name that the head does not have.
pub(crate) fn append_field(block: &mut Vec<u8>, key: FieldKey, value: &[u8]) {
    append(block, |open| open.known(key, value));
}

fn append(block: &mut Vec<u8>, field: impl FnOnce(&mut HeadBlock<'_>)) {
    let number_at = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("4 bytes"));
    let fields = number_at(4);
    let mut open = HeadBlock { out: block, fields };
    field(&mut open);
    let fields = open.fields;
    let head_bytes = block.len() as u32;
    block[..4].copy_from_slice(&head_bytes.to_le_bytes());
    block[4..8].copy_from_slice(&fields.to_le_bytes());
}

/// A head block while its fields are appended.
struct HeadBlock<'a> {
    out: &'a mut Vec<u8>,
    fields: u32,
}

impl HeadBlock<'_> {
    fn known(&mut self, key: FieldKey, value: &[u8]) {
        let mut prefix = [0; FIELD_BYTES];
        prefix[..2].copy_from_slice(&key.index().to_le_bytes());
        prefix[4..].copy_from_slice(&(value.len() as u32).to_le_bytes());
        self.out.extend_from_slice(&prefix);
        self.out.extend_from_slice(value);
        self.fields += 1;
    }

    /// A key that is no header field's.
    fn other(&mut self, name: &[u8], value: &[u8]) {
        self.out.extend_from_slice(&KEY_OTHER.index().to_le_bytes());
        self.out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        self.out.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(value);
        self.fields += 1;
    }

    fn known_number(&mut self, key: FieldKey, number: u64) {
        let begin = self.begin(key, b"");
        write_number(number, self.out);
        self.end(begin);
    }

    /// Begins a field whose value is appended piece by piece; gives where it begins.
    fn begin(&mut self, key: FieldKey, name: &[u8]) -> usize {
        let begin = self.out.len();
        self.out.extend_from_slice(&[0; FIELD_BYTES]);
        if key == KEY_OTHER {
            self.out.extend_from_slice(b"HTTP_");
            self.out.extend(name.iter().map(|&byte| env_byte(byte)));
        }
        let name_length = (self.out.len() - begin - FIELD_BYTES) as u16;
        self.out[begin..begin + 2].copy_from_slice(&key.index().to_le_bytes());
        self.out[begin + 2..begin + 4].copy_from_slice(&name_length.to_le_bytes());
        begin
    }

    fn end(&mut self, begin: usize) {
        let name_length = usize::from(u16::from_le_bytes([self.out[begin + 2], self.out[begin + 3]]));
        let value_length = (self.out.len() - begin - FIELD_BYTES - name_length) as u32;
        self.out[begin + 4..begin + 8].copy_from_slice(&value_length.to_le_bytes());
        self.fields += 1;
    }
}
