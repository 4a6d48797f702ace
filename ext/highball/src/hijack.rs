//! The `rack.hijack` of an env: an object of the class that `lib/highball/hijack.rb` describes. Every request has one, and
//! nearly no application calls it: so it is made here, and holds nothing but its env. From that the ring knows the
//! request, as long as a thread is at it.
#![allow(unsafe_code)]

use std::ffi::c_void;

use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{method, prelude::*, Error, RModule, Ruby, Value};
use rb_sys::{rb_data_type_t, rbimpl_typeddata_flags as Flags, VALUE};

/// What is needed to make them.
#[derive(Debug)]
pub(crate) struct Hijacks {
    class: VALUE,
}

// SAFETY: the value is immortal and used only with the GVL held.
unsafe impl Send for Hijacks {}

struct DataType(rb_data_type_t);

// SAFETY: nothing changes it, and its pointers are to what lives as long as the process.
unsafe impl Sync for DataType {}

/// The data is the env itself, not a pointer to memory: there is nothing to free. It is written once, when the object is
/// made, so that no write barrier is left out.
static DATA_TYPE: DataType = {
    // SAFETY: numbers and pointers that may be null; what later Rubies add may be zero.
    let mut kind: rb_data_type_t = unsafe { std::mem::zeroed() };
    kind.wrap_struct_name = c"Highball::Hijack".as_ptr();
    kind.function.dmark = Some(mark);
    kind.flags = (Flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE) | (Flags::RUBY_TYPED_WB_PROTECTED as VALUE);
    DataType(kind)
};

/// The env stays where it is, too: the ring compares its address.
unsafe extern "C" fn mark(env: *mut c_void) {
    // SAFETY: the collector calls this with the data of an object of ours, which is a Hash.
    unsafe { rb_sys::rb_gc_mark(env as VALUE) }
}

impl Hijacks {
    /// Defines the class.
    pub(crate) fn define(ruby: &Ruby, highball: RModule) -> Result<(), Error> {
        let class = highball.define_class("Hijack", ruby.class_object())?;
        class.undef_default_alloc_func();
        class.define_private_method("env", method!(env_of, 0))
    }

    pub(crate) fn new(ruby: &Ruby) -> Result<Self, Error> {
        let highball: RModule = ruby.class_object().const_get("Highball")?;
        let class: Value = highball.const_get("Hijack")?;
        // SAFETY: with the GVL held. The class neither moves nor dies from now on.
        unsafe { rb_sys::rb_gc_register_mark_object(class.as_raw()) };
        Ok(Hijacks { class: class.as_raw() })
    }

    /// Makes the one of an env.
    ///
    /// # Safety
    /// With the GVL held, and `env` a live Hash. This does not raise, but for lack of memory.
    pub(crate) unsafe fn make(&self, env: VALUE) -> VALUE {
        // SAFETY: the caller's promise.
        unsafe { rb_sys::rb_data_typed_object_wrap(self.class, env as *mut c_void, &DATA_TYPE.0) }
    }
}

/// `env -> Hash`
fn env_of(hijack: Value) -> Value {
    // SAFETY: the class has no allocator: its objects are those made by `make`, whose data is their env.
    unsafe { Value::from_raw(rb_sys::RTYPEDDATA_GET_DATA(hijack.as_raw()) as VALUE) }
}
