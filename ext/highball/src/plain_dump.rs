//! Writes objects of a few plain kinds in the format of Marshal, in about half of the time that Ruby needs for a small table:
//! the bytes are the same. Ruby looks for methods of the application at each object, which strings, arrays and hashes do not have.
//!
//! What is not exactly of these kinds is left to Ruby, which also has the errors.
#![allow(unsafe_code)]

use magnus::encoding::EncodingCapable;
use magnus::r_hash::ForEach;
use magnus::rb_sys::AsRawValue;
use magnus::value::{Fixnum, LazyId};
use magnus::{prelude::*, Error, RArray, RHash, RString, Ruby, Symbol, Value};
use rb_sys::VALUE;

use crate::plain_load::{MOST_BYTES, VERSION};

/// More objects than that take Ruby no more time, because it looks them up in tables.
const MOST_OBJECTS: usize = 256;
const DEEPEST: usize = 32;

static DEFAULT: LazyId = LazyId::new("default");
static DEFAULT_PROC: LazyId = LazyId::new("default_proc");
static COMPARE_BY_IDENTITY: LazyId = LazyId::new("compare_by_identity?");
static RUBY2_KEYWORDS_HASH: LazyId = LazyId::new("ruby2_keywords_hash?");

/// `Native.dump_plain(object) -> String | nil`: as `Marshal.dump`; nil if the object is or has something else than strings in
/// UTF-8, ASCII or binary, arrays, usual hashes, symbols in ASCII, integers up to 31 bits, `true`, `false` and `nil`, or has an
/// object twice, or is large.
///
/// # Errors
/// What another thread has raised in this one.
pub(crate) fn dump(ruby: &Ruby, object: Value) -> Result<Option<RString>, Error> {
    if RHash::from_value(object).is_some_and(|table| table.len() > MOST_OBJECTS / 2) {
        return Ok(None);
    }
    let mut writer = Writer { ruby, bytes: VERSION.to_vec(), symbols: Vec::new(), objects: Vec::new() };
    let complete = writer.object(object, DEEPEST)?;
    Ok(complete.then(|| ruby.str_from_slice(&writer.bytes)))
}

/// Each of its functions returns false at an object that is none of these kinds.
struct Writer<'a> {
    ruby: &'a Ruby,
    bytes: Vec<u8>,
    /// In the order of their numbers. None for the name of the encoding. (They are only compared, and the table keeps them.)
    symbols: Vec<Option<VALUE>>,
    /// (As well.)
    objects: Vec<VALUE>,
}

impl Writer<'_> {
    fn object(&mut self, object: Value, depth: usize) -> Result<bool, Error> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(false) };
        if object.is_nil() {
            self.bytes.push(b'0');
        } else if let Some(integer) = Fixnum::from_value(object) {
            return Ok(self.integer(integer.to_i64()));
        } else if let Some(symbol) = Symbol::from_value(object) {
            return Ok(self.symbol(symbol));
        } else if object.as_raw() == self.ruby.qtrue().as_raw() {
            self.bytes.push(b'T');
        } else if object.as_raw() == self.ruby.qfalse().as_raw() {
            self.bytes.push(b'F');
        } else if let Some(text) = RString::from_value(object) {
            return Ok(self.is_plain(object, self.ruby.class_string().as_raw()) && self.text(text));
        } else if let Some(array) = RArray::from_value(object) {
            return Ok(self.is_plain(object, self.ruby.class_array().as_raw()) && self.array(array, depth)?);
        } else if let Some(hash) = RHash::from_value(object) {
            return Ok(self.is_plain(object, self.ruby.class_hash().as_raw()) && self.hash(hash, depth)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether this string, array or hash has exactly this class and no variables, and occurs for the first time.
    fn is_plain(&mut self, object: Value, class: VALUE) -> bool {
        let object = object.as_raw();
        // SAFETY: the caller has checked that it is an object on Ruby's heap, all of which begin with this structure. The function
        // counts, and cannot raise.
        let plain = unsafe {
            (*(object as *const rb_sys::RBasic)).klass == class && rb_sys::rb_ivar_count(object) == 0
        };
        if !plain || self.objects.len() == MOST_OBJECTS || self.objects.contains(&object) {
            return false;
        }
        self.objects.push(object);
        true
    }

    /// (Larger ones are written as big numbers.)
    fn integer(&mut self, number: i64) -> bool {
        self.bytes.push(b'i');
        self.number(number);
        (-(1 << 30)..1 << 30).contains(&number)
    }

    fn symbol(&mut self, symbol: Symbol) -> bool {
        if self.is_known(Some(symbol.as_raw())) {
            return true;
        }
        let Ok(name) = symbol.name() else { return false }; // (in another encoding)
        self.new_symbol(&name);
        name.is_ascii() && name != "E"
    }

    fn text(&mut self, text: RString) -> bool {
        let encoding = text.enc_get();
        let utf8 = encoding == self.ruby.utf8_encindex();
        let binary = encoding == self.ruby.ascii8bit_encindex();
        if !binary {
            self.bytes.push(b'I');
        }
        if self.bytes.len() + text.len() > MOST_BYTES {
            return false;
        }
        self.bytes.push(b'"');
        // SAFETY: copied before Ruby runs.
        self.piece(unsafe { text.as_slice() });
        if !binary {
            self.number(1);
            if !self.is_known(None) {
                self.new_symbol("E");
            }
            self.bytes.push(if utf8 { b'T' } else { b'F' });
        }
        utf8 || binary || encoding == self.ruby.usascii_encindex()
    }

    /// (If another thread changes it meanwhile, there is nil in the place of what it has removed.)
    fn array(&mut self, array: RArray, depth: usize) -> Result<bool, Error> {
        let length = array.len();
        self.bytes.push(b'[');
        self.number(length as i64);
        for index in 0..length {
            if !self.object(array.entry(index as isize)?, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn hash(&mut self, hash: RHash, depth: usize) -> Result<bool, Error> {
        if !self.is_usual(hash)? {
            return Ok(false);
        }
        let mut left = hash.len();
        self.bytes.push(b'{');
        self.number(left as i64);
        let mut plain = true;
        hash.foreach(|key: Value, value: Value| {
            left = left.saturating_sub(1);
            plain = self.object(key, depth)? && self.object(value, depth)?;
            Ok(if plain { ForEach::Continue } else { ForEach::Stop })
        })?;
        Ok(plain && left == 0)
    }

    /// Whether it has no default, compares its keys as usual, and is not marked as keywords.
    fn is_usual(&self, hash: RHash) -> Result<bool, Error> {
        Ok(hash.funcall::<_, _, Value>(*DEFAULT, ())?.is_nil()
            && hash.funcall::<_, _, Value>(*DEFAULT_PROC, ())?.is_nil()
            && !hash.funcall::<_, _, bool>(*COMPARE_BY_IDENTITY, ())?
            && !self.ruby.class_hash().funcall::<_, _, bool>(*RUBY2_KEYWORDS_HASH, (hash,))?)
    }

    /// Writes the number of a symbol that has occurred before.
    fn is_known(&mut self, symbol: Option<VALUE>) -> bool {
        let Some(number) = self.symbols.iter().position(|known| *known == symbol) else {
            self.symbols.push(symbol);
            return false;
        };
        self.bytes.push(b';');
        self.number(number as i64);
        true
    }

    fn new_symbol(&mut self, name: &str) {
        self.bytes.push(b':');
        self.piece(name.as_bytes());
    }

    fn piece(&mut self, piece: &[u8]) {
        self.number(piece.len() as i64);
        self.bytes.extend_from_slice(piece);
    }

    /// See `number` in [`crate::plain_load`].
    fn number(&mut self, number: i64) {
        match number {
            0 => self.bytes.push(0),
            1..=122 => self.bytes.push(number as u8 + 5),
            -123..=-1 => self.bytes.push((number - 5) as u8),
            _ => {
                let bytes = number.to_le_bytes();
                let filler = if number < 0 { 0xff } else { 0 };
                let length = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == filler).count();
                self.bytes.push(if number < 0 { (length as u8).wrapping_neg() } else { length as u8 });
                self.bytes.extend_from_slice(&bytes[..length]);
            }
        }
    }
}
