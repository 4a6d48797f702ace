//! Restrictions: options that narrow who reaches something, what they may take, or whom the server believes.
//!
//! One rule holds for every source of options. A restriction that cannot be kept is never replaced by its default, which is
//! wider: the server does not start where the restriction is the server's, nor an application where it is that application's.
//! In a server that runs, the configuration stays as it was. Statements of Puma that narrow nothing are dropped with a warning.
//!
//! In reading order: the table, which `docs/restrictions.md` shows; blank and misspelt variables.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use strsim::damerau_levenshtein;

use crate::error::{ConfigError, Origin};
use crate::options::{options, Opt};

/// Options that narrow one thing.
struct Restriction {
    names: &'static [&'static str],
    /// What they narrow.
    what: &'static str,
    /// What happens where they cannot be kept.
    otherwise: &'static str,
}

/// All of them, in the order of the manual.
static RESTRICTIONS: &[Restriction] = &[
    Restriction {
        names: &["bind"],
        what: "who can connect",
        otherwise: "The server doesn't start: an address is unknown or taken, or its folder is missing.",
    },
    Restriction {
        names: &["tls_certificate", "tls_key"],
        what: "who can read and change what is sent",
        otherwise: "The server doesn't start: a file is missing, unreadable or doesn't match. If a file changes to such a state, \
                    the previous certificate stays. An application's own certificate is left out: its hosts get the \
                    server's.",
    },
    Restriction {
        names: &["tls_client_ca", "tls_client_auth"],
        what: "which clients reach an application",
        otherwise: "The server doesn't start: the file is missing, unreadable or has no certificate, or no address is for HTTPS. \
                    With several applications, only this application stays unreachable because of its file. If a file is in \
                    such a state after HUP, the previous authorities stay.",
    },
    Restriction {
        names: &["https", "domain", "domain_on_demand", "domain_ask", "redirect_https"],
        what: "who can read and change what is sent",
        otherwise: "The server doesn't start: there is no address for HTTPS, or no folder for the certificates.",
    },
    Restriction {
        names: &["hsts"],
        what: "who can read and change what browsers send",
        otherwise: "The server doesn't start: no address is for HTTPS.",
    },
    Restriction {
        names: &["response_headers"],
        what: "what browsers allow a page and other sites to do",
        otherwise: "The server or the application doesn't start: a change has no known form, or is to a field that Highball alone decides.",
    },
    Restriction {
        names: &["proxy_protocol", "proxy_protocol_from"],
        what: "who can connect, and who may report the client's address",
        otherwise: "The server doesn't start: a network is unknown, or `proxy_protocol_from` is set without `proxy_protocol`.",
    },
    Restriction {
        names: &["trusted_proxies"],
        what: "which proxies the server trusts",
        otherwise: "The server doesn't start: a network is unknown.",
    },
    Restriction {
        names: &["server_user"],
        what: "what the server may do",
        otherwise: "The server doesn't start: there is no such user.",
    },
    Restriction {
        names: &["admin", "admin_host", "agent_check"],
        what: "who sees what the server does",
        otherwise: "The server doesn't start: an address is unknown or taken, or a name isn't a host name.",
    },
    Restriction {
        names: &["show_diagnosis"],
        what: "who sees details of errors",
        otherwise: "The application doesn't start: the word is unknown.",
    },
    Restriction {
        names: &["hosts", "prefix"],
        what: "where an application is reached",
        otherwise: "The application doesn't start: a name or path is malformed. The server doesn't start: two applications have the same.",
    },
    Restriction {
        names: &["user"],
        what: "what an application may do",
        otherwise: "The application doesn't start: there is no such user.",
    },
    Restriction {
        names: &["no_new_privs", "pass_variables"],
        what: "what an application may do",
        otherwise: "The application doesn't start: the value is unknown.",
    },
    Restriction {
        names: &["basic_auth", "basic_auth_realm"],
        what: "who may use an application",
        otherwise: "The application doesn't start: `basic_auth_realm` is set without `basic_auth`. While the file of users is missing, \
                    unreadable, malformed, empty or not a file, requests with a password get 500, and all others 401.",
    },
    Restriction {
        names: &["sendfile", "follow_symlinks", "static_files"],
        what: "which files are sent",
        otherwise: "The application doesn't start: the value is unknown. No file is sent from a folder that is missing.",
    },
    Restriction {
        names: &["max_body", "max_head", "max_target", "max_fields", "max_queue", "max_connections", "request_timeout", "rate_limit", "rate_limit_exempt"],
        what: "how much clients may use",
        otherwise: "The server or the application doesn't start: the value is unknown or out of range. This applies to all other sizes, \
                    numbers and times, too.",
    },
    Restriction {
        names: &["memory_max", "cpu_max"],
        what: "how much an application may use",
        otherwise: "The server starts, because many machines have no cgroups for it. The log and `highball status` say \
                    what isn't enforced and why. Highball replaces workers at 85% of `memory_max`, and derives their number from \
                    `cpu_max`.",
    },
];

/// Whether this option narrows something.
pub(crate) fn is_restriction(name: &str) -> bool {
    RESTRICTIONS.iter().any(|restriction| restriction.names.contains(&name))
}

/// The table as `docs/restrictions.md` has it.
pub fn restrictions() -> String {
    let mut text = String::from("| option | restricts | if it can't be enforced |\n| --- | --- | --- |\n");
    for Restriction { names, what, otherwise } in RESTRICTIONS {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "| {} | {what} | {otherwise} |", names.join(", "));
    }
    text
}

/// What is wrong with a variable that is set, and blank.
pub(crate) fn of_blank(option: &Opt, variable: &str) -> Result<(), ConfigError> {
    if !is_restriction(option.name) {
        return Ok(());
    }
    let origin = Origin::Environment { variable: variable.to_owned() };
    let problem = format!(
        "it is set and blank, which would leave `{}` open; give it a value (such as `{}`), or unset it",
        option.name, option.example
    );
    Err(ConfigError::Value { origin, problem })
}

/// Makes sure that no variable of this environment is lost: a variable of an option that is not UTF-8, or a variable whose
/// name resembles a restriction's.
///
/// # Errors
/// There is such a variable.
pub fn check_variables<'a>(
    variables: impl Iterator<Item = (&'a OsStr, &'a OsStr)>,
) -> Result<(), ConfigError> {
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        let wrong = |problem| {
            let origin = Origin::Environment { variable: name.to_owned() };
            Err(ConfigError::Value { origin, problem })
        };
        if options().any(|option| option.variables().any(|variable| variable == name)) {
            if value.to_str().is_none() {
                let shown = value.as_bytes().escape_ascii();
                return wrong(format!("`{shown}` is not UTF-8; write the value in UTF-8"));
            }
        } else if let Some(meant) = misspelt(name) {
            return wrong(format!(
                "there is no such option; did you mean {meant}? If not, rename the variable"
            ));
        }
    }
    Ok(())
}

/// Variables that are no options, and near the name of one.
const OTHER_VARIABLES: [&str; 2] = ["HIGHBALL_BIN", "HIGHBALL_TEST_SERVER"];

/// The variable of a restriction that this one is likely to be meant for.
fn misspelt(variable: &str) -> Option<String> {
    let name = variable.strip_prefix("HIGHBALL_")?;
    if OTHER_VARIABLES.contains(&variable) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let options = options().filter(|option| is_restriction(option.name));
    let near = options.filter(|option| {
        let most = if option.name.len() > 5 { 2 } else { 1 };
        damerau_levenshtein(&name, option.name) <= most
    });
    near.min_by_key(|option| damerau_levenshtein(&name, option.name)).map(Opt::own_variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::named;

    #[test]
    fn restrictions_are_options() {
        for name in RESTRICTIONS.iter().flat_map(|restriction| restriction.names) {
            assert!(named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn variables_that_are_nearly_those_of_restrictions_are_known() {
        for (name, meant) in [
            ("HIGHBALL_BASIC_ATUH", Some("HIGHBALL_BASIC_AUTH")),
            ("HIGHBALL_HOST", Some("HIGHBALL_HOSTS")),
            ("HIGHBALL_BND", Some("HIGHBALL_BIND")),
            ("HIGHBALL_TRUSTED_PROXY", None),
            ("HIGHBALL_TRUSTED_PROXIE", Some("HIGHBALL_TRUSTED_PROXIES")),
            ("HIGHBALL_BIN", None),
            ("HIGHBALL_LIB", None),
            ("HIGHBALL_CONTROL", None),
            ("BASIC_ATUH", None),
        ] {
            assert_eq!(misspelt(name).as_deref(), meant, "{name}");
        }
    }

    #[test]
    fn variables_of_options_are_utf8() {
        let check = |name: &str, value: &[u8]| {
            check_variables([(OsStr::new(name), OsStr::from_bytes(value))].into_iter())
                .map_err(|error| error.to_string())
        };
        assert!(check("PORT", b"\xff").unwrap_err().contains("`\\xff` is not UTF-8"));
        assert!(check("HIGHBALL_BASIC_AUTH", b"caf\xe9").is_err());
        assert_eq!(check("OTHER", b"\xff"), Ok(()));
    }
}
