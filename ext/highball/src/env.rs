//! A request on the ring becomes a Rack env.
//!
//! The raw calls are the ones that make this cheap (about 2 µs for a usual request): a copy of a template
//! hash, and a fresh string per value.
#![allow(unsafe_code)]

use std::cell::Cell;

use highball_ring::env_keys::{KEYS, OTHER};
use highball_ring::request::{Field, Fields, HTTPS, HTTP_1_0};
use rb_sys::VALUE;

use crate::answer::string_bytes;

/// Ruby strings made once per process: they are frozen, shared and never collected.
#[derive(Debug)]
pub(crate) struct EnvKeys {
    known: Vec<VALUE>,
    methods: Vec<(&'static [u8], VALUE)>,
    server_protocol: VALUE,
    http_1_0: VALUE,
    url_scheme: VALUE,
    https: VALUE,
    protocol: VALUE,
    /// The last values of [`REPEATED`], which rarely change: shared as long as they do not.
    repeated: Box<[Cell<VALUE>; REPEATED.len()]>,
}

// SAFETY: the values are immortal and used only with the GVL held.
unsafe impl Send for EnvKeys {}

const METHODS: [&[u8]; 7] = [b"GET", b"POST", b"HEAD", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"];
const REQUEST_METHOD: u16 = 0;
const HTTP_UPGRADE: u16 = 29;

/// Keys whose values come from the front or the connection: SERVER_NAME, SERVER_PORT, REMOTE_ADDR.
const REPEATED: [u16; 3] = [5, 6, 8];

const _: () = {
    assert!(matches!(KEYS[REQUEST_METHOD as usize].as_bytes(), b"REQUEST_METHOD"));
    assert!(matches!(KEYS[HTTP_UPGRADE as usize].as_bytes(), b"HTTP_UPGRADE"));
    assert!(matches!(KEYS[REPEATED[0] as usize].as_bytes(), b"SERVER_NAME"));
    assert!(matches!(KEYS[REPEATED[1] as usize].as_bytes(), b"SERVER_PORT"));
    assert!(matches!(KEYS[REPEATED[2] as usize].as_bytes(), b"REMOTE_ADDR"));
};

impl EnvKeys {
    /// Makes the strings. With the GVL held.
    pub(crate) fn new() -> Self {
        EnvKeys {
            known: KEYS.iter().map(|key| immortal(key.as_bytes())).collect(),
            methods: METHODS.iter().map(|name| (*name, immortal(name))).collect(),
            server_protocol: immortal(b"SERVER_PROTOCOL"),
            http_1_0: immortal(b"HTTP/1.0"),
            url_scheme: immortal(b"rack.url_scheme"),
            https: immortal(b"https"),
            protocol: immortal(b"rack.protocol"),
            repeated: repeated_values(),
        }
    }

    /// The env of a request: a copy of `template` (a Hash) with the request's `fields` put in.
    ///
    /// # Safety
    /// With the GVL held, and `template` a live Hash. None of these calls raises, but for want of
    /// memory.
    pub(crate) unsafe fn build(&self, template: VALUE, flags: u32, fields: Fields<'_>) -> VALUE {
        // SAFETY: the caller's promise; keys are frozen strings, so `aset` neither copies nor calls
        // anything.
        unsafe {
            let env = rb_sys::rb_hash_dup(template);
            for field in fields {
                rb_sys::rb_hash_aset(env, self.key(&field), self.value(&field));
                if field.key == HTTP_UPGRADE {
                    rb_sys::rb_hash_aset(env, self.protocol, list(field.value));
                }
            }
            if flags & HTTP_1_0 != 0 {
                rb_sys::rb_hash_aset(env, self.server_protocol, self.http_1_0);
            }
            if flags & HTTPS != 0 {
                rb_sys::rb_hash_aset(env, self.url_scheme, self.https);
            }
            env
        }
    }

    unsafe fn key(&self, field: &Field<'_>) -> VALUE {
        match self.known.get(usize::from(field.key)) {
            Some(key) if field.key != OTHER => *key,
            // SAFETY: with the GVL held, as for `build`.
            _ => unsafe { interned(field.name) },
        }
    }

    unsafe fn value(&self, field: &Field<'_>) -> VALUE {
        if field.key == REQUEST_METHOD {
            if let Some((_, method)) = self.methods.iter().find(|(name, _)| *name == field.value) {
                return *method;
            }
        }
        if let Some(index) = REPEATED.iter().position(|key| *key == field.key) {
            // SAFETY: as for `build`.
            return unsafe { shared(&self.repeated[index], field.value) };
        }
        // SAFETY: with the GVL held, as for `build`.
        unsafe { binary_string(field.value) }
    }
}

/// Places for the last values, known to the garbage collector for ever (a ring lives as long as its process).
fn repeated_values() -> Box<[Cell<VALUE>; REPEATED.len()]> {
    // SAFETY: called with the GVL held.
    let values = Box::new(REPEATED.map(|_| Cell::new(unsafe { interned(b"") })));
    for value in values.iter() {
        // SAFETY: the address stays good: the box is never dropped (see `Ring`), nor moved out of.
        unsafe { rb_sys::rb_gc_register_address(value.as_ptr()) };
    }
    values
}

/// The frozen string in `last` if it has these bytes, else a new one, which is then the last.
///
/// # Safety
/// With the GVL held.
unsafe fn shared(last: &Cell<VALUE>, bytes: &[u8]) -> VALUE {
    // SAFETY: the caller's promise; `last` holds a live String.
    unsafe {
        if string_bytes(last.get()) != bytes {
            last.set(rb_sys::rb_obj_freeze(binary_string(bytes)));
        }
        last.get()
    }
}

/// An Array of the items of a comma-separated list.
///
/// # Safety
/// With the GVL held.
unsafe fn list(value: &[u8]) -> VALUE {
    // SAFETY: the caller's promise; a fresh Array takes what is pushed.
    unsafe {
        let items = rb_sys::rb_ary_new();
        for item in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
        {
            rb_sys::rb_ary_push(items, binary_string(item));
        }
        items
    }
}

/// A fresh binary string.
///
/// # Safety
/// With the GVL held.
pub(crate) unsafe fn binary_string(bytes: &[u8]) -> VALUE {
    // SAFETY: pointer and length belong together; Ruby copies. (An empty slice's pointer is dangling, but
    // nothing is read from it.)
    unsafe { rb_sys::rb_str_new(bytes.as_ptr().cast(), bytes.len() as _) }
}

unsafe fn interned(bytes: &[u8]) -> VALUE {
    // `rb_interned_str` of Ruby 3.1 reads at the pointer even if the length is 0, and that of an empty slice
    // dangles.
    let pointer = if bytes.is_empty() { c"".as_ptr() } else { bytes.as_ptr().cast() };
    // SAFETY: the pointer is good for so many bytes; Ruby copies.
    unsafe { rb_sys::rb_interned_str(pointer, bytes.len() as _) }
}

fn immortal(bytes: &[u8]) -> VALUE {
    // SAFETY: called while the extension is set up, with the GVL held.
    unsafe {
        let string = interned(bytes);
        rb_sys::rb_gc_register_mark_object(string);
        string
    }
}
