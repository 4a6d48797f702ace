//! What diagnoses show of the environment and of requests: names that are known to be harmless come with their values, of
//! all others the name alone is shown.

use crate::names::{is_suspicious, is_telling};
use crate::tokens::is_token;
use crate::urls::is_secret_segment;
use crate::{Secrets, MASK, WITHHELD};

/// Longer names of variables, fields and parameters are not shown.
const NAME_BYTES: usize = 100;
/// Variables whose values are shown. Passwords in URLs are masked.
const VARIABLES: &[&str] = &[
    "APP_ENV",
    "BINDING",
    "BUNDLER_SETUP",
    "BUNDLER_VERSION",
    "BUNDLE_APP_CONFIG",
    "BUNDLE_BIN",
    "BUNDLE_BIN_PATH",
    "BUNDLE_DEPLOYMENT",
    "BUNDLE_FROZEN",
    "BUNDLE_GEMFILE",
    "BUNDLE_JOBS",
    "BUNDLE_PATH",
    "BUNDLE_RETRY",
    "BUNDLE_WITH",
    "BUNDLE_WITHOUT",
    "CI",
    "COLORTERM",
    "COLUMNS",
    "DATABASE_URL",
    "DEBUG",
    "DISABLE_BOOTSNAP",
    "DISABLE_SPRING",
    "EDITOR",
    "FORCE_COLOR",
    "FREEDESKTOP_MIME_TYPES_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GEM_ROOT",
    "HANAMI_ENV",
    "HOME",
    "HOST",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LINES",
    "LOGNAME",
    "LOG_LEVEL",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "NODE_ENV",
    "NODE_PATH",
    "NO_COLOR",
    "OLDPWD",
    "PAGER",
    "PATH",
    "PORT",
    "PWD",
    "RACK_ENV",
    "RAILS_ENV",
    "RAILS_GROUPS",
    "RAILS_LOG_LEVEL",
    "RAILS_LOG_TO_STDOUT",
    "RAILS_MAX_THREADS",
    "RAILS_MIN_THREADS",
    "RAILS_RELATIVE_URL_ROOT",
    "RAILS_SERVE_STATIC_FILES",
    "REDIS_URL",
    "RUBYGEMS_GEMDEPS",
    "RUBYLIB",
    "RUBYOPT",
    "RUBYPATH",
    "RUBYSHELL",
    "RUBY_ENGINE",
    "RUBY_ROOT",
    "RUBY_VERSION",
    "RUBY_YJIT_ENABLE",
    "SHELL",
    "SHLVL",
    "TERM",
    "TERM_PROGRAM",
    "TMPDIR",
    "TZ",
    "USER",
    "WEB_CONCURRENCY",
];
/// Beginnings of others, as far as their names are not suspicious.
const VARIABLE_PREFIXES: &[&str] = &["ASDF_", "HIGHBALL_", "LC_", "RBENV_", "RUBY_GC_", "RUBY_MN_", "XDG_"];
/// Header fields whose values are shown.
const FIELDS: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "dnt",
    "expect",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "origin",
    "pragma",
    "priority",
    "range",
    "referer",
    "save-data",
    "te",
    "trailer",
    "transfer-encoding",
    "turbo-frame",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-ssl",
    "x-real-ip",
    "x-request-id",
    "x-request-start",
    "x-requested-with",
    "x-turbo-request-id",
];
const FIELD_PREFIXES: &[&str] = &["hx-", "sec-ch-", "sec-fetch-", "sec-gpc"];
/// Last words of the names of parameters whose values are shown: `user_id`, `post[title]`.
const PARAMETERS: &[&str] = &[
    "action",
    "asc",
    "button",
    "by",
    "category",
    "color",
    "column",
    "commit",
    "controller",
    "count",
    "country",
    "currency",
    "date",
    "day",
    "desc",
    "dir",
    "direction",
    "filter",
    "format",
    "height",
    "id",
    "ids",
    "kind",
    "lang",
    "language",
    "layout",
    "limit",
    "locale",
    "method",
    "mode",
    "month",
    "offset",
    "order",
    "page",
    "per",
    "position",
    "priority",
    "q",
    "quantity",
    "query",
    "rating",
    "search",
    "size",
    "slug",
    "sort",
    "status",
    "step",
    "tab",
    "tag",
    "tags",
    "theme",
    "time",
    "title",
    "type",
    "utf8",
    "variant",
    "version",
    "view",
    "width",
    "year",
    "zone",
];

impl Secrets {
    /// The value of a variable as it may be shown.
    pub fn variable(&self, name: &str, value: &str) -> String {
        if is_shown_variable(name) {
            return if name.ends_with("_URL") { self.url(value) } else { self.masked(value) };
        }
        hidden(name, value)
    }

    /// The value of a header field as it may be shown.
    pub fn field(&self, name: &str, value: &str) -> String {
        let lower = name.to_ascii_lowercase();
        if lower == "referer" {
            return self.target(value);
        }
        let is_shown = FIELDS.contains(&lower.as_str())
            || (!is_suspicious(name) && FIELD_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)));
        if is_shown {
            self.masked(value)
        } else {
            hidden(name, value)
        }
    }

    /// The value of a parameter of a query or form, decoded, as it may be shown.
    pub fn parameter(&self, name: &str, value: &str) -> String {
        let words = crate::names::words(name);
        let is_shown = !is_suspicious(name)
            && words.last().is_some_and(|word| PARAMETERS.contains(&word.as_str()))
            && !value.split_whitespace().any(is_token);
        let is_harmless = !is_suspicious(name)
            && (["true", "false", "on", "off"].contains(&value)
                || (value.len() <= 3 && value.bytes().all(|byte| byte.is_ascii_digit())));
        if is_shown || is_harmless {
            self.masked(value)
        } else {
            hidden(name, value)
        }
    }

    /// A name that the application or a client has chosen, as it may be shown: `user[address]`; it may be a token
    /// itself.
    pub fn name(&self, name: &str) -> String {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]:() ".contains(&byte);
        let is_shown = name.len() <= NAME_BYTES && name.bytes().all(is_name) && !is_token(name);
        if is_shown {
            self.masked(name)
        } else {
            MASK.into()
        }
    }

    /// The path of a request, or a URL, as it may be shown: segments that look like tokens are masked, and of the query
    /// there are the names, and the values that are harmless.
    pub fn target(&self, target: &str) -> String {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let path = path.split('#').next().unwrap_or_default();
        let mut shown = self.masked(&path_without_tokens(path));
        if let Some(query) = query {
            let pairs = query.split('&').map(|pair| self.pair(pair));
            shown = format!("{shown}?{}", pairs.collect::<Vec<String>>().join("&"));
        }
        shown
    }

    /// `name=value` of a query as it may be shown.
    fn pair(&self, pair: &str) -> String {
        let (name, value) = pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value)));
        let decoded_name = decoded(name);
        let is_plain = self.name(&decoded_name) == decoded_name;
        let name = if is_plain { name } else { MASK };
        let Some(value) = value else { return name.into() };
        let decoded_value = decoded(value);
        let shown = self.parameter(&decoded_name, &decoded_value);
        format!("{name}={}", if shown == decoded_value { value } else { &shown })
    }

    /// A URL as it may be shown: scheme, user, host and path. Of what is no plain URL nothing is shown.
    fn url(&self, value: &str) -> String {
        let shown = self.target(&self.masked(value));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/@._-+,?=&[]%".contains(&byte);
        let is_url = value.is_empty() || (shown.contains("://") && shown.bytes().all(is_plain));
        if is_url {
            shown
        } else {
            WITHHELD.into()
        }
    }
}

/// What replaces a value that is not shown.
fn hidden(name: &str, value: &str) -> String {
    match value {
        "" => String::new(),
        _ if is_telling(name) => MASK.into(),
        _ => WITHHELD.into(),
    }
}

/// Whether the value of a variable is shown.
pub(crate) fn is_shown_variable(name: &str) -> bool {
    VARIABLES.contains(&name)
        || (!is_suspicious(name) && VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

/// A path whose segments that look like tokens are masked.
pub fn path_without_tokens(path: &str) -> String {
    let mut before = String::new();
    let mut shown = Vec::new();
    for segment in path.split('/') {
        let plain = decoded(segment);
        let is_secret = is_secret_segment(&before.to_ascii_lowercase(), &plain);
        shown.push(if is_secret && plain != MASK { MASK } else { segment });
        before = plain;
    }
    shown.join("/")
}

/// The segments of a path that are masked.
pub(crate) fn tokens_of_path(path: &str) -> Vec<String> {
    let segments: Vec<String> = path.split('/').map(decoded).collect();
    let pairs = segments.windows(2);
    let tokens = pairs.filter(|pair| is_secret_segment(&pair[0].to_ascii_lowercase(), &pair[1]));
    tokens.map(|pair| pair[1].clone()).collect()
}

/// `application/x-www-form-urlencoded` as it was meant (URL Standard, section 5.1).
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let hex = (byte == b'%').then(|| behind.get(..2)).flatten();
        let code = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(match (byte, code) {
            (b'+', _) => b' ',
            (_, Some(code)) => code,
            _ => byte,
        });
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_decoded_stays_as_it_is() {
        assert_eq!(decoded("100%&a%2"), "100%&a%2");
        assert_eq!(decoded("a%2Fb+c%C3%A9"), "a/b cé");
    }

    #[test]
    fn of_variables_that_are_not_known_to_be_harmless_only_the_names_are_shown() {
        let none = Secrets::default();
        for name in [
            "BUNDLE_GEMS__CONTRIBSYS__COM",
            "BUNDLE_RUBYGEMS__PKG__GITHUB__COM",
            "GITHUB_PAT",
            "PAT",
            "HMAC",
            "ENCRYPTION",
            "SIGNING",
            "DEVISE_PEPPER",
            "ROLLBAR_ACCESS",
            "OAUTH",
            "DBPASS",
            "SSHPRIV",
            "CERT_PEM",
            "TWILIO_SID",
            "LICENSE",
            "PIN",
            "SLACK_WEBHOOK",
            "LDAP_BIND",
            "WHATEVER",
            "HIGHBALL_TOKEN",
            "SECRET_KEY_BASE",
            "BUNDLE_MIRROR__ALL",
            "RUBY_SECRET",
        ] {
            let shown = none.variable(name, "x1Y2z3");
            assert!(shown == MASK || shown == WITHHELD, "{name}: {shown}");
            assert_eq!(none.name(name), name);
            assert_eq!(none.variable(name, ""), "");
        }
        for name in
            ["PATH", "PWD", "RAILS_ENV", "RUBYOPT", "LC_ALL", "HIGHBALL_WORKERS", "BUNDLE_GEMFILE", "PORT"]
        {
            assert_eq!(none.variable(name, "/usr/bin:plain"), "/usr/bin:plain", "{name}");
        }
        assert_eq!(none.variable("RUBYOPT", "-W --token=hunter2"), "-W --token=[masked]");
    }

    #[test]
    fn urls_in_variables_keep_what_is_no_secret() {
        let none = Secrets::default();
        for (value, shown) in [
            ("postgres://me:hunter2@db:5432/blog", "postgres://me:[masked]@db:5432/blog"),
            ("postgres://me:p/w@r\"d@db/blog?pool=5", "postgres://me:[masked]@db/blog?pool=5"),
            (
                "postgres://db/blog?password=x&sslmode=require",
                "postgres://db/blog?password=[masked]&sslmode=[withheld]",
            ),
            ("redis://t0ken@cache:6379/1", "redis://[masked]@cache:6379/1"),
            ("sqlite3:db/development.sqlite3", WITHHELD),
            ("password here", WITHHELD),
        ] {
            assert_eq!(none.variable("DATABASE_URL", value), shown);
        }
    }

    #[test]
    fn of_requests_harmless_values_are_shown() {
        let none = Secrets::default();
        for (target, shown) in [
            ("/posts/42/edit?page=2&q=tea", "/posts/42/edit?page=2&q=tea"),
            ("/posts/123e4567-e89b-12d3-a456-426614174000", "/posts/123e4567-e89b-12d3-a456-426614174000"),
            ("/posts/my-first-post-2024", "/posts/my-first-post-2024"),
            ("/assets/application-da39a3ee5e6b4b0d3255bfef95601890.css", "/assets/application-da39a3ee5e6b4b0d3255bfef95601890.css"),
            ("/reset/Zk3fA9/edit", "/reset/[masked]/edit"),
            ("/users/password/edit", "/users/password/edit"),
            ("/x/da39a3ee5e6b4b0d3255bfef95601890afd80709", "/x/[masked]"),
            ("/s/eyJhbGciOiJIUzI1NiJ9.e30.abcdef", "/s/[masked]"),
            ("/?reset=a&code=b&state=c&sig=d&pin=1234&card=4242", "/?reset=[withheld]&code=[withheld]&state=[withheld]&sig=[masked]&pin=[withheld]&card=[withheld]"),
            ("/?x=opensesame&user%5Btoken%5D=b&n=7", "/?x=[withheld]&user%5Btoken%5D=[masked]&n=7"),
            ("/?x7GkZqpLmN2vRs9tBa", "/?[masked]"),
            ("/?id=x7GkZqpLmN2vRs9tBa&sort=", "/?id=[withheld]&sort="),
        ] {
            assert_eq!(none.target(target), shown);
        }
    }

    #[test]
    fn of_header_fields_harmless_values_are_shown() {
        let none = Secrets::default();
        for name in [
            "Host",
            "User-Agent",
            "Accept",
            "Content-Type",
            "Content-Length",
            "X-Forwarded-Proto",
            "Sec-Fetch-Mode",
        ] {
            assert_eq!(none.field(name, "plain/text 1.0"), "plain/text 1.0", "{name}");
        }
        for name in [
            "Cookie",
            "Authorization",
            "X-Csrf-Token",
            "X-CSRF",
            "X-Amz-Security-Token",
            "X-Amz-Security",
            "X-Whatever",
        ] {
            let shown = none.field(name, "plain");
            assert!(shown == MASK || shown == WITHHELD, "{name}: {shown}");
        }
        assert_eq!(
            none.field("Referer", "http://localhost/a?x=y&reset=b"),
            "http://localhost/a?x=[withheld]&reset=[withheld]"
        );
    }
}
