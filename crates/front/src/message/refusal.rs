//! Every reason for which the front itself answers with an error, and what the client gets.
//!
//! This is the one place where a reason becomes a status code.

use crate::http_syntax::reason_phrase;

/// When to try again where the application did not boot, in seconds.
const APP_FAILED_RETRY_SECONDS: u32 = 5;

/// Why the front answers in the application's place. [`Refusal::why`] says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Refusal {
    BadRequestLine,
    MethodTooLong,
    ConnectMethod,
    /// The target is in none of the forms of RFC 9112 section 3.2, or has characters that none may have.
    BadTarget,
    BadVersion,
    UnknownVersion,
    TargetTooLong,
    HeadTooLarge,
    TooManyFields,
    BareLineFeed,
    BareCarriageReturn,
    SpaceBeforeFirstField,
    FoldedField,
    SpaceBeforeColon,
    BadFieldName,
    BadFieldValue,
    HostMissing,
    HostRepeated,
    HostInvalid,
    HostDiffers,
    /// The connection was secured with the certificate of another host, or its client was asked for another one.
    Misdirected,
    /// A Forwarded field of a trusted proxy that is not what RFC 7239 section 4 says.
    BadForwarded,
    BadContentLength,
    ContentLengthRepeated,
    LengthAndTransferEncoding,
    TransferEncodingFromHttp10,
    BadTransferEncoding,
    UnknownTransferCoding,
    UnknownExpectation,
    /// A chunked body that breaks the rules of RFC 9112 section 7.1.
    BadChunk,
    ChunkExtensionsTooLarge,
    BadTrailer,
    /// Trailer fields beyond the limits of a head.
    TrailersTooLarge,
    BodyTooLarge,
    HeadTimeout,
    BodyTimeout,
    NoApp,
    /// No application is there to ask.
    NotFound,
    /// A static site answers no other methods.
    OnlyGetAndHead,
    LoginNeeded,
    /// The application is for clients with a certificate, which needs HTTPS.
    ClientCertificateNeeded,
    TooManyLogins {
        retry_after_seconds: u32,
    },
    /// Those who work on the application have switched it off for visitors.
    Maintenance {
        retry_after_seconds: u32,
    },
    /// The client has asked too often (option `rate_limit`).
    RateLimited {
        retry_after_seconds: u32,
    },
    LoginsBusy {
        retry_after_seconds: u32,
    },
    UsersUnreadable,
    /// The body could not be stored while it arrived.
    BodyNotStored,
    SpoolFull {
        retry_after_seconds: u32,
    },
    /// The application raised an exception, and nothing of an answer had come.
    AppRaised,
    /// The worker died, or broke the rules of its ring, before it had answered.
    WorkerDied {
        /// The worker's number.
        worker: u32,
    },
    /// The worker's answer could not be sent on.
    BadResponse {
        /// What is wrong with it: `has a malformed Content-Length`.
        why: &'static str,
    },
    /// The request queue is full: the request is shed.
    QueueFull {
        retry_after_seconds: u32,
    },
    /// The worker has as many streams as it may have.
    TooManyStreams {
        /// What Retry-After says.
        retry_after_seconds: u32,
    },
    /// No worker is there yet, or no longer.
    NoWorker {
        retry_after_seconds: u32,
    },
    AppFailed,
    Draining {
        retry_after_seconds: u32,
    },
    /// The application did not begin its answer in time.
    WorkerTimeout {
        /// The worker that has begun it, if one has.
        worker: Option<u32>,
    },
}

impl Refusal {
    /// The status code (RFC 9110 section 15, RFC 6585).
    pub fn status(self) -> u16 {
        use Refusal::*;
        match self {
            BadRequestLine | BadTarget | BadVersion | BareLineFeed | BareCarriageReturn => 400,
            SpaceBeforeFirstField | FoldedField | SpaceBeforeColon => 400,
            BadFieldName | BadFieldValue => 400,
            HostMissing | HostRepeated | HostInvalid | HostDiffers | BadForwarded => 400,
            BadContentLength | ContentLengthRepeated | LengthAndTransferEncoding => 400,
            TransferEncodingFromHttp10 | BadTransferEncoding => 400,
            BadChunk | ChunkExtensionsTooLarge | BadTrailer => 400,
            LoginNeeded => 401,
            ClientCertificateNeeded => 403,
            NoApp | NotFound => 404,
            OnlyGetAndHead => 405,
            HeadTimeout | BodyTimeout => 408,
            BodyTooLarge => 413,
            TargetTooLong => 414,
            UnknownExpectation => 417,
            Misdirected => 421,
            TooManyLogins { .. } | RateLimited { .. } => 429,
            HeadTooLarge | TooManyFields | TrailersTooLarge => 431,
            BodyNotStored | AppRaised | UsersUnreadable => 500,
            MethodTooLong | ConnectMethod | UnknownTransferCoding => 501,
            WorkerDied { .. } | BadResponse { .. } => 502,
            SpoolFull { .. } | QueueFull { .. } | NoWorker { .. } | AppFailed | Draining { .. } => 503,
            LoginsBusy { .. } | TooManyStreams { .. } | Maintenance { .. } => 503,
            WorkerTimeout { .. } => 504,
            UnknownVersion => 505,
        }
    }

    /// What is wrong, in a few plain words.
    pub fn why(self) -> &'static str {
        use Refusal::*;
        match self {
            BadRequestLine => "the request line is malformed",
            MethodTooLong => "the method is too long",
            ConnectMethod => "this server is not a proxy",
            BadTarget => "the request target is malformed",
            BadVersion => "the HTTP version is malformed",
            UnknownVersion => "only HTTP/1.0 and HTTP/1.1 are supported here",
            TargetTooLong => "the request target is too long",
            HeadTooLarge => "the request head is too large",
            TooManyFields => "the request has too many header fields",
            BareLineFeed => "a line ends in LF without CR",
            BareCarriageReturn => "a CR is not followed by LF",
            SpaceBeforeFirstField => "white space before the first header field",
            FoldedField => "a header field is folded over several lines",
            SpaceBeforeColon => "white space between a header field's name and its colon",
            BadFieldName => "a header field's name is malformed",
            BadFieldValue => "a header field's value has a control character",
            HostMissing => "the Host field is missing",
            HostRepeated => "the Host field is repeated",
            HostInvalid => "the Host field is malformed",
            HostDiffers => "the Host field names another host than :authority",
            Misdirected => {
                "this connection is for a host with another certificate, or other client certificates"
            }
            BadForwarded => "the Forwarded field is malformed",
            BadContentLength => "the Content-Length field is malformed",
            ContentLengthRepeated => "the Content-Length field is repeated",
            LengthAndTransferEncoding => "the request has both Content-Length and Transfer-Encoding",
            TransferEncodingFromHttp10 => "Transfer-Encoding in an HTTP/1.0 request",
            BadTransferEncoding => "Transfer-Encoding does not end in one \"chunked\"",
            UnknownTransferCoding => "a transfer coding other than \"chunked\"",
            UnknownExpectation => "an expectation other than \"100-continue\"",
            BadChunk => "the chunked body is malformed",
            ChunkExtensionsTooLarge => "the chunk extensions are too large",
            BadTrailer => "a trailer field is malformed",
            TrailersTooLarge => "the trailer fields are too large",
            BodyTooLarge => "the request body is too large",
            HeadTimeout => "the request head took too long",
            BodyTimeout => "the request body took too long",
            NoApp => "no application is served at this host and path",
            NotFound => "nothing is served here",
            OnlyGetAndHead => "only GET and HEAD are allowed here",
            ClientCertificateNeeded => "a client certificate is required, over HTTPS",
            LoginNeeded => "a user name and a password are required",
            TooManyLogins { .. } => "too many wrong passwords were tried",
            RateLimited { .. } => "too many requests came from your address",
            Maintenance { .. } => "the site is down for maintenance",
            LoginsBusy { .. } => "too many passwords are being checked",
            UsersUnreadable => "passwords cannot be checked; the server's log says why",
            BodyNotStored => "the request body could not be stored",
            SpoolFull { .. } => "the server has no room for the request body at the moment",
            AppRaised => "the application raised an exception; its log says which",
            WorkerDied { .. } => "the application's process ended before it answered",
            BadResponse { .. } => "the application's response is invalid",
            QueueFull { .. } => "too many requests are waiting",
            TooManyStreams { .. } => "too many streams are open",
            NoWorker { .. } => "the application is not ready",
            AppFailed => "the application did not start",
            Draining { .. } => "the server is stopping",
            WorkerTimeout { .. } => "the application took too long to answer",
        }
    }

    /// Status and reason in one line.
    pub(crate) fn in_words(self) -> String {
        format!("{} {}: {}", self.status(), reason_phrase(self.status()), self.why())
    }

    /// Whether it is for the application that the front answers: then the application may have a page for it, and
    /// developers get more.
    pub fn is_of_the_application(self) -> bool {
        use Refusal::*;
        matches!(
            self,
            AppRaised
                | WorkerDied { .. }
                | BadResponse { .. }
                | QueueFull { .. }
                | TooManyStreams { .. }
                | NoWorker { .. }
                | AppFailed
                | Draining { .. }
                | WorkerTimeout { .. }
        )
    }

    /// The worker that it is about, if it is about one.
    pub(crate) fn worker(self) -> Option<u32> {
        match self {
            Refusal::WorkerDied { worker } => Some(worker),
            Refusal::WorkerTimeout { worker } => worker,
            _ => None,
        }
    }

    /// What is wrong with an answer, if there is one.
    pub(crate) fn details(self) -> Option<&'static str> {
        match self {
            Refusal::BadResponse { why } => Some(why),
            _ => None,
        }
    }

    /// When the client may try again, if the refusal is temporary.
    pub fn retry_after_seconds(self) -> Option<u32> {
        match self {
            Refusal::SpoolFull { retry_after_seconds }
            | Refusal::QueueFull { retry_after_seconds }
            | Refusal::TooManyStreams { retry_after_seconds }
            | Refusal::NoWorker { retry_after_seconds }
            | Refusal::TooManyLogins { retry_after_seconds }
            | Refusal::RateLimited { retry_after_seconds }
            | Refusal::Maintenance { retry_after_seconds }
            | Refusal::LoginsBusy { retry_after_seconds }
            | Refusal::Draining { retry_after_seconds } => Some(retry_after_seconds),
            Refusal::AppFailed => Some(APP_FAILED_RETRY_SECONDS),
            _ => None,
        }
    }
}
