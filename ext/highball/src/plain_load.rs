//! Loads what Marshal has written, if all of it is of a few plain kinds, in about half of the time that Ruby needs for a small
//! table: Ruby looks for methods of the application at each object, and keeps tables of what it has read.
//!
//! The bytes may be anything. What is not exactly of these kinds is left to Ruby, which also has the errors.
#![allow(unsafe_code)]

use magnus::encoding::RbEncoding;
use magnus::{prelude::*, RString, Ruby, Symbol, Value};

/// The version of the format, which all Rubies since 1.8 have.
pub(crate) const VERSION: [u8; 2] = [4, 8];
/// Of more, copying takes most of the time.
pub(crate) const MOST_BYTES: usize = 16 * 1024;
const MOST_SYMBOLS: usize = 32;
const DEEPEST: usize = 32;

/// `Native.load_plain(bytes) -> Object | nil`: as `Marshal.load`; nil if the bytes are not those of the objects that
/// `dump_plain` writes.
pub(crate) fn load(ruby: &Ruby, bytes: RString) -> Option<Value> {
    if bytes.len() > MOST_BYTES {
        return None;
    }
    // SAFETY: copied before Ruby runs.
    let bytes = unsafe { bytes.as_slice() }.to_vec();
    let rest = bytes.strip_prefix(&VERSION)?;
    let mut reader = Reader { ruby, rest, symbols: [None; MOST_SYMBOLS], known: 0 };
    let object = reader.object(DEEPEST)?;
    reader.rest.is_empty().then_some(object)
}

/// Reads an object after the other. All that it has of Ruby's is on the stack, where the garbage collector looks.
struct Reader<'a> {
    ruby: &'a Ruby,
    rest: &'a [u8],
    /// In the order of their numbers. None for the name of the encoding, which is no value.
    symbols: [Option<Symbol>; MOST_SYMBOLS],
    known: usize,
}

impl<'a> Reader<'a> {
    fn object(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match self.byte()? {
            b'0' => Some(self.ruby.qnil().as_value()),
            b'T' => Some(self.ruby.qtrue().as_value()),
            b'F' => Some(self.ruby.qfalse().as_value()),
            b'i' => Some(self.ruby.integer_from_i64(self.number()?).as_value()),
            b':' => Some(self.new_symbol()?.as_value()),
            b';' => Some(self.known_symbol()?.as_value()),
            b'"' => Some(self.text(self.ruby.ascii8bit_encoding())?.as_value()),
            b'I' => Some(self.encoded_text()?.as_value()),
            b'[' => self.array(depth),
            b'{' => self.hash(depth),
            _ => None,
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let length = self.length()?;
        let array = self.ruby.ary_new_capa(length);
        for _ in 0..length {
            array.push(self.object(depth)?).ok()?;
        }
        Some(array.as_value())
    }

    /// (Other keys may have methods of the application.)
    fn hash(&mut self, depth: usize) -> Option<Value> {
        let hash = self.ruby.hash_new();
        for _ in 0..self.length()? {
            if !matches!(self.rest.first()?, b':' | b';' | b'i' | b'"' | b'I') {
                return None;
            }
            let key = self.object(depth)?;
            hash.aset(key, self.object(depth)?).ok()?;
        }
        Some(hash.as_value())
    }

    /// A string with the variable E, which says that it is in UTF-8 or in ASCII.
    fn encoded_text(&mut self) -> Option<RString> {
        if self.byte()? != b'"' {
            return None;
        }
        let bytes = self.piece()?;
        if self.number()? != 1 || !self.is_encoding_next()? {
            return None;
        }
        let encoding = match self.byte()? {
            b'T' => self.ruby.utf8_encoding(),
            b'F' => self.ruby.usascii_encoding(),
            _ => return None,
        };
        Some(self.ruby.enc_str_new(bytes, encoding))
    }

    fn text(&mut self, encoding: RbEncoding) -> Option<RString> {
        Some(self.ruby.enc_str_new(self.piece()?, encoding))
    }

    fn is_encoding_next(&mut self) -> Option<bool> {
        match self.byte()? {
            b':' if self.piece()? == b"E" => self.add_symbol(None).map(|()| true),
            b';' => {
                let number = self.number()?;
                Some(self.symbols[..self.known].get(usize::try_from(number).ok()?)?.is_none())
            }
            _ => None,
        }
    }

    fn new_symbol(&mut self) -> Option<Symbol> {
        let name = self.piece()?;
        if !name.is_ascii() || name == b"E" {
            return None;
        }
        let symbol = self.ruby.to_symbol(std::str::from_utf8(name).ok()?);
        self.add_symbol(Some(symbol)).map(|()| symbol)
    }

    fn known_symbol(&mut self) -> Option<Symbol> {
        let number = usize::try_from(self.number()?).ok()?;
        *self.symbols[..self.known].get(number)?
    }

    fn add_symbol(&mut self, symbol: Option<Symbol>) -> Option<()> {
        *self.symbols.get_mut(self.known)? = symbol;
        self.known += 1;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn piece(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (piece, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(piece)
    }

    /// A number of bytes or objects: not more than there are bytes.
    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|length| *length <= self.rest.len())
    }

    /// Small numbers are one byte. Of others, that is the number of the bytes that follow, negative for negative numbers.
    fn number(&mut self) -> Option<i64> {
        let first = i64::from(self.byte()? as i8);
        match first {
            0 => Some(0),
            5..=127 => Some(first - 5),
            -128..=-5 => Some(first + 5),
            _ => {
                let mut number = if first < 0 { -1_i64 } else { 0 };
                for place in 0..first.abs() {
                    let shift = 8 * place;
                    number = number & !(0xff << shift) | i64::from(self.byte()?) << shift;
                }
                Some(number)
            }
        }
    }
}
