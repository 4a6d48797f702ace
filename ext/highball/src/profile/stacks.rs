//! Where a thread is: its frames, as numbers of the recording's names, innermost first.
//!
//! Ruby reports the frames of the calling thread as internal objects (methods and code), and since 3.3 those of every thread.
//! Before, the other threads' frames come from `Thread#backtrace_locations`, which has names without classes; the
//! recording puts both together.
#![allow(unsafe_code)]

use std::sync::OnceLock;

#[cfg(not(ruby_gte_3_3))]
use magnus::rb_sys::AsRawValue;
use magnus::rb_sys::FromRawValue;
use magnus::typed_data::DataTypeFunctions;
use magnus::{gc, prelude::*, Error, RModule, RString, Ruby, TypedData, Value};
use rb_sys::VALUE;

use super::recording::{Name, CUT_OFF, OTHER};
use super::{Session, CURRENT};

/// Frames of a thread that are looked at. Of deeper ones, the outermost are left out.
pub(super) const MOST_FRAMES: usize = 512;
/// Internal objects that a profile keeps: an application can define methods for ever.
const MOST_PINNED: usize = 20_000;

/// Tells Ruby's collector what a profile keeps.
#[derive(TypedData)]
#[magnus(class = "Highball::Native::ProfilePins", mark, free_immediately)]
struct Pins;

impl DataTypeFunctions for Pins {
    fn mark(&self, _: &gc::Marker) {
        // Also in a process that was forked meanwhile: what it has inherited stays valid.
        // SAFETY: as in `current`.
        let Some(session) = (unsafe { CURRENT.load(std::sync::atomic::Ordering::SeqCst).as_ref() }) else {
            return;
        };
        // SAFETY: these are live objects, as they have been marked since Ruby gave them.
        let keep = |value: VALUE| unsafe { rb_sys::rb_gc_mark(value) };
        // Neither is borrowed where Ruby can collect garbage.
        session.pinned.borrow().iter().for_each(|value| keep(*value));
        session.allocations.each_pending(keep);
    }
}

/// Makes the object that marks.
pub(super) fn define_pins(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    static MADE: OnceLock<()> = OnceLock::new();
    let class = native.define_class("ProfilePins", ruby.class_object())?;
    class.undef_default_alloc_func();
    MADE.get_or_init(|| ruby.gc_register_mark_object(ruby.wrap(Pins)));
    Ok(())
}

impl Session {
    /// The frames of the calling thread.
    pub(super) fn frames_of_calling_thread(&self) -> Vec<u32> {
        let (mut frames, mut lines) = ([0; MOST_FRAMES], [0; MOST_FRAMES]);
        // SAFETY: with the GVL held; both have room for as many as are asked for.
        let length = unsafe {
            rb_sys::rb_profile_frames(0, MOST_FRAMES as i32, frames.as_mut_ptr(), lines.as_mut_ptr())
        };
        self.stack_of_frames(&frames[..usize::try_from(length).unwrap_or(0)])
    }

    /// The frames of another thread, which does not run as long as this one does.
    #[cfg(ruby_gte_3_3)]
    pub(super) fn frames_of(&self, thread: VALUE) -> Result<Vec<u32>, Error> {
        let (mut frames, mut lines) = ([0; MOST_FRAMES], [0; MOST_FRAMES]);
        let length = std::cell::Cell::new(0);
        magnus::rb_sys::protect(|| {
            let (frames, lines) = (frames.as_mut_ptr(), lines.as_mut_ptr());
            // SAFETY: as above, and `thread` is alive.
            length.set(unsafe {
                rb_sys::rb_profile_thread_frames(thread, 0, MOST_FRAMES as i32, frames, lines)
            });
            rb_sys::Qnil as VALUE
        })?;
        Ok(self.stack_of_frames(&frames[..usize::try_from(length.get()).unwrap_or(0)]))
    }

    /// Lines are on the stack while Ruby runs, where its collector sees them.
    #[cfg(not(ruby_gte_3_3))]
    pub(super) fn frames_of(&self, thread: VALUE) -> Result<Vec<u32>, Error> {
        // SAFETY: it is a thread, which is alive.
        let thread = unsafe { Value::from_raw(thread) };
        let locations: Option<magnus::RArray> = thread.funcall("backtrace_locations", (0, MOST_FRAMES))?;
        let mut frames = Vec::new();
        let mut called: Option<Place> = None;
        for location in locations.into_iter().flatten() {
            let place = Place::of(location)?;
            if let Some(called) = called.replace(place) {
                frames.push(self.frame_of_place(called, called.is_native_below(place)));
            }
        }
        frames.extend(called.map(|outermost| self.frame_of_place(outermost, false)));
        if frames.len() == MOST_FRAMES {
            frames.push(CUT_OFF);
        }
        Ok(frames)
    }

    /// The number of a line of a backtrace. Ruby has one string for all lines of a method, by which its name is found again.
    #[cfg(not(ruby_gte_3_3))]
    fn frame_of_place(&self, place: Place, is_native: bool) -> u32 {
        let key: PlaceKey = (place.label.as_raw(), place.path.map(|path| path.as_raw()), is_native);
        if let Some(frame) = self.places.borrow().get(&key) {
            return *frame;
        }
        let path = place.path.filter(|_| !is_native).map(text_of).unwrap_or_default();
        let frame = self.recording.borrow_mut().frame_without_class(&text_of(place.label), &path);
        let mut pinned = self.pinned.borrow_mut();
        if pinned.len() < MOST_PINNED {
            pinned.extend([Some(key.0), key.1].into_iter().flatten());
            self.places.borrow_mut().insert(key, frame);
        }
        frame
    }

    /// The numbers of frames that Ruby has reported.
    pub(super) fn stack_of_frames(&self, values: &[VALUE]) -> Vec<u32> {
        let mut frames: Vec<u32> = values.iter().map(|value| self.frame(*value)).collect();
        if frames.len() == MOST_FRAMES {
            frames.push(CUT_OFF);
        }
        frames
    }

    /// The number of one of them. Its name is learnt once.
    fn frame(&self, value: VALUE) -> u32 {
        if let Some(frame) = self.recording.borrow().known(value) {
            return frame;
        }
        if self.pinned.borrow().len() >= MOST_PINNED {
            self.recording.borrow_mut().note_left_out(1);
            return OTHER;
        }
        self.pinned.borrow_mut().push(value);
        // Out of memory, most likely.
        let Ok((name, short_label)) = name_of(value) else { return OTHER };
        self.recording.borrow_mut().frame_of_value(value, name, &short_label)
    }
}

/// By what a frame of a backtrace is found again: Ruby's strings for its label and its path, and whether it is native.
#[cfg(not(ruby_gte_3_3))]
pub(super) type PlaceKey = (VALUE, Option<VALUE>, bool);

/// A line of a backtrace.
#[cfg(not(ruby_gte_3_3))]
#[derive(Clone, Copy)]
struct Place {
    label: RString,
    path: Option<RString>,
    line: i64,
}

#[cfg(not(ruby_gte_3_3))]
impl Place {
    fn of(location: Value) -> Result<Place, Error> {
        Ok(Place {
            label: location.funcall("label", ())?,
            path: location.funcall("path", ())?,
            line: location.funcall("lineno", ())?,
        })
    }

    /// Native methods have the place of their caller.
    fn is_native_below(self, caller: Place) -> bool {
        let path = |place: Place| place.path.map(|path| path.as_raw());
        let is_at_its_place = self.line == caller.line && path(self) == path(caller);
        // SAFETY: with the GVL held, and no Ruby runs meanwhile.
        let (label, label_of_caller) = unsafe { (self.label.as_slice(), caller.label.as_slice()) };
        is_at_its_place && label != label_of_caller && !label.contains(&b' ')
    }
}

/// Name and place of a frame, and the label that backtraces have.
fn name_of(frame: VALUE) -> Result<(Name, String), Error> {
    let ask = |question: unsafe extern "C" fn(VALUE) -> VALUE| -> Result<Value, Error> {
        // SAFETY: with the GVL held, and Ruby has reported this frame, which is pinned.
        let answer = magnus::rb_sys::protect(|| unsafe { question(frame) })?;
        // SAFETY: Ruby has just made it.
        Ok(unsafe { Value::from_raw(answer) })
    };
    let text = |question| Ok::<_, Error>(RString::from_value(ask(question)?).map(text_of));
    let label = text(rb_sys::rb_profile_frame_label)?;
    let (full, short) = match label {
        Some(short) => (text(rb_sys::rb_profile_frame_full_label)?, short),
        None => {
            let short = text(rb_sys::rb_profile_frame_method_name)?.unwrap_or_default();
            (text(rb_sys::rb_profile_frame_qualified_method_name)?, short)
        }
    };
    let path = text(rb_sys::rb_profile_frame_path)?.unwrap_or_default();
    let line = ask(rb_sys::rb_profile_frame_first_lineno)?;
    let line = <Option<u32>>::try_convert(line).ok().flatten().unwrap_or(0);
    Ok((Name { label: full.unwrap_or_else(|| short.clone()), path, line }, short))
}

fn text_of(text: RString) -> String {
    // SAFETY: with the GVL held; the bytes are copied before Ruby runs again.
    String::from_utf8_lossy(unsafe { text.as_slice() }).into_owned()
}
