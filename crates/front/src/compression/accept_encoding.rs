//! Which of the codings that can be had a client prefers (RFC 9110 section 12.5.3).

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `zstd` (RFC 8878).
    Zstd,
    /// `br` (RFC 7932).
    Brotli,
    /// `gzip` (RFC 1952).
    Gzip,
}

impl Coding {
    /// Its name in Content-Encoding.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// `x-gzip` is an old name (RFC 9110 section 8.4.1.3).
    fn of_name(name: &[u8]) -> Option<Coding> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match name.len() {
            2 if is("br") => Some(Coding::Brotli),
            4 if is("gzip") => Some(Coding::Gzip),
            4 if is("zstd") => Some(Coding::Zstd),
            6 if is("x-gzip") => Some(Coding::Gzip),
            _ => None,
        }
    }
}

/// The weights that a client gives, in thousandths; `None` where it names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptEncoding {
    zstd: Option<u16>,
    brotli: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any_other: Option<u16>,
}

impl AcceptEncoding {
    /// Reads the values of all Accept-Encoding fields of a request.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut accepted = AcceptEncoding::default();
        let items = values.into_iter().flat_map(|value| value.split(|&byte| byte == b','));
        items.for_each(|item| accepted.add(item));
        accepted
    }

    fn add(&mut self, item: &[u8]) {
        let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or(b"");
        // What cannot be read counts as refused: a response without coding is never wrong.
        let weight = parts.next().map_or(1000, |parameter| parse_weight(parameter).unwrap_or(0));
        let place = match Coding::of_name(name) {
            Some(Coding::Zstd) => &mut self.zstd,
            Some(Coding::Brotli) => &mut self.brotli,
            Some(Coding::Gzip) => &mut self.gzip,
            None if name == b"*" => &mut self.any_other,
            None if name.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            None => return,
        };
        *place = Some(weight);
    }

    /// The coding with the largest weight, of several the first of `codings`; `None`: no coding.
    pub fn choose(&self, codings: &[Coding]) -> Option<Coding> {
        // A client that does not name "identity" takes it, but prefers what it has named.
        let least = self.identity.unwrap_or(0).max(1);
        let weighed = codings.iter().map(|coding| (self.weight(*coding), *coding));
        let best = weighed.fold(None, |best: Option<(u16, Coding)>, one| match best {
            Some(best) if best.0 >= one.0 => Some(best),
            _ => Some(one),
        });
        best.filter(|(weight, _)| *weight >= least).map(|(_, coding)| coding)
    }

    fn weight(&self, coding: Coding) -> u16 {
        let named = match coding {
            Coding::Zstd => self.zstd,
            Coding::Brotli => self.brotli,
            Coding::Gzip => self.gzip,
        };
        named.or(self.any_other).unwrap_or(0)
    }
}

/// `q=0.123`, in thousandths.
fn parse_weight(parameter: &[u8]) -> Option<u16> {
    let (whole, decimals) = match parameter {
        [b'q' | b'Q', b'=', whole @ (b'0' | b'1')] => (whole, &[][..]),
        [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), b'.', decimals @ ..] if decimals.len() <= 3 => {
            (whole, decimals)
        }
        _ => return None,
    };
    let mut thousandths = u16::from(whole - b'0');
    for at in 0..3 {
        let digit = decimals.get(at).copied().unwrap_or(b'0');
        thousandths = thousandths * 10 + u16::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::Coding::{Brotli, Gzip, Zstd};
    use super::*;

    fn choose(accept: &str, codings: &[Coding]) -> Option<Coding> {
        AcceptEncoding::of([accept.as_bytes()]).choose(codings)
    }

    #[test]
    fn the_heaviest_coding_that_can_be_had_is_chosen() {
        for (accept, two, gzip_only) in [
            ("", None, None),
            ("gzip, deflate, br", Some(Brotli), Some(Gzip)),
            ("gzip", Some(Gzip), Some(Gzip)),
            ("X-GZIP", Some(Gzip), Some(Gzip)),
            ("deflate", None, None),
            ("br;q=0.5, gzip;q=0.8", Some(Gzip), Some(Gzip)),
            ("br;q=0, gzip", Some(Gzip), Some(Gzip)),
            ("br; q=0.001", Some(Brotli), None),
            ("*", Some(Brotli), Some(Gzip)),
            ("*;q=0", None, None),
            ("br;q=0, *", Some(Gzip), Some(Gzip)),
            ("gzip;q=0, *;q=0.5", Some(Brotli), None),
            ("identity, gzip;q=0.5", None, None),
            ("identity;q=0.2, gzip;q=0.5", Some(Gzip), Some(Gzip)),
            ("identity;q=0, gzip;q=0", None, None),
            ("br;q=2, gzip;q=x", None, None),
            ("br;q=1.001", None, None),
            ("br;q=1.0000", None, None),
            ("br;q=.5", None, None),
            ("br;q=1.", Some(Brotli), None),
            ("br;level=9", None, None),
            ("zstd", None, None),
        ] {
            assert_eq!(choose(accept, &[Brotli, Gzip]), two, "{accept:?}");
            assert_eq!(choose(accept, &[Gzip]), gzip_only, "{accept:?}");
            assert_eq!(choose(accept, &[]), None, "{accept:?}");
        }
    }

    #[test]
    fn of_equal_weights_the_order_decides() {
        let browser = "gzip, deflate, br, zstd";
        assert_eq!(choose(browser, &[Zstd, Brotli, Gzip]), Some(Zstd));
        assert_eq!(choose(browser, &[Brotli, Zstd, Gzip]), Some(Brotli));
        assert_eq!(choose("zstd;q=0.9, gzip", &[Zstd, Brotli, Gzip]), Some(Gzip));
    }

    #[test]
    fn several_fields_are_one_list() {
        let fields = [&b"deflate"[..], b"br;q=0.1", b"gzip;q=0.2"];
        assert_eq!(AcceptEncoding::of(fields).choose(&[Zstd, Brotli, Gzip]), Some(Gzip));
    }
}
