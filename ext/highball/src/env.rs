//! A request on the ring becomes a Rack env.
//!
//! The raw calls are the ones that make this cheap (about half a microsecond for a small request): a copy of a
//! template hash, and a fresh string per value. What hardly changes from one request to the next is kept in the
//! template.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};

use highball_ring::env_keys::{KEYS, OTHER};
use highball_ring::request::{Field, Fields, Fixed, HTTPS, HTTP_1_0, NO_TAKEOVER};
use rb_sys::VALUE;

use crate::hijack::Hijacks;
use crate::places::{self, Values, PLACES};

/// Ruby strings made once per process: they are frozen, shared and never collected.
#[derive(Debug)]
pub(crate) struct EnvKeys {
    known: Vec<VALUE>,
    methods: Vec<(&'static [u8], VALUE)>,
    server_protocol: VALUE,
    http_1_0: VALUE,
    url_scheme: VALUE,
    https: VALUE,
    https_key: VALUE,
    on: VALUE,
    protocol: VALUE,
    is_hijack: VALUE,
    rack_version: VALUE,
    /// Names of the template's places: the fields of [`PLACED`], and the names from [`HIJACK`] on.
    places: [VALUE; PLACES],
    hijacks: Hijacks,
}

// SAFETY: the values are immortal and used only with the GVL held.
unsafe impl Send for EnvKeys {}

const METHODS: [&[u8]; 7] = [b"GET", b"POST", b"HEAD", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"];
pub(crate) const REQUEST_METHOD: u16 = 0;
pub(crate) const SCRIPT_NAME: u16 = 1;
pub(crate) const PATH_INFO: u16 = PLACED[0];
pub(crate) const QUERY_STRING: u16 = 3;
const HTTP_UPGRADE: u16 = 29;

/// Keys whose values are often the same as in the request before: REQUEST_METHOD, SERVER_NAME, SERVER_PORT, REMOTE_ADDR.
const REPEATED: [u16; 4] = [REQUEST_METHOD, 5, 6, 8];

/// Keys that nearly every request has: PATH_INFO, REQUEST_URI, HTTP_HOST.
const PLACED: [u16; HIJACK] = [2, 4, 11];
/// The places of `rack.hijack`, `highball.queue_time` and `highball.deadline`.
const HIJACK: usize = 3;
const QUEUE_TIME: usize = 4;
const DEADLINE: usize = 5;

/// The values of [`REPEATED`] that a template has; copies of it have them already.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    values: [RefCell<Option<Vec<u8>>>; REPEATED.len()],
    /// Whether it has its places as well.
    has_places: Cell<bool>,
}

const _: () = {
    assert!(matches!(KEYS[REQUEST_METHOD as usize].as_bytes(), b"REQUEST_METHOD"));
    assert!(matches!(KEYS[SCRIPT_NAME as usize].as_bytes(), b"SCRIPT_NAME"));
    assert!(matches!(KEYS[QUERY_STRING as usize].as_bytes(), b"QUERY_STRING"));
    assert!(matches!(KEYS[HTTP_UPGRADE as usize].as_bytes(), b"HTTP_UPGRADE"));
    assert!(matches!(KEYS[REPEATED[1] as usize].as_bytes(), b"SERVER_NAME"));
    assert!(matches!(KEYS[REPEATED[2] as usize].as_bytes(), b"SERVER_PORT"));
    assert!(matches!(KEYS[REPEATED[3] as usize].as_bytes(), b"REMOTE_ADDR"));
    assert!(matches!(KEYS[PLACED[0] as usize].as_bytes(), b"PATH_INFO"));
    assert!(matches!(KEYS[PLACED[1] as usize].as_bytes(), b"REQUEST_URI"));
    assert!(matches!(KEYS[PLACED[2] as usize].as_bytes(), b"HTTP_HOST"));
};

impl Repeated {
    /// The template is another one from now on.
    pub(crate) fn forget(&self) {
        self.values.iter().for_each(|value| drop(value.take()));
        self.has_places.set(false);
    }
}

impl EnvKeys {
    /// Makes the strings. With the GVL held.
    pub(crate) fn new(hijacks: Hijacks) -> Self {
        let known: Vec<VALUE> = KEYS.iter().map(|key| immortal(key.as_bytes())).collect();
        let [path, target, host] = PLACED.map(|key| known[usize::from(key)]);
        EnvKeys {
            places: [
                path,
                target,
                host,
                immortal(b"rack.hijack"),
                immortal(b"highball.queue_time"),
                immortal(b"highball.deadline"),
            ],
            hijacks,
            known,
            methods: METHODS.iter().map(|name| (*name, immortal(name))).collect(),
            server_protocol: immortal(b"SERVER_PROTOCOL"),
            http_1_0: immortal(b"HTTP/1.0"),
            url_scheme: immortal(b"rack.url_scheme"),
            https: immortal(b"https"),
            https_key: immortal(b"HTTPS"),
            on: immortal(b"on"),
            protocol: immortal(b"rack.protocol"),
            is_hijack: immortal(b"rack.hijack?"),
            rack_version: immortal(b"rack.version"),
        }
    }

    /// The env of a request: a copy of `template` (a Hash), which has the values `repeated`, with the request's
    /// `fields` put in. `now_us`: of CLOCK_MONOTONIC.
    ///
    /// # Safety
    /// With the GVL held, and `template` a live Hash that no other thread changes. None of these calls raises, but for
    /// lack of memory.
    pub(crate) unsafe fn build(
        &self,
        template: VALUE,
        repeated: &Repeated,
        now_us: u64,
        fixed: Fixed,
        fields: Fields<'_>,
    ) -> VALUE {
        let flags = fixed.flags;
        // SAFETY: the caller's promise; keys are frozen strings, so `aset` neither copies nor calls
        // anything.
        unsafe {
            if !repeated.has_places.replace(true) {
                places::make(template, &self.places);
            }
            let env = rb_sys::rb_hash_dup(template);
            let mut met = [false; REPEATED.len()];
            let mut placed: Values = [0; PLACES];
            placed[HIJACK] = self.hijacks.make(env);
            for field in fields {
                if let Some(index) = PLACED.iter().position(|key| *key == field.key) {
                    placed[index] = binary_string(field.value);
                    continue;
                }
                if let Some(index) = REPEATED.iter().position(|key| *key == field.key) {
                    met[index] = true;
                    self.put_repeated(env, template, &repeated.values[index], &field);
                    continue;
                }
                rb_sys::rb_hash_aset(env, self.key(&field), binary_string(field.value));
                if field.key == HTTP_UPGRADE {
                    rb_sys::rb_hash_aset(env, self.protocol, list(field.value));
                }
            }
            // What is the request's own must not be another request's.
            for (index, key) in REPEATED.iter().enumerate().filter(|(index, _)| !met[*index]) {
                if repeated.values[index].borrow().is_some() {
                    rb_sys::rb_hash_delete(env, self.known[usize::from(*key)]);
                }
            }
            let waited_us = now_us.saturating_sub(fixed.waiting_since_us);
            placed[QUEUE_TIME] = rb_sys::rb_float_new(waited_us as f64 / 1e6);
            if fixed.limit_ms > 0 {
                let deadline_us = fixed.received_us.saturating_add(u64::from(fixed.limit_ms) * 1000);
                placed[DEADLINE] = rb_sys::rb_float_new(deadline_us as f64 / 1e6);
            }
            places::fill(env, &self.places, &placed);
            if flags & HTTP_1_0 != 0 {
                rb_sys::rb_hash_aset(env, self.server_protocol, self.http_1_0);
            }
            if flags & HTTPS != 0 {
                rb_sys::rb_hash_aset(env, self.url_scheme, self.https);
                rb_sys::rb_hash_aset(env, self.https_key, self.on);
            }
            if flags & NO_TAKEOVER != 0 {
                self.offer_no_full_hijack(env);
            }
            env
        }
    }

    /// What is left is a partial hijack. Only Rack 3 offers one without the other: `rack.hijack?` is about both in Rack 2,
    /// which alone has `rack.version` (Rack SPEC, "Hijacking").
    unsafe fn offer_no_full_hijack(&self, env: VALUE) {
        // SAFETY: as for `build`.
        unsafe {
            rb_sys::rb_hash_delete(env, self.places[HIJACK]);
            if rb_sys::rb_hash_lookup(env, self.rack_version) != rb_sys::Qnil as VALUE {
                rb_sys::rb_hash_aset(env, self.is_hijack, rb_sys::Qfalse as VALUE);
            }
        }
    }

    /// Puts a value into `env`, and into its template too, unless both have it from there.
    unsafe fn put_repeated(
        &self,
        env: VALUE,
        template: VALUE,
        last: &RefCell<Option<Vec<u8>>>,
        field: &Field<'_>,
    ) {
        if last.borrow().as_deref() == Some(field.value) {
            return;
        }
        // SAFETY: as for `build`. The value is frozen: other requests will have it.
        unsafe {
            let (key, value) = (self.key(field), self.frozen(field));
            rb_sys::rb_hash_aset(env, key, value);
            rb_sys::rb_hash_aset(template, key, value);
        }
        last.replace(Some(field.value.to_vec()));
    }

    unsafe fn key(&self, field: &Field<'_>) -> VALUE {
        match self.known.get(usize::from(field.key)) {
            Some(key) if field.key != OTHER => *key,
            // SAFETY: with the GVL held, as for `build`.
            _ => unsafe { interned(field.name) },
        }
    }

    unsafe fn frozen(&self, field: &Field<'_>) -> VALUE {
        if field.key == REQUEST_METHOD {
            if let Some((_, method)) = self.methods.iter().find(|(name, _)| *name == field.value) {
                return *method;
            }
        }
        // SAFETY: with the GVL held, as for `build`.
        unsafe { rb_sys::rb_obj_freeze(binary_string(field.value)) }
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

/// In UTF-8, as the literals of applications are: they are the same objects then, and found without comparing bytes.
unsafe fn interned(bytes: &[u8]) -> VALUE {
    // `rb_interned_str` of Ruby 3.1 reads at the pointer even if the length is 0, and the pointer of an empty slice
    // dangles.
    let pointer = if bytes.is_empty() { c"".as_ptr() } else { bytes.as_ptr().cast() };
    // SAFETY: the pointer is good for that number of bytes; Ruby copies.
    unsafe { rb_sys::rb_enc_interned_str(pointer, bytes.len() as _, rb_sys::rb_utf8_encoding()) }
}

fn immortal(bytes: &[u8]) -> VALUE {
    // SAFETY: called while the extension is set up, with the GVL held.
    unsafe {
        let string = interned(bytes);
        rb_sys::rb_gc_register_mark_object(string);
        string
    }
}
