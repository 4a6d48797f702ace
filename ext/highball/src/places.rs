//! The entries that nearly every env has, with another value each time: the template has places for them, and in its copies
//! they are filled in one go. To look each of them up by its key would cost a fifth of all that the worker does for a small
//! request.
#![allow(unsafe_code)]

use rb_sys::VALUE;

/// The number of places: [`crate::env`] says what for.
pub(crate) const PLACES: usize = 6;

/// Values for the places; 0: none.
pub(crate) type Values = [VALUE; PLACES];

/// Makes places in a template, under these keys. They are its first entries, so that [`fill`] need not walk through the others. (A
/// cleared Hash keeps its memory.)
///
/// # Safety
/// With the GVL held, and `template` a live Hash.
pub(crate) unsafe fn make(template: VALUE, keys: &[VALUE; PLACES]) {
    // SAFETY: the caller's promise; the keys are frozen strings.
    unsafe {
        let others = rb_sys::rb_hash_dup(template);
        rb_sys::rb_hash_clear(template);
        for (number, key) in keys.iter().enumerate() {
            rb_sys::rb_hash_aset(template, *key, filling::empty(number));
        }
        rb_sys::rb_hash_update_by(template, others, None);
    }
}

/// Fills the places in a copy of a template.
///
/// # Safety
/// With the GVL held, `env` a fresh copy that nothing else has seen, and the values live.
pub(crate) unsafe fn fill(env: VALUE, keys: &[VALUE; PLACES], values: &Values) {
    // SAFETY: the caller's promise.
    unsafe {
        filling::fill(env, keys, values);
        for (key, _) in keys.iter().zip(values).filter(|(_, value)| **value == 0) {
            rb_sys::rb_hash_delete(env, *key);
        }
    }
}

/// By Ruby's own table, whose entries can be replaced while they are walked through. (st.h, and `RHASH_TBL` of rhash.h.)
#[cfg(ruby_lte_3_3)]
mod filling {
    use super::{Values, PLACES, VALUE};
    use rb_sys::{special_consts::FIXNUM_FLAG, st_data_t, st_retval};
    use std::ffi::c_int;

    /// What stands in a place: the fixnum of its number. No other value of a template is an Integer.
    pub(super) fn empty(number: usize) -> VALUE {
        (number << 1 | FIXNUM_FLAG as usize) as VALUE
    }

    fn number_of(value: VALUE) -> Option<usize> {
        (value & FIXNUM_FLAG as VALUE != 0).then_some((value >> 1) as usize).filter(|number| *number < PLACES)
    }

    pub(super) unsafe fn fill(env: VALUE, _keys: &[VALUE; PLACES], values: &Values) {
        // SAFETY: the caller's promise. `rb_hash_tbl` takes the Hash from those with write barriers, so none is missed.
        // The callbacks neither allocate nor change the table but for the value that they are asked for, and `values`
        // outlives the walk.
        unsafe {
            let table = rb_sys::rb_hash_tbl(env, c"places.rs".as_ptr(), 0);
            let values: *const Values = values;
            rb_sys::rb_st_foreach_with_replace(table, Some(look), Some(replace), values as st_data_t);
        }
    }

    unsafe extern "C" fn look(_key: st_data_t, value: st_data_t, _values: st_data_t, _: c_int) -> c_int {
        let next = if number_of(value).is_some() { st_retval::ST_REPLACE } else { st_retval::ST_CONTINUE };
        next as c_int
    }

    unsafe extern "C" fn replace(
        _key: *mut st_data_t,
        value: *mut st_data_t,
        values: st_data_t,
        _: c_int,
    ) -> c_int {
        // SAFETY: `fill` passed a pointer to `Values`; `value` is the table's, and good during the call.
        unsafe {
            let Some(number) = number_of(*value) else { return st_retval::ST_CONTINUE as c_int };
            *value = (*(values as *const Values))[number];
            // Behind the last place there are only other entries.
            let next = if number == PLACES - 1 { st_retval::ST_STOP } else { st_retval::ST_CONTINUE };
            next as c_int
        }
    }
}

/// For Rubies whose tables may be others: by keys.
#[cfg(not(ruby_lte_3_3))]
mod filling {
    use super::{Values, PLACES, VALUE};

    pub(super) fn empty(_number: usize) -> VALUE {
        rb_sys::Qnil as VALUE
    }

    pub(super) unsafe fn fill(env: VALUE, keys: &[VALUE; PLACES], values: &Values) {
        for (key, value) in keys.iter().zip(values).filter(|(_, value)| **value != 0) {
            // SAFETY: the caller's promise.
            unsafe { rb_sys::rb_hash_aset(env, *key, *value) };
        }
    }
}
