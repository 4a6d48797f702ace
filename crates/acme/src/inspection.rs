//! The state folder, seen from outside of the server: for `highball doctor`. Nothing is changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use highball_config::AcmeSettings;

use crate::backoff::Backoff;
use crate::folder::{self, attempts_file, certificate_file};
use crate::validity::Validity;

/// What the state folder has for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// When its certificate expires; `None`: there is none.
    pub expires: Option<SystemTime>,
    /// Whether the certificate is to be renewed already.
    pub is_due: bool,
    /// Why the last attempt to obtain one has failed, and what to do.
    pub problem: Option<(String, String)>,
    /// When the next one is due after that.
    pub next: Option<SystemTime>,
    /// The file that remembers the failures. Without it, a server that is started does not wait.
    pub attempts_file: PathBuf,
}

/// Looks what the state folder has for this name.
///
/// # Errors
/// It cannot be used; why.
pub fn inspect(settings: &AcmeSettings, host: &str) -> io::Result<Inspected> {
    let now = SystemTime::now();
    folder::examine(closest(&settings.state_dir), settings.state_dir.exists())?;
    let pem = folder::read(&certificate_file(settings, host))?;
    let validity = pem.as_deref().and_then(|pem| Validity::of(pem, host));
    let attempts_file = attempts_file(settings, host);
    let backoff = folder::read(&attempts_file)?.and_then(|bytes| Backoff::read(&bytes));
    Ok(Inspected {
        expires: validity.map(|validity| validity.until),
        is_due: validity.is_some_and(|validity| validity.renewal_at(1.0) < now),
        next: backoff.as_ref().map(|backoff| backoff.next(now)),
        problem: backoff.and_then(|backoff| backoff.problem.zip(backoff.remedy)),
        attempts_file,
    })
}

/// This folder, or the one above it that is there.
fn closest(path: &Path) -> &Path {
    path.ancestors().find(|path| fs::symlink_metadata(path).is_ok()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_config::NamesOnDemand;
    use std::os::unix::fs::PermissionsExt;

    fn settings(state_dir: &Path) -> AcmeSettings {
        AcmeSettings {
            domains: vec!["a.test".into()],
            on_demand: NamesOnDemand::default(),
            directory: "https://one.test".into(),
            contacts: Vec::new(),
            authorities: None,
            external_account: None,
            dns_hook: None,
            state_dir: state_dir.into(),
            has_http: true,
        }
    }

    #[test]
    fn a_folder_that_is_not_there_yet_can_be_made() {
        let place = tempfile::tempdir().expect("a folder");
        let found = inspect(&settings(&place.path().join("deep/state")), "a.test").expect("usable");
        assert_eq!((found.expires, found.problem), (None, None));
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_an_error() {
        let place = tempfile::tempdir().expect("a folder");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("opened");
        let words = inspect(&settings(place.path()), "a.test").expect_err("refused").to_string();
        assert!(words.contains("chmod 700"), "{words}");
        let file = place.path().join("file");
        fs::write(&file, "").expect("written");
        let words = inspect(&settings(&file.join("state")), "a.test").expect_err("refused").to_string();
        assert!(words.contains("is not a folder"), "{words}");
    }

    #[test]
    fn the_last_failure_is_found() {
        let place = tempfile::tempdir().expect("a folder");
        let settings = settings(&place.path().join("state"));
        let file = attempts_file(&settings, "a.test");
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::set_permissions(&settings.state_dir, fs::Permissions::from_mode(0o700)).expect("closed");
        let text = r#"{"failures":1,"unfinished":0,"next_at":0,"problem":"what","remedy":"do"}"#;
        fs::write(&file, text).expect("written");
        let found = inspect(&settings, "a.test").expect("usable");
        assert_eq!(found.problem, Some(("what".into(), "do".into())));
        fs::write(&file, "damaged").expect("written");
        assert_eq!(inspect(&settings, "a.test").expect("usable").problem, None);
    }
}
