//! Reads the head of an HTTP/1 request: where it ends, what it says, and whether it may be believed.
//!
//! Three steps:
//!
//! - [`super::scan`]: finds the end of the head, line by line, and keeps to the limits while it arrives;
//! - `httparse`: splits the head (the scan has seen to what it lets pass: LF without CR);
//! - this file: what the request line and the fields mean (RFC 9112 sections 3 and 6).

use std::mem::MaybeUninit;

use highball_config::Limits;

use super::scan::{self, Scan};
use crate::http_syntax::{has_list_token, parse_length};
use crate::message::refusal::Refusal;
use crate::message::request_head::{known_key, BodyFraming, FieldKey, RequestHead, Version, MAX_FIELDS};

/// How far a head has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// The head is whole.
    Complete {
        /// Bytes of the buffer that it takes, with empty lines before it.
        length: usize,
    },
    /// More bytes are needed.
    Partial,
}

/// Reads one head after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reader {
    scan: Scan,
    complete: bool,
}

/// What fields say about the request as a whole, gathered while they are read.
#[derive(Default)]
struct Gathered<'a> {
    host: Option<&'a [u8]>,
    content_length: Option<u64>,
    transfer_encoding: bool,
    codings: u32,
    chunked: u32,
    last_is_chunked: bool,
    close: bool,
    keep_alive: bool,
    connection_upgrade: bool,
    upgrade: bool,
    expect_continue: bool,
}

impl Reader {
    /// Parses the head at the start of `buffer` into `head`, which holds spans of it then.
    ///
    /// After [`Parsed::Partial`], call again with the same bytes and more behind them: what was seen is
    /// not looked at again. After [`Parsed::Complete`], the next call begins with a new request.
    ///
    /// # Errors
    /// The refusal for the client; the connection cannot be used any further.
    pub fn parse(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        head: &mut RequestHead,
    ) -> Result<Parsed, Refusal> {
        if self.complete {
            *self = Reader::default();
        }
        let Some(end) = self.scan.advance(buffer, limits)? else {
            return Ok(Parsed::Partial);
        };
        let (whole, begin) = (&buffer[..end], self.scan.begin());
        match read(whole, begin, head) {
            Err(Refusal::UnknownVersion) => match scan::with_known_version(&whole[begin..]) {
                Some(known) => read(&[&whole[..begin], &known].concat(), begin, head)?,
                None => return Err(Refusal::UnknownVersion),
            },
            result => result?,
        }
        self.complete = true;
        Ok(Parsed::Complete { length: end })
    }

    /// Whether any byte of a head has been seen that is not yet complete.
    pub fn has_begun(&self, buffer: &[u8]) -> bool {
        !self.complete && self.scan.has_begun(buffer)
    }
}

/// Reads a whole head, whose request line begins at `begin`.
fn read(whole: &[u8], begin: usize, head: &mut RequestHead) -> Result<(), Refusal> {
    let mut storage = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(&whole[begin..], &mut storage);
    let is_whole = matches!(parsed, Ok(httparse::Status::Complete(length)) if begin + length == whole.len());
    let (true, Some(method), Some(target), Some(version)) =
        (is_whole, request.method, request.path, request.version)
    else {
        return Err(scan::explain(&whole[begin..], parsed.err()));
    };
    head.begin(method.as_bytes(), whole);
    head.version = if version == 0 { Version::Http10 } else { Version::Http11 };
    let mut gathered = Gathered::default();
    for header in request.headers.iter() {
        let key = head.add_field(header.name.as_bytes(), header.value, whole);
        gathered.note(key, header.value)?;
    }
    head.finish(target.as_bytes(), gathered.host, whole)?;
    if gathered.host.is_none() && head.version == Version::Http11 {
        return Err(Refusal::HostMissing);
    }
    head.framing = gathered.framing(head.version)?;
    head.upgrade = gathered.upgrade && gathered.connection_upgrade && head.version == Version::Http11;
    head.keep_alive = match head.version {
        Version::Http11 | Version::Http2 => !gathered.close,
        Version::Http10 => gathered.keep_alive && !gathered.close,
    };
    // An HTTP/1.0 client cannot wait for 100 (RFC 9110 section 10.1.1), nor can one without a body.
    head.expect_continue =
        gathered.expect_continue && head.version == Version::Http11 && head.framing != BodyFraming::None;
    Ok(())
}

impl<'a> Gathered<'a> {
    /// Notes what one field means for the request as a whole.
    fn note(&mut self, key: FieldKey, value: &'a [u8]) -> Result<(), Refusal> {
        match key {
            known_key::HOST => only_once(self.host.replace(value), Refusal::HostRepeated)?,
            known_key::CONTENT_LENGTH => {
                let length = parse_length(value).ok_or(Refusal::BadContentLength)?;
                only_once(self.content_length.replace(length), Refusal::ContentLengthRepeated)?;
            }
            known_key::TRANSFER_ENCODING => self.note_codings(value)?,
            known_key::CONNECTION => {
                self.close |= has_list_token(value, "close");
                self.keep_alive |= has_list_token(value, "keep-alive");
                self.connection_upgrade |= has_list_token(value, "upgrade");
            }
            known_key::UPGRADE => self.upgrade = true,
            known_key::EXPECT => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refusal::UnknownExpectation);
                }
                self.expect_continue = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self, version: Version) -> Result<BodyFraming, Refusal> {
        if !self.transfer_encoding {
            return Ok(match self.content_length {
                None | Some(0) => BodyFraming::None,
                Some(length) => BodyFraming::Length(length),
            });
        }
        if version == Version::Http10 {
            return Err(Refusal::TransferEncodingFromHttp10);
        }
        if self.content_length.is_some() {
            return Err(Refusal::LengthAndTransferEncoding);
        }
        if !self.last_is_chunked || self.chunked != 1 {
            return Err(Refusal::BadTransferEncoding);
        }
        if self.codings != 1 {
            return Err(Refusal::UnknownTransferCoding);
        }
        Ok(BodyFraming::Unknown)
    }

    fn note_codings(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.transfer_encoding = true;
        for coding in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if coding.is_empty() {
                return Err(Refusal::BadTransferEncoding);
            }
            self.last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.chunked += u32::from(self.last_is_chunked);
            self.codings += 1;
        }
        Ok(())
    }
}

/// Refuses a field that was there before.
fn only_once<T>(earlier: Option<T>, refusal: Refusal) -> Result<(), Refusal> {
    earlier.map_or(Ok(()), |_| Err(refusal))
}

#[cfg(test)]
mod tests;
