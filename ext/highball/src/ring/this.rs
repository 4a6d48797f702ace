//! The ring behind the Ruby object whose method is called, without what a call of Ruby's own check costs.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use magnus::rb_sys::AsRawValue;
use magnus::{Error, RClass, TryConvert, Value};
use rb_sys::VALUE;

use super::Ring;

/// `Highball::Ring`.
static CLASS: OnceLock<VALUE> = OnceLock::new();

/// A ring as the receiver of a method.
#[derive(Clone, Copy)]
pub(crate) struct This {
    /// What it wraps. (Good as long as the object lives: the caller of a method keeps its receiver alive.)
    pub(crate) ring: &'static Ring,
}

impl This {
    /// `class` is `Highball::Ring`.
    pub(crate) fn learn(class: RClass) {
        // SAFETY: with the GVL held. From now on the class neither moves nor dies.
        unsafe { rb_sys::rb_gc_register_mark_object(class.as_raw()) };
        CLASS.get_or_init(|| class.as_raw());
    }
}

impl TryConvert for This {
    fn try_convert(value: Value) -> Result<Self, Error> {
        let raw = value.as_raw();
        // SAFETY: a receiver is live, and has an RBasic unless it is an immediate value.
        let is_ring = unsafe {
            rb_sys::RB_TYPE_P(raw, rb_sys::ruby_value_type::RUBY_T_DATA)
                && Some(&(*(raw as *const rb_sys::RBasic)).klass) == CLASS.get()
        };
        if !is_ring {
            let ring = <&Ring>::try_convert(value)?; // of a subclass, or with singleton methods
            return Ok(This { ring });
        }
        // SAFETY: an object of just this class, which has no allocator, was made by `Ring::open`: its data is the `Ring`
        // that magnus has boxed, and never another one.
        let ring = unsafe { &*rb_sys::RTYPEDDATA_GET_DATA(raw).cast::<Ring>() };
        Ok(This { ring })
    }
}
