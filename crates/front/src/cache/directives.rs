//! Cache-Control (RFC 9111 section 5.2): what requests and responses say about caches.

/// The longest time that is counted, in seconds: a year.
const MOST_SECONDS: u64 = 365 * 24 * 60 * 60;

/// The directives that are understood. Of a directive that is given twice, the stricter one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)] // they have the names of RFC 9111 and RFC 5861; times are in seconds
pub struct Directives {
    pub no_store: bool,
    pub no_cache: bool,
    pub private: bool,
    pub public: bool,
    /// `must-revalidate` or `proxy-revalidate`.
    pub must_revalidate: bool,
    pub only_if_cached: bool,
    pub max_age: Option<u64>,
    pub s_maxage: Option<u64>,
    pub min_fresh: Option<u64>,
    pub stale_while_revalidate: Option<u64>,
    pub stale_if_error: Option<u64>,
}

impl Directives {
    /// The directives of all Cache-Control fields of a message.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut directives = Directives::default();
        for value in values {
            for_each_item(value, |item| directives.add(item));
        }
        directives
    }

    fn add(&mut self, item: &[u8]) {
        let equals = memchr::memchr(b'=', item);
        let (name, argument) = match equals {
            Some(at) => (item[..at].trim_ascii(), Some(item[at + 1..].trim_ascii())),
            None => (item, None),
        };
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        // A field list behind `private` or `no-cache` makes the rest of the answer no more cacheable here.
        match name.len() {
            6 if is("public") => self.public = true,
            7 if is("private") => self.private = true,
            7 if is("max-age") => shorten(&mut self.max_age, argument, 0),
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.no_cache = true,
            8 if is("s-maxage") => shorten(&mut self.s_maxage, argument, 0),
            9 if is("min-fresh") => shorten(&mut self.min_fresh, argument, MOST_SECONDS),
            14 if is("only-if-cached") => self.only_if_cached = true,
            14 if is("stale-if-error") => shorten(&mut self.stale_if_error, argument, 0),
            15 if is("must-revalidate") => self.must_revalidate = true,
            16 if is("proxy-revalidate") => self.must_revalidate = true,
            22 if is("stale-while-revalidate") => shorten(&mut self.stale_while_revalidate, argument, 0),
            _ => {}
        }
    }
}

/// Notes a time. A malformed one counts as `strictest`.
fn shorten(time: &mut Option<u64>, argument: Option<&[u8]>, strictest: u64) {
    let seconds = argument.and_then(delta_seconds).unwrap_or(strictest);
    let stricter = match *time {
        Some(before) if strictest == 0 => before.min(seconds),
        Some(before) => before.max(seconds),
        None => seconds,
    };
    *time = Some(stricter);
}

/// A number of seconds, also in quotes. What is beyond the largest that is counted is that (RFC 9111 section 1.2.2).
pub fn delta_seconds(text: &[u8]) -> Option<u64> {
    let quoted = text.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let digits = quoted.unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(crate::http_syntax::parse_length(digits).map_or(MOST_SECONDS, |seconds| seconds.min(MOST_SECONDS)))
}

/// The items of a comma-separated list. A comma in a quoted string separates nothing (RFC 9110 section 5.6.4).
fn for_each_item(value: &[u8], mut each: impl FnMut(&[u8])) {
    let (mut begin, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, &byte) in value.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                each(value[begin..at].trim_ascii());
                begin = at + 1;
            }
            _ => {}
        }
    }
    if is_quoted {
        // A string without an end hides what stands in it from a parser that looks for its end, but from no other.
        return value[begin..].split(|&byte| byte == b',').for_each(|item| each(item.trim_ascii()));
    }
    each(value[begin..].trim_ascii());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Directives {
        Directives::of([value.as_bytes()])
    }

    #[test]
    fn what_frameworks_send() {
        let rails = of("max-age=300, public");
        assert_eq!(rails, Directives { public: true, max_age: Some(300), ..Directives::default() });
        let private = of("max-age=0, private, must-revalidate");
        assert!(private.private && private.must_revalidate && private.max_age == Some(0));
        let times = of("public, s-maxage=60, stale-while-revalidate=30, stale-if-error=600");
        assert_eq!((times.s_maxage, times.max_age), (Some(60), None));
        assert_eq!((times.stale_while_revalidate, times.stale_if_error), (Some(30), Some(600)));
    }

    #[test]
    fn the_stricter_of_two_counts() {
        assert_eq!(of("max-age=60, max-age=5").max_age, Some(5));
        assert_eq!(of("max-age=5, max-age=60").max_age, Some(5));
        assert_eq!(of("max-age=60, max-age=x").max_age, Some(0));
        assert_eq!(of("min-fresh=5, min-fresh=60").min_fresh, Some(60));
        assert_eq!(Directives::of([&b"public"[..], b"no-store"]), of("public, no-store"));
    }

    #[test]
    fn odd_spellings() {
        for (value, max_age) in [
            ("MAX-AGE=7", Some(7)),
            ("max-age=\"7\"", Some(7)),
            ("max-age = 7", Some(7)),
            ("max-age=-1", Some(0)),
            ("max-age=1.5", Some(0)),
            ("max-age=", Some(0)),
            ("max-age", Some(0)),
            ("max-age=99999999999999999999999", Some(MOST_SECONDS)),
            ("x=\"max-age=7\"", None),
            ("x=\"a\\\", max-age=7\"", None),
            ("x-max-age=7", None),
            (",, max-age=7 ,", Some(7)),
        ] {
            assert_eq!(of(value).max_age, max_age, "{value}");
        }
        assert!(of("private=\"set-cookie, x\"").private);
        assert!(of("public=1").public);
        assert!(of("x=\"unending, no-store").no_store, "another parser may see it");
    }
}
