//! Amounts, for people.

/// `70.0 MiB`
pub fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// `4 GiB`, `3.8 GiB`, `512 MiB`
pub fn gib(bytes: u64) -> String {
    let (mib, gib) = (bytes >> 20, bytes as f64 / f64::from(1 << 30));
    match mib {
        0..1024 => format!("{mib} MiB"),
        _ if mib % 1024 == 0 => format!("{} GiB", mib / 1024),
        _ => format!("{gib:.1} GiB"),
    }
}

/// `1 connection`, `2 processes`
pub fn counted(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// A time in seconds: `42s`, `5m 12s`, `3h 20m`, `2d 4h`
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}
