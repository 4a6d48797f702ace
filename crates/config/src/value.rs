//! Values as people write them: sizes, durations, counts, switches, addresses.
//!
//! Each function takes the text and returns the value, or one sentence that says what it may be.

use std::ffi::OsStr;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use highball_cgroups::CpuMax;
use highball_text::{is_hidden, visible_path};
use rustix::fs::{access, Access};

use crate::settings::{
    Affinity, Bind, BindAddress, BindProtocol, MemoryBound, PathPattern, PathTimeout, ReforkAfter, SentFolder,
};
use crate::spelling::guess;
use crate::threads::{Threads, MOST_THREADS, USUAL};

/// The longest host name, in bytes (RFC 1035 section 2.3.4).
const HOST_BYTES: usize = 253;
/// The longest label of one.
const LABEL_BYTES: usize = 63;

/// The most folders for files that an application sends.
pub(crate) const SENT_FOLDERS: usize = 32;

/// The longest folder for files that an application sends, with its prefix, in bytes: all of them go into one message.
const SENT_FOLDER_BYTES: usize = 1024;

/// The number and the unit of a text such as `1.5s`; no digits give an empty number.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}

/// Bytes: `65536`, `64k`, `1m`, `1GiB`. All units are powers of 1024.
pub(crate) fn size(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let (number, unit) = split_unit(text);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    };
    let value = shift
        .zip(number.parse::<f64>().ok())
        .map(|(shift, number)| number * (1u64 << shift) as f64)
        .ok_or_else(|| {
            format!("`{text}` is not a size; write bytes, or a number with k, m or g, such as 64k")
        })?;
    // A float holds every size in range exactly enough: sizes beyond 2^53 bytes are outside all ranges.
    if value < *range.start() as f64 || value > *range.end() as f64 {
        return Err(format!(
            "{text} is out of range; it must be {} to {}",
            size_text(*range.start()),
            size_text(*range.end())
        ));
    }
    Ok(value as u64)
}

/// The smallest limit of memory: no Ruby process has less.
const LEAST_MEMORY: u64 = 16 << 20;

/// How much memory something may have: a size, a share such as `25%`, `none`, or, where it may be, `auto`.
pub(crate) fn memory_bound(text: &str, may_be_auto: bool) -> Result<MemoryBound, String> {
    match (text, text.strip_suffix('%')) {
        ("none", _) => Ok(MemoryBound::None),
        ("auto", _) if may_be_auto => Ok(MemoryBound::Auto),
        (_, Some(percent)) => {
            let percent = percent.trim().parse().ok().filter(|percent| (1..=100).contains(percent));
            percent
                .map(MemoryBound::Share)
                .ok_or_else(|| format!("{text} is out of range; it must be 1% to 100%"))
        }
        _ => size(text, &(LEAST_MEMORY..=1 << 50)).map(MemoryBound::Bytes),
    }
}

/// The least CPUs that a limit may have, in hundredths, as the kernel has it; and the most.
const CPU_HUNDREDTHS: RangeInclusive<u32> = 1..=1024 * 100;

/// A number of CPUs, such as `1.5`, to a hundredth.
pub(crate) fn cpus(text: &str) -> Result<CpuMax, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of CPUs; write one such as 1.5, or none"))?;
    let hundredths = (number * 100.0).round() as u32;
    let is_in_range = CPU_HUNDREDTHS.contains(&hundredths);
    is_in_range
        .then_some(CpuMax(hundredths))
        .ok_or_else(|| format!("{text} is out of range; it must be 0.01 to 1024"))
}

/// A size in its shortest exact form, as [`size`] reads it.
pub(crate) fn size_text(bytes: u64) -> String {
    for (shift, unit) in [(40, "t"), (30, "g"), (20, "m"), (10, "k")] {
        if bytes >= 1 << shift && bytes % (1 << shift) == 0 {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// A span of time: `30s`, `5m`, `1.5s`, `200ms`, `1h`, `2d`; a plain number means seconds.
pub(crate) fn duration(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let unit_seconds = match unit {
        "ms" => Some(0.001),
        "" | "s" => Some(1.0),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        "d" => Some(86400.0),
        _ => None,
    };
    let value = unit_seconds
        .zip(number.parse::<f64>().ok())
        .and_then(|(unit, number)| Duration::try_from_secs_f64(unit * number).ok())
        .ok_or_else(|| {
            format!(
                "`{text}` is not a duration; write seconds, or a number with ms, s, m, h or d, such as 30s"
            )
        })?;
    if !range.contains(&value) {
        return Err(format!(
            "{text} is out of range; it must be {} to {}",
            duration_text(*range.start()),
            duration_text(*range.end())
        ));
    }
    Ok(value)
}

/// A duration in its shortest exact form, as [`duration`] reads it.
pub(crate) fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match time.subsec_millis() {
        0 if seconds == 0 => "0s".into(),
        0 if seconds % 86400 == 0 => format!("{}d", seconds / 86400),
        0 if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        0 if seconds % 60 == 0 => format!("{}m", seconds / 60),
        0 => format!("{seconds}s"),
        _ => format!("{}ms", time.as_millis()),
    }
}

/// A whole number.
pub(crate) fn count<T: Display + FromStr + PartialOrd>(
    text: &str,
    range: &RangeInclusive<T>,
) -> Result<T, String> {
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| format!("`{text}` is not a whole number from {} to {}", range.start(), range.end()))
}

/// A number of threads, or a range such as `3..32`; `1:5` is how Puma writes one.
pub(crate) fn threads(text: &str) -> Result<Threads, String> {
    let of_range = |problem: String| format!("in the range `{text}`, {problem}");
    let number = |text: &str| count(text, &(1..=MOST_THREADS)).map_err(of_range);
    let (least, most) = if let Some((least, most)) = text.split_once("..") {
        (number(least)?, number(most)?)
    } else if let Some((least, most)) = text.split_once(':') {
        // Puma's smaller number may be 0. With fewer than 3, short requests would wait for long computations here.
        let (least, most) = (count(least, &(0..=MOST_THREADS)).map_err(of_range)?, number(most)?);
        (least.max(USUAL.min(most)), most)
    } else {
        return count(text, &(1..=MOST_THREADS)).map(Threads::fixed);
    };
    if least > most {
        return Err(format!("the range `{text}` begins above its end: write `{most}..{least}`"));
    }
    Ok(Threads { least, most, are_default: false })
}

/// The number of requests after which workers are forked again.
const REFORK_REQUESTS: RangeInclusive<u64> = 1..=1_000_000_000;

/// When workers are forked again: `auto`, `off`, or whole numbers with commas between them.
pub(crate) fn refork_after(text: &str) -> Result<ReforkAfter, String> {
    if text == "auto" {
        return Ok(ReforkAfter::Auto);
    }
    if switch(text) == Ok(false) {
        return Ok(ReforkAfter::Never);
    }
    let counts: Result<Vec<u64>, String> =
        text.split(',').map(|one| count(one.trim(), &REFORK_REQUESTS)).collect();
    counts
        .map(ReforkAfter::Requests)
        .map_err(|problem| format!("{problem}; write one or several with commas between them, auto, or off"))
}

/// `on` or `off`, and the words other programs use for them.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}

/// A host name as it is compared: in small letters, without a dot at its end, an IPv6 address in its canonical form; `*`
/// is every one.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let literal = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = literal.and_then(|literal| literal.parse::<Ipv6Addr>().ok()) {
        return Ok(format!("[{address}]"));
    }
    let host = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if host == "*" || ((1..=HOST_BYTES).contains(&host.len()) && host.bytes().all(is_name)) {
        return Ok(host);
    }
    Err(format!("`{text}` is not a host name; write it without a port, such as blog.example.org"))
}

/// Whether a file has a name for maintenance: commands of root write and remove it, so no other file can be meant.
pub fn is_maintenance_file(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    name.starts_with(b"maintenance") && name.ends_with(b".json")
}

/// The path of the file for maintenance, which may begin at an application's folder.
pub(crate) fn maintenance_file(text: &str) -> Result<PathBuf, String> {
    match is_maintenance_file(Path::new(text)) && !text.contains('\0') {
        true => Ok(text.into()),
        false => Err(format!("`{text}` is not the path of a file such as tmp/maintenance.json, whose name begins with maintenance and ends with .json")),
    }
}

/// A host name that stands for no others.
pub(crate) fn one_host(text: &str) -> Result<String, String> {
    let problem = || format!("`{text}` is not one host name; write one such as blog.example.org");
    host(text).and_then(|host| Some(host).filter(|host| host != "*").ok_or_else(problem))
}

/// The host name by which an application with this name is reached: the name, where it is one. Of others, labels beyond ASCII
/// are in the form in which browsers ask for them (RFC 3492), and `-` stands for what no host name has.
pub(crate) fn host_of_name(name: &str) -> String {
    if let Some(host) = host(name).ok().filter(|host| host != "*") {
        return host;
    }
    let letter = |letter: char| if letter.is_alphanumeric() || letter == '_' { letter } else { '-' };
    let labels = name.split('.').map(|label| {
        let label: String = label.to_lowercase().chars().map(letter).collect();
        let label = label.trim_matches('-');
        let label = if label.is_ascii() { label.to_owned() } else { format!("xn--{}", punycode(label)) };
        label[..label.len().min(LABEL_BYTES)].trim_end_matches('-').to_owned()
    });
    let labels: Vec<String> = labels.filter(|label| !label.is_empty()).collect();
    host(&labels.join(".")).unwrap_or_else(|_| "app".into())
}

/// A label in ASCII, by the algorithm of RFC 3492, section 6.3.
fn punycode(label: &str) -> String {
    const BASE: u64 = 36;
    const SKEW: u64 = 38;
    let letters: Vec<u64> = label.chars().map(|letter| u64::from(u32::from(letter))).collect();
    let mut coded: String = label.chars().filter(char::is_ascii).collect();
    let plain = coded.len() as u64;
    if plain > 0 {
        coded.push('-');
    }
    let (mut next, mut delta, mut bias, mut handled) = (128, 0, 72, plain);
    while handled < letters.len() as u64 {
        let least = letters.iter().copied().filter(|letter| *letter >= next).min().unwrap_or(next);
        delta += (least - next) * (handled + 1);
        next = least;
        for letter in &letters {
            if *letter < next {
                delta += 1;
            } else if *letter == next {
                let mut rest = delta;
                for place in (BASE..).step_by(BASE as usize) {
                    let limit = place.saturating_sub(bias).clamp(1, 26);
                    if rest < limit {
                        break;
                    }
                    coded.push(digit(limit + (rest - limit) % (BASE - limit)));
                    rest = (rest - limit) / (BASE - limit);
                }
                coded.push(digit(rest));
                // The next bias (section 6.1).
                let mut left = if handled == plain { delta / 700 } else { delta / 2 };
                left += left / (handled + 1);
                bias = 0;
                while left > 455 {
                    left /= BASE - 1;
                    bias += BASE;
                }
                bias += BASE * left / (left + SKEW);
                (delta, handled) = (0, handled + 1);
            }
        }
        (delta, next) = (delta + 1, next + 1);
    }
    coded
}

/// A digit of base 36: `a` to `z`, then `0` to `9`.
fn digit(value: u64) -> char {
    char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[value as usize % 36])
}

/// What stands for the `hosts` of all applications in `domain`.
pub(crate) const ALL_HOSTS: &str = "hosts";

/// A name that an authority issues certificates for, or what stands for those of the applications.
pub(crate) fn domain_or_hosts(text: &str) -> Result<String, String> {
    if text == ALL_HOSTS {
        return Ok(text.to_owned());
    }
    domain(text)
}

/// A name that an authority issues a certificate for. `*.` before it matches one extra label.
pub(crate) fn domain(text: &str) -> Result<String, String> {
    if let Some(parent) = text.strip_prefix("*.").filter(|parent| !parent.contains('*')) {
        return domain(parent).map(|parent| format!("*.{parent}"));
    }
    let name = host(text)?;
    let labels: Vec<&str> = name.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.contains('_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_number = |label: &&str| label.bytes().all(|byte| byte.is_ascii_digit());
    if labels.len() < 2 || !labels.iter().all(is_label) || labels.last().is_some_and(is_number) {
        return Err(format!("`{text}` is not the name of a site; write it as in blog.example.org"));
    }
    Ok(name)
}

/// An e-mail address.
pub(crate) fn email(text: &str) -> Result<String, String> {
    let is_plain =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@');
    match text.split_once('@') {
        Some((user, host)) if is_plain(user) && is_plain(host) => Ok(text.to_owned()),
        _ => Err(format!("`{text}` is not an e-mail address; write it as in admin@example.org")),
    }
}

/// The beginning of a URL's path: `/blog`. One slash alone is none.
pub(crate) fn prefix(text: &str) -> Result<String, String> {
    let prefix = text.strip_suffix('/').unwrap_or(text);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let is_path =
        prefix.starts_with('/') && !prefix.split('/').skip(1).any(|step| ["", ".", ".."].contains(&step));
    if text == "/" || (is_path && prefix.bytes().all(is_plain)) {
        return Ok(prefix.to_owned());
    }
    Err(format!("`{text}` is not the beginning of a path; write letters, digits and slashes, such as /blog"))
}

/// A variable of an environment: `NAME=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_well = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    if !text.contains('=') || !begins_well || !name.bytes().all(is_name) || value.contains('\0') {
        // Without what may be a secret.
        return Err("this is not a variable; write NAME=VALUE, such as LANG=C.UTF-8".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// The name of a variable, or the beginning of names with `*` after it.
pub(crate) fn variable_name(text: &str) -> Result<String, String> {
    let name = text.strip_suffix('*').unwrap_or(text);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if text.is_empty() || !name.bytes().all(is_name) {
        return Err(format!(
            "`{text}` is not the name of a variable; write one such as DATABASE_URL, or AWS_*"
        ));
    }
    Ok(text.to_owned())
}

/// A folder whose files an application may name in a header field, and the prefix of the URIs that stand for them:
/// `FOLDER` or `PREFIX=FOLDER`.
pub(crate) fn sent_folder(text: &str) -> Result<SentFolder, String> {
    let (prefix, folder) = match text.split_once('=') {
        Some((uri, folder)) => (Some(prefix(uri)?).filter(|prefix| !prefix.is_empty()), folder),
        None => (None, text),
    };
    let is_root = folder.starts_with('/') && folder.bytes().all(|byte| b"/.".contains(&byte));
    if folder.is_empty() || folder.contains('\0') || is_root {
        return Err(format!("`{text}` names no folder; write one such as storage, or /protected=/srv/files"));
    }
    if text.len() > SENT_FOLDER_BYTES {
        return Err(format!("it is longer than {SENT_FOLDER_BYTES} bytes"));
    }
    Ok(SentFolder { prefix, folder: folder.to_owned() })
}

/// The most paths with times, or of fibers.
pub(crate) const PATHS: usize = 64;
const PATH_BYTES: usize = 1024;

/// `/reports/*=5m`: the time for answers to requests for some paths.
pub(crate) fn path_timeout(text: &str) -> Result<PathTimeout, String> {
    let wrong = || format!("`{text}` is not a path with a time; write one such as /reports/*=5m");
    let (pattern, time) = text.rsplit_once('=').ok_or_else(wrong)?;
    let pattern = path_pattern(pattern).map_err(|_| wrong())?;
    let limit = match time {
        "none" => None,
        time => Some(duration(time, &(Duration::from_millis(1)..=Duration::from_secs(366 * 86_400)))?),
    };
    Ok(PathTimeout { pattern, limit })
}

/// `/chat/*`: a path, or the beginning of paths.
pub(crate) fn path_pattern(text: &str) -> Result<PathPattern, String> {
    let path = text.strip_suffix('*').unwrap_or(text);
    let is_path = |byte: u8| byte.is_ascii_graphic() && !b"*?#".contains(&byte);
    if !path.starts_with('/') || !path.bytes().all(is_path) || path.len() > PATH_BYTES {
        return Err(format!("`{text}` is not a path; write one such as /chat/*"));
    }
    Ok(PathPattern(text.to_owned()))
}

/// Reads the paths that may stand before a rule, and returns the rule as well: `/login 5/min`, `5/min`.
pub(crate) fn after_paths(text: &str) -> Result<(Option<PathPattern>, &str), String> {
    let text = text.trim();
    if !text.starts_with('/') {
        return Ok((None, text));
    }
    let (paths, rule) = text.split_once(|next: char| next.is_ascii_whitespace()).unwrap_or((text, ""));
    Ok((Some(path_pattern(paths)?), rule.trim_start()))
}

/// `Async::Scheduler`: the name of a class.
pub(crate) fn class_name(text: &str) -> Result<String, String> {
    let is_constant = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if text.len() > PATH_BYTES || !text.split("::").all(is_constant) {
        return Err(format!("`{text}` is not the name of a Ruby class; write one such as Async::Scheduler"));
    }
    Ok(text.to_owned())
}

/// `cookie`, or `header:` and the name of a header field.
pub(crate) fn affinity(text: &str) -> Result<Affinity, String> {
    if text == "cookie" {
        return Ok(Affinity::Cookie);
    }
    let name = text.strip_prefix("header:").filter(|name| header_key(name).is_ok());
    let name = name.ok_or_else(|| {
        format!("`{text}` is neither `cookie` nor a header field such as `header:Mcp-Session-Id`")
    })?;
    let name = name.to_ascii_lowercase();
    if OF_CONNECTIONS.contains(&name.as_str()) {
        return Err(format!(
            "the header field {name} names no session; write one such as `header:Mcp-Session-Id`"
        ));
    }
    Ok(Affinity::Header(name))
}

/// Header fields that many clients send with the same value, or that name no session.
const OF_CONNECTIONS: [&str; 7] =
    ["accept", "accept-encoding", "connection", "content-length", "content-type", "cookie", "host"];

/// The env key of a header field.
pub(crate) fn header_key(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if text.is_empty() || text.len() > 64 || !text.bytes().all(is_name) {
        return Err(format!("`{text}` is not a header field; write one such as X-Request-Timeout"));
    }
    Ok(format!("HTTP_{}", text.to_ascii_uppercase().replace('-', "_")))
}

/// Text without blanks.
pub(crate) fn word(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) || text.contains(is_hidden) {
        return Err(format!("`{text}` is not a name; write one without blanks and control characters"));
    }
    Ok(text.to_owned())
}

/// Text that can stand between quotes in a header field, and be read there.
pub(crate) fn quotable(text: &str) -> Result<String, String> {
    let is_plain = |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if (1..=100).contains(&text.len()) && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("it must have 1 to 100 characters of ASCII, without quotes and backslashes".to_owned())
}

/// The path of a URL, with or without a query.
pub(crate) fn url_path(text: &str) -> Result<String, String> {
    if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is not the path of a URL, such as /up"))
}

/// A path that can be written into a file of text.
///
/// # Errors
/// It is not UTF-8; what to do.
pub fn utf_8(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        format!(
            "the path `{}` is not UTF-8, so no configuration can name it: choose another name",
            visible_path(path)
        )
    })
}

/// A program as a full path: names without a slash are looked up as a shell would.
pub(crate) fn program(
    text: &str,
    path: PathBuf,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<PathBuf, String> {
    if text.contains('/') {
        return is_program(&path)
            .then_some(path)
            .ok_or_else(|| format!("`{text}` is not a program that this user may run"));
    }
    let search = env("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search).map(|folder| folder.join(text)).find(|path| is_program(path));
    found.ok_or_else(|| {
        format!("there is no `{text}` in PATH; install Ruby (apt-get install ruby), or name it with --ruby")
    })
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Whether this is no path where a log goes, but a word.
pub(crate) fn is_word_for_log(text: &str) -> bool {
    matches!(text, "-" | "none")
}

/// Where a log goes: a file, `-` for standard output, or nowhere.
pub(crate) fn log_file(text: &str, path: PathBuf) -> Option<PathBuf> {
    match text {
        "none" => None,
        "-" => Some("-".into()),
        _ => Some(path),
    }
}

/// A folder that can be written to.
pub(crate) fn writable_folder(path: PathBuf) -> Result<PathBuf, String> {
    if is_writable_folder(&path) {
        return Ok(path);
    }
    Err(format!("{} is not a folder that this user may write to", path.display()))
}

/// Whether files can be made in it.
pub(crate) fn is_writable_folder(path: &Path) -> bool {
    path.is_dir() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// An address to listen on, as written. Without a port, it gets the one of `port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    place: Place,
    protocol: BindProtocol,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Tcp(IpAddr, Option<u16>),
    Unix(PathBuf),
}

impl Address {
    /// What a server for names with certificates listens on: HTTPS, and HTTP for the authority and for clients that are sent on.
    pub(crate) fn of_domains() -> [Address; 2] {
        let at = |protocol, port| Address {
            place: Place::Tcp(Ipv4Addr::UNSPECIFIED.into(), Some(port)),
            protocol,
        };
        [at(BindProtocol::Https, 443), at(BindProtocol::Http, 80)]
    }

    /// With this port, if it names none.
    pub(crate) fn at_port(&self, port: u16) -> Bind {
        let address = match &self.place {
            Place::Tcp(ip, own) => BindAddress::Tcp(SocketAddr::new(*ip, own.unwrap_or(port))),
            Place::Unix(path) => BindAddress::Unix(path.clone()),
        };
        Bind { address, protocol: self.protocol }
    }
}

/// An address to listen on: `127.0.0.1`, `0.0.0.0:4000`, `[::1]:4000`, `localhost`, `unix:/path`, and for another protocol than
/// HTTP `fastcgi://127.0.0.1:9000`, `fastcgi+unix:/path`. A relative path begins at `folder`. `http://`, `tcp://` and
/// `unix://` may stand before it, as other servers write it. Only HTTP's port may come from the option `port`.
pub(crate) fn address(text: &str, folder: &Path) -> Result<Address, String> {
    let (protocol, rest) = split_protocol(text);
    if let Some(path) = rest.strip_prefix("unix:") {
        if protocol == BindProtocol::Https {
            return Err(format!(
                "`{text}`: HTTPS is served at TCP addresses alone; write unix:{path} for HTTP"
            ));
        }
        let path = path.strip_prefix("//").unwrap_or(path);
        return Ok(Address { place: Place::Unix(unix_path(path, folder)?), protocol });
    }
    let (ip, port) = tcp(rest).ok_or_else(|| {
        let guess = guess(rest.split(':').next().unwrap_or_default(), std::iter::once("localhost"));
        format!("`{text}` is not an address; write an IP address with or without a port, such as 127.0.0.1:4000 or [::1]:4000, unix:/path, fastcgi://127.0.0.1:9000 or fastcgi+unix:/path (host names are not looked up){guess}")
    })?;
    if protocol != BindProtocol::Http && port.is_none() {
        return Err(format!(
            "`{text}` names no port; write one, such as {}://{rest}:{}",
            protocol.scheme(),
            if protocol == BindProtocol::Https { 443 } else { 9000 }
        ));
    }
    Ok(Address { place: Place::Tcp(ip, port), protocol })
}

/// The protocol of an address, and what stands behind it. HTTP need not be named.
fn split_protocol(text: &str) -> (BindProtocol, &str) {
    let of = |protocol: BindProtocol| {
        let rest = text.strip_prefix(protocol.scheme())?;
        let rest =
            rest.strip_prefix("://").or(rest.strip_prefix('+').filter(|rest| rest.starts_with("unix:")))?;
        Some((protocol, rest))
    };
    if let Some(rest) = text.strip_prefix("https://") {
        return (BindProtocol::Https, rest);
    }
    let found = BindProtocol::ALL.into_iter().find_map(of);
    found.unwrap_or((BindProtocol::Http, text.strip_prefix("tcp://").unwrap_or(text)))
}

fn tcp(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some((address.ip(), Some(address.port())));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Some((ip, None));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, given)) => (host, Some(given.parse().ok()?)),
        None => (text, None),
    };
    (host == "localhost").then(|| (Ipv4Addr::LOCALHOST.into(), port))
}

/// `sockaddr_un` holds 108 bytes, the last of which ends the path (unix(7)).
const UNIX_PATH_BYTES: usize = 107;

fn unix_path(path: &str, folder: &Path) -> Result<PathBuf, String> {
    if path.is_empty() {
        return Err("`unix:` needs a path after it, such as unix:/run/app.sock".into());
    }
    let path = folder.join(path);
    if path.as_os_str().len() > UNIX_PATH_BYTES {
        return Err(format!(
            "the socket path {} is too long; Linux takes at most {UNIX_PATH_BYTES} bytes",
            path.display()
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_size(text: &str) -> Result<u64, String> {
        size(text, &(0..=1 << 50))
    }

    fn any_duration(text: &str) -> Result<Duration, String> {
        duration(text, &(Duration::ZERO..=Duration::from_secs(86400 * 365)))
    }

    #[test]
    fn folders_of_sent_files() {
        let folder = |prefix: Option<&str>, folder: &str| {
            Ok(SentFolder { prefix: prefix.map(str::to_owned), folder: folder.to_owned() })
        };
        assert_eq!(sent_folder("storage"), folder(None, "storage"));
        assert_eq!(sent_folder("/srv/files/"), folder(None, "/srv/files/"));
        assert_eq!(sent_folder("/protected/=/srv/files"), folder(Some("/protected"), "/srv/files"));
        assert_eq!(sent_folder("/=../shared"), folder(None, "../shared"));
        let long = "a".repeat(SENT_FOLDER_BYTES + 1);
        for text in
            ["", "/", "//", "/.", "/../", "/a=", "/a=/", "a=/srv", "/a/../b=/srv", "/a b=/srv", "a\0b", &long]
        {
            assert!(sent_folder(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn times_of_paths() {
        let of = |pattern: &str, limit| Ok(PathTimeout { pattern: PathPattern(pattern.into()), limit });
        assert_eq!(path_timeout("/reports/*=5m"), of("/reports/*", Some(Duration::from_secs(300))));
        assert_eq!(path_timeout("/a=b=none"), of("/a=b", None));
        for text in ["", "/a", "a=5m", "/a*b=5m", "/a?b=5m", "/a b=5m", "/a=", "/a=5 parsecs", "/a=0s", "=5m"]
        {
            assert!(path_timeout(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_most_exact_path_counts() {
        let times = ["/reports/*=5m", "/reports/daily*=10m", "/reports/daily=1s", "/stream=none"];
        let limits = crate::settings::AppLimits {
            request_timeout: Some(Duration::from_secs(60)),
            request_timeouts: times.map(|text| path_timeout(text).unwrap()).into(),
            ..Default::default()
        };
        let of = |path: &str| limits.time_for(|| path.into()).map(|limit| limit.as_secs());
        assert_eq!(["/", "/reports", "/reports/", "/reports/daily2"].map(of), [60, 60, 300, 600].map(Some));
        assert_eq!(["/reports/daily", "/stream", "/stream/"].map(of), [Some(1), None, Some(60)]);
    }

    #[test]
    fn header_fields_become_keys() {
        assert_eq!(header_key("X-Request-Timeout"), Ok("HTTP_X_REQUEST_TIMEOUT".into()));
        for text in ["", "a b", "A_B", "a:", "ü", &"x".repeat(65)] {
            assert!(header_key(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 65536),
            ("64 KiB", 65536),
            ("1m", 1 << 20),
            ("1.5M", 3 << 19),
            ("1GiB", 1 << 30),
            ("2t", 2 << 40),
        ] {
            assert_eq!(any_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "k", "-1", "64x", "1.2.3k", "none", "1e3", "NaN", "99999999t"] {
            assert!(any_size(text).is_err(), "{text}");
        }
        assert_eq!(size("3", &(4..=65536)), Err("3 is out of range; it must be 4 to 64k".into()));
    }

    #[test]
    fn durations() {
        for (text, millis) in [
            ("30", 30_000),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1.5s", 1500),
            ("200ms", 200),
            ("1h", 3_600_000),
            ("0", 0),
        ] {
            assert_eq!(any_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1s", "5 minutes", "forever", "1d2h", "9999999999d"] {
            assert!(any_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts_read_back_as_what_they_came_from() {
        for bytes in [0, 1, 1023, 1024, 1536, 65536, 1 << 20, 1 << 40] {
            assert_eq!(any_size(&size_text(bytes)), Ok(bytes));
        }
        for millis in [0, 1, 1500, 60_000, 90_000, 3_600_000, 86_400_000] {
            let time = Duration::from_millis(millis);
            assert_eq!(any_duration(&duration_text(time)), Ok(time));
        }
    }

    #[test]
    fn counts_and_switches() {
        assert_eq!(count("3", &(1..=256)), Ok(3u16));
        for text in ["0", "257", "70000", "three", "", "-1", "1.5"] {
            assert_eq!(
                count(text, &(1..=256u16)),
                Err(format!("`{text}` is not a whole number from 1 to 256"))
            );
        }
        assert_eq!(switch("on"), Ok(true));
        assert_eq!(switch("False"), Ok(false));
        assert!(switch("maybe").is_err());
    }

    #[test]
    fn several_counts() {
        let counts = refork_after;
        assert_eq!(counts("50, 100,1000"), Ok(ReforkAfter::Requests(vec![50, 100, 1000])));
        assert_eq!(counts("7"), Ok(ReforkAfter::Requests(vec![7])));
        assert_eq!(counts("off"), Ok(ReforkAfter::Never));
        assert_eq!(counts("auto"), Ok(ReforkAfter::Auto));
        for text in ["", "on", "5,", "5;6", "5,1000000001"] {
            assert!(counts(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_name_has_a_host_name() {
        for (name, host) in [
            ("Blog", "blog"),
            ("größe", "xn--gre-6ka8i"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("日本語", "xn--wgv71a119e"),
            ("ü", "xn--tda"),
            ("a b", "a-b"),
            ("gr\\xf6\\xdfe", "gr-xf6-xdfe"),
            ("*", "app"),
            ("?!", "app"),
        ] {
            assert_eq!(host_of_name(name), host, "{name}");
        }
        for long in ["x".repeat(255), "ü".repeat(127), ".ü".repeat(80)] {
            assert!(host(&host_of_name(&long)).is_ok(), "{long}");
        }
    }

    #[test]
    fn hosts_prefixes_and_variables() {
        for (text, name) in
            [("Blog.Example.org", "blog.example.org"), ("*", "*"), ("[::1]", "[::1]"), ("a_b", "a_b")]
        {
            assert_eq!(host(text), Ok(name.into()));
        }
        assert_eq!(host("A.example.").as_deref(), Ok("a.example"));
        assert_eq!(host("[0::0001]").as_deref(), Ok("[::1]"));
        for text in ["", ".", "a:80", "a/b", "*.a", "a b", "[a]", "[::1", &"a".repeat(254)] {
            assert!(host(text).is_err(), "{text}");
        }
        for (text, path) in [("/", ""), ("/blog", "/blog"), ("/blog/", "/blog"), ("/a/b-c", "/a/b-c")] {
            assert_eq!(prefix(text), Ok(path.into()));
        }
        for text in ["", "blog", "//", "/a//b", "/a/..", "/a?b", "/a%20b", "/a b"] {
            assert!(prefix(text).is_err(), "{text}");
        }
        assert_eq!(variable("A_1=b=c, d"), Ok(("A_1".into(), "b=c, d".into())));
        assert_eq!(variable("A="), Ok(("A".into(), String::new())));
        for text in ["", "A", "=b", "1A=b", "A B=c", "A=\0"] {
            assert!(variable(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses() {
        let bind = |text: &str| address(text, Path::new("/srv/app")).map(|address| address.at_port(3000));
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:3000"),
            ("0.0.0.0", "0.0.0.0:3000"),
            ("127.0.0.1:4000", "127.0.0.1:4000"),
            ("tcp://127.0.0.1:4000", "127.0.0.1:4000"),
            ("[::1]:4000", "[::1]:4000"),
            ("[::1]", "[::1]:3000"),
            ("::", "[::]:3000"),
            ("localhost", "127.0.0.1:3000"),
            ("localhost:4000", "127.0.0.1:4000"),
        ] {
            assert_eq!(bind(text), Ok(Bind::tcp(address.parse().unwrap())), "{text}");
        }
        for (text, path) in [
            ("unix:/run/a.sock", "/run/a.sock"),
            ("unix:///run/a.sock", "/run/a.sock"),
            ("unix:tmp/a", "/srv/app/tmp/a"),
        ] {
            assert_eq!(bind(text), Ok(Bind::unix(path)), "{text}");
        }
        for text in [
            "",
            "example.org",
            "127.0.0.1:99999",
            "127.0.0.1:",
            "localhost:http",
            "4000",
            "unix:",
            "/run/a.sock",
        ] {
            assert!(bind(text).is_err(), "{text}");
        }
        assert!(bind(&format!("unix:/{}", "a".repeat(107))).is_err());
    }

    #[test]
    fn addresses_of_other_protocols() {
        let bind = |text: &str| address(text, Path::new("/srv/app")).map(|address| address.at_port(3000));
        let tcp = |text: &str| BindAddress::Tcp(text.parse().unwrap());
        let unix = |path: &str| BindAddress::Unix(path.into());
        let (http, fastcgi, lsapi) = (BindProtocol::Http, BindProtocol::FastCgi, BindProtocol::Lsapi);
        for (text, address, protocol, printed, url) in [
            ("http://127.0.0.1", tcp("127.0.0.1:3000"), http, "127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http+unix:a", unix("/srv/app/a"), http, "unix:/srv/app/a", "unix:/srv/app/a"),
            (
                "fastcgi://[::1]:9000",
                tcp("[::1]:9000"),
                fastcgi,
                "fastcgi://[::1]:9000",
                "fastcgi://[::1]:9000",
            ),
            ("fastcgi+unix:/run/a", unix("/run/a"), fastcgi, "fastcgi+unix:/run/a", "fastcgi+unix:/run/a"),
            (
                "lsapi://localhost:9001",
                tcp("127.0.0.1:9001"),
                lsapi,
                "lsapi://127.0.0.1:9001",
                "lsapi://127.0.0.1:9001",
            ),
            ("lsapi+unix:///run/a", unix("/run/a"), lsapi, "lsapi+unix:/run/a", "lsapi+unix:/run/a"),
        ] {
            let bound = bind(text).unwrap();
            assert_eq!(bound, Bind { address, protocol }, "{text}");
            assert_eq!((bound.to_string(), bound.url()), (printed.into(), url.into()));
            assert_eq!(bind(printed), Ok(bound), "what is printed is read back as the same");
        }
        for text in [
            "fastcgi:",
            "fastcgi://",
            "fastcgi://127.0.0.1",
            "fastcgi+tcp://127.0.0.1:9000",
            "fcgi://127.0.0.1:9",
            "lsapi+unix:",
            "https://127.0.0.1",
            "http://http://127.0.0.1",
            "fastcgi+fastcgi+unix:/a",
        ] {
            assert!(bind(text).is_err(), "{text}");
        }
    }
}
