//! Which compressed sibling a client prefers (RFC 9110 section 12.5.3).

/// A coding for which files may have a sibling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// `name.br`
    Brotli,
    /// `name.gz`
    Gzip,
}

impl Coding {
    /// Its name in Content-Encoding.
    pub(super) fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }
}

/// Weights of the codings, in thousandths; `None` if not named.
#[derive(Default)]
struct Weights {
    brotli: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any_other: Option<u16>,
}

/// Chooses among the siblings that there are; `None`: the file as it is.
pub(super) fn choose(accept_encoding: &[u8], there_is: impl Fn(Coding) -> bool) -> Option<Coding> {
    if accept_encoding.is_empty() || !(there_is(Coding::Brotli) || there_is(Coding::Gzip)) {
        return None;
    }
    let weights = Weights::of(accept_encoding);
    let weight = |coding, named: Option<u16>| {
        if there_is(coding) {
            named.or(weights.any_other).unwrap_or(0)
        } else {
            0
        }
    };
    let brotli = weight(Coding::Brotli, weights.brotli);
    let gzip = weight(Coding::Gzip, weights.gzip);
    // A client that does not name "identity" takes it, but likes what it named better.
    let least = weights.identity.unwrap_or(0).max(1);
    if brotli >= gzip && brotli >= least {
        Some(Coding::Brotli)
    } else if gzip >= least {
        Some(Coding::Gzip)
    } else {
        None
    }
}

impl Weights {
    fn of(accept_encoding: &[u8]) -> Self {
        let mut weights = Weights::default();
        for item in accept_encoding.split(|&byte| byte == b',') {
            let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or(b"");
            // What cannot be read counts as refused: the plain file is never wrong.
            let weight = parts.next().map_or(1000, |parameter| parse_weight(parameter).unwrap_or(0));
            let place = if name.eq_ignore_ascii_case(b"br") {
                &mut weights.brotli
            } else if name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip") {
                &mut weights.gzip
            } else if name.eq_ignore_ascii_case(b"identity") {
                &mut weights.identity
            } else if name == b"*" {
                &mut weights.any_other
            } else {
                continue;
            };
            *place = Some(weight);
        }
        weights
    }
}

/// `q=0.123`, in thousandths.
fn parse_weight(parameter: &[u8]) -> Option<u16> {
    let (b'q' | b'Q', rest) = parameter.split_first()? else { return None };
    let value = std::str::from_utf8(rest.strip_prefix(b"=")?).ok()?;
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    if !matches!(whole, "0" | "1")
        || decimals.len() > 3
        || !decimals.bytes().all(|digit| digit.is_ascii_digit())
    {
        return None;
    }
    let thousandths: u16 = format!("{whole}{decimals:0<3}").parse().ok()?;
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_coding_that_is_there_is_chosen() {
        use Coding::{Brotli, Gzip};
        for (accept, both, gzip_only) in [
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
            ("br;level=9", None, None),
        ] {
            assert_eq!(choose(accept.as_bytes(), |_| true), both, "{accept:?}");
            assert_eq!(choose(accept.as_bytes(), |coding| coding == Gzip), gzip_only, "{accept:?}");
            assert_eq!(choose(accept.as_bytes(), |_| false), None, "{accept:?}");
        }
    }
}
