//! How figures are written, for people.

/// `31 s`, `2 min`, `3 h`, `2 d`
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

pub(crate) fn age(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => duration(ms / 1000),
    }
}

/// A rate.
pub(crate) fn number(rate: Option<f64>) -> String {
    match rate {
        None => "–".into(),
        Some(rate) if rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    }
}

/// The limit of a bucket: a time is at most this long.
pub(crate) fn at_most(ms: f64) -> String {
    match ms {
        ms if ms.is_infinite() => "> 1 min".into(),
        ms if ms < 1.0 => "< 1 ms".into(),
        ms if ms < 10.0 && ms.fract() > 0.0 => format!("≤ {:.1} ms", (ms * 10.0).ceil() / 10.0),
        ms if ms < 1000.0 => format!("≤ {ms:.0} ms"),
        ms => format!("≤ {:.1} s", (ms / 100.0).ceil() / 10.0),
    }
}

pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "–".into(), |value| value.to_string())
}

/// Memory.
pub(crate) fn mib(bytes: Option<u64>) -> String {
    or_dash(bytes.map(|bytes| format!("{} MiB", bytes >> 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_no_shorter_than_they_are() {
        let texts = [0.5, 1.0, 1.25, 12.0, 768.0, 1024.0, 65_536.0, f64::INFINITY].map(at_most);
        let expected =
            ["< 1 ms", "≤ 1 ms", "≤ 1.3 ms", "≤ 12 ms", "≤ 768 ms", "≤ 1.1 s", "≤ 65.6 s", "> 1 min"];
        assert_eq!(texts, expected);
    }
}
