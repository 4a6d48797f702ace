//! A Rack response becomes frames.
//!
//! Only what most apps answer is done here: a Hash of Strings (or Arrays of Strings) and a body that is an
//! Array of Strings. For anything else [`Unusual`] is returned, and `lib/highball/answer.rb` makes it
//! usual first, or streams it.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fmt;

use highball_ring::frame::{is_token, is_value, Header, Kind, HEADER_BYTES};
use rb_sys::{ruby_value_type, st_retval, VALUE};

/// Why an answer could not be encoded here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusual {
    /// Legal, but not a Hash of Strings or an Array of Strings.
    Shape,
    /// Nothing that can go over HTTP; the reason names the field.
    Illegal(String),
}

impl fmt::Display for Unusual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusual::Shape => f.write_str("the headers of a response must be a Hash of Strings"),
            Unusual::Illegal(why) => f.write_str(why),
        }
    }
}

/// How a head is encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// The flags of the frame.
    pub(crate) flags: u8,
    /// The most bytes that the frame may have.
    pub(crate) most: usize,
    /// Whether a field that names a file to be sent is unusual.
    pub(crate) sends_files: bool,
}

/// Appends a `HEAD` frame.
///
/// # Errors
/// [`Unusual`]; `out` is then unfinished and must be dropped.
///
/// # Safety
/// With the GVL held, `headers` a live value.
pub(crate) unsafe fn head(status: u16, form: Form, headers: VALUE, out: &mut Vec<u8>) -> Result<(), Unusual> {
    let Form { flags, most, sends_files } = form;
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&[flags, 0]);
    // SAFETY: the caller's promise. The callback neither raises nor changes the Hash.
    unsafe {
        if !is(headers, ruby_value_type::RUBY_T_HASH) {
            return Err(Unusual::Shape);
        }
        let mut fields = HeaderFields { out, problem: None, sends_files };
        let argument: *mut HeaderFields<'_> = &mut fields;
        rb_sys::rb_hash_foreach(headers, Some(each_header), argument as VALUE);
        if let Some(problem) = fields.problem {
            return Err(problem);
        }
    }
    let length = out.len() - start - HEADER_BYTES;
    if length + HEADER_BYTES > most {
        return Err(too_large(&out[start + HEADER_BYTES..], most - HEADER_BYTES));
    }
    let header = Header { kind: Kind::Head, length };
    out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
    Ok(())
}

/// The bytes of a body that is an Array of Strings, as `BODY` frames appended to `out`.
///
/// # Errors
/// [`Unusual::Shape`], also when it is larger than `most` bytes; `out` is then unfinished.
///
/// # Safety
/// With the GVL held, `body` an Array.
pub(crate) unsafe fn body(body: VALUE, most: usize, out: &mut Vec<u8>) -> Result<(), Unusual> {
    // SAFETY: the caller's promise; the entries are read again for every index.
    unsafe {
        let limit = out.len() + most;
        let mut index = 0;
        while index < rb_sys::RARRAY_LEN(body) {
            let chunk = rb_sys::rb_ary_entry(body, index as _);
            if !is(chunk, ruby_value_type::RUBY_T_STRING) {
                return Err(Unusual::Shape);
            }
            let bytes = string_bytes(chunk);
            if out.len() + bytes.len() > limit {
                return Err(Unusual::Shape);
            }
            if !bytes.is_empty() {
                push_frame(Kind::Body, bytes, out);
            }
            index += 1;
        }
    }
    Ok(())
}

/// Whether a body is an Array and nothing but that: neither of a subclass, which may have another `each`, nor with
/// singleton methods, of which `close` may be one.
///
/// # Safety
/// With the GVL held, `body` a live value.
pub(crate) unsafe fn is_plain_array(body: VALUE) -> bool {
    // SAFETY: the caller's promise; an Array is no immediate value, so there is an RBasic.
    unsafe {
        is(body, ruby_value_type::RUBY_T_ARRAY)
            && (*(body as *const rb_sys::RBasic)).klass == rb_sys::rb_cArray
    }
}

/// Appends a frame.
fn push_frame(kind: Kind, payload: &[u8], out: &mut Vec<u8>) {
    let header = Header { kind, length: payload.len() };
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(payload);
}

/// The bytes of a String.
///
/// # Safety
/// With the GVL held and `string` a live String; the bytes are good until Ruby runs again.
pub(crate) unsafe fn string_bytes<'a>(string: VALUE) -> &'a [u8] {
    // SAFETY: the caller's promise. An empty String's pointer is never null.
    unsafe {
        std::slice::from_raw_parts(rb_sys::RSTRING_PTR(string).cast(), rb_sys::RSTRING_LEN(string) as usize)
    }
}

unsafe fn is(value: VALUE, kind: ruby_value_type) -> bool {
    // SAFETY: `value` is live, by the callers' promise.
    unsafe { rb_sys::RB_TYPE_P(value, kind) }
}

struct HeaderFields<'a> {
    out: &'a mut Vec<u8>,
    problem: Option<Unusual>,
    sends_files: bool,
}

unsafe extern "C" fn each_header(name: VALUE, value: VALUE, argument: VALUE) -> c_int {
    // SAFETY: `head` passed a pointer to a `HeaderFields` that nothing else uses meanwhile.
    let fields = unsafe { &mut *(argument as *mut HeaderFields<'_>) };
    // SAFETY: both values are live: the Hash holds them.
    match unsafe { fields.add(name, value) } {
        Ok(()) => st_retval::ST_CONTINUE as c_int,
        Err(problem) => {
            fields.problem = Some(problem);
            st_retval::ST_STOP as c_int
        }
    }
}

impl HeaderFields<'_> {
    unsafe fn add(&mut self, name: VALUE, value: VALUE) -> Result<(), Unusual> {
        // SAFETY: both values are live, and nothing here lets Ruby run.
        unsafe {
            if !is(name, ruby_value_type::RUBY_T_STRING) {
                return Err(Unusual::Shape);
            }
            let name = string_bytes(name);
            if name.starts_with(b"rack.") {
                // These two are for the server; the other names are for middleware.
                let ours = matches!(name, b"rack.hijack" | b"rack.protocol");
                return if ours { Err(Unusual::Shape) } else { Ok(()) };
            }
            if self.sends_files && names_file(name) {
                return Err(Unusual::Shape);
            }
            if is(value, ruby_value_type::RUBY_T_STRING) {
                return self.push_lines(name, string_bytes(value));
            }
            if !is(value, ruby_value_type::RUBY_T_ARRAY) {
                return Err(Unusual::Shape);
            }
            for index in 0..rb_sys::RARRAY_LEN(value) {
                let entry = rb_sys::rb_ary_entry(value, index as _);
                if !is(entry, ruby_value_type::RUBY_T_STRING) {
                    return Err(Unusual::Shape);
                }
                self.push_lines(name, string_bytes(entry))?;
            }
            Ok(())
        }
    }

    /// RFC 9110, 5.1 and 5.5: a name is a token; a value has no control characters but tabs. The front checks the same and
    /// treats a violation as a protocol error, so it is found here, where it is only an app's mistake. Rack 2 joins several values
    /// of a field by newlines.
    fn push_lines(&mut self, name: &[u8], value: &[u8]) -> Result<(), Unusual> {
        if !is_token(name) {
            return Err(no_name(name));
        }
        if is_value(value) {
            return self.push(name, value);
        }
        value.split(|byte| *byte == b'\n').try_for_each(|line| match is_value(line) {
            true => self.push(name, line),
            false => Err(no_value(name)),
        })
    }

    fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), Unusual> {
        let name_bytes = u16::try_from(name.len()).map_err(|_| too_long(name))?;
        let value_bytes = u32::try_from(value.len()).map_err(|_| too_long(name))?;
        self.out.extend_from_slice(&name_bytes.to_le_bytes());
        self.out.extend_from_slice(&value_bytes.to_le_bytes());
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(value);
        Ok(())
    }
}

/// Whether the value of the field is a file to be sent: `lib/highball/sendfile.rb` finds it.
fn names_file(name: &[u8]) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case(b"x-sendfile"),
        16 => name.eq_ignore_ascii_case(b"x-accel-redirect"),
        _ => false,
    }
}

#[cold]
fn no_name(name: &[u8]) -> Unusual {
    let shown = String::from_utf8_lossy(name);
    Unusual::Illegal(format!("{shown:?} is not the name of a header field"))
}

#[cold]
fn no_value(name: &[u8]) -> Unusual {
    let shown = String::from_utf8_lossy(name);
    Unusual::Illegal(format!(
        "the value of the header field {shown} contains a control character, such as a line break or NUL"
    ))
}

/// Names the largest field of a head's payload.
fn too_large(payload: &[u8], most: usize) -> Unusual {
    let (mut rest, mut largest) = (&payload[4..], (0, &b""[..]));
    while let Some((lengths, behind)) = rest.split_first_chunk::<6>() {
        let name_bytes = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let value_bytes = u32::from_le_bytes([lengths[2], lengths[3], lengths[4], lengths[5]]) as usize;
        let Some((field, behind)) = behind.split_at_checked(name_bytes + value_bytes) else { break };
        largest = largest.max((field.len(), &field[..name_bytes.min(100)]));
        rest = behind;
    }
    let (length, name) = (payload.len(), String::from_utf8_lossy(largest.1));
    Unusual::Illegal(format!(
        "the response's header fields take {length} bytes, and no more than {most} can be sent; the largest is {name}, with \
         {} bytes (large cookies, or a Link or Content-Security-Policy header that grows?)",
        largest.0
    ))
}

fn too_long(name: &[u8]) -> Unusual {
    let shown = String::from_utf8_lossy(&name[..name.len().min(100)]);
    Unusual::Illegal(format!("the header field {shown} is too long"))
}
