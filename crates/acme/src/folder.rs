//! What is kept: the accounts, and each certificate with its key, one file each.
//!
//! A file is written beside its place, and put there when all of it is on the disk. Whatever ends this
//! process, a reader finds the old file or the new one. One process at a time writes: it has locked the folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use highball_config::AcmeSettings;
use rustix::fs::{access, flock, Access, FlockOperation, OFlags};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::owner::Owner;

const ACCOUNTS: &str = "accounts";
const CERTIFICATES: &str = "certificates";
const ATTEMPTS: &str = "attempts";
const LOCK: &str = "lock";
/// The steps of writing a file at which a test may end this process.
type Steps = [&'static str; 3];
const OF_ACCOUNT: Steps = ["acme.account_written", "acme.account_synced", "acme.account_renamed"];
const OF_CERTIFICATE: Steps =
    ["acme.certificate_written", "acme.certificate_synced", "acme.certificate_renamed"];
const OF_ATTEMPT: Steps = ["acme.attempt_written", "acme.attempt_synced", "acme.attempt_renamed"];
/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The file with the certificate of this host and its key: one for each authority, because a staging
/// certificate is worthless.
pub fn certificate_file(settings: &AcmeSettings, host: &str) -> PathBuf {
    file_in(&settings.state_dir, &settings.directory, host)
}

fn file_in(state: &Path, directory: &str, host: &str) -> PathBuf {
    state.join(CERTIFICATES).join(name_of(directory)).join(format!("{}.pem", file_name(host)))
}

/// The names with certificates of this authority that are served: from the configuration, and obtained on demand.
pub fn kept_hosts(settings: &AcmeSettings) -> Vec<String> {
    settings.domains.iter().cloned().chain(on_demand_in(settings)).collect()
}

/// The names with certificates of this authority that the configuration allows, and does not have.
pub(crate) fn on_demand_in(settings: &AcmeSettings) -> Vec<String> {
    let AcmeSettings { domains, on_demand, .. } = settings;
    if !on_demand.are_possible() {
        return Vec::new();
    }
    let folder = settings.state_dir.join(CERTIFICATES).join(name_of(&settings.directory));
    // Without the folder, none were obtained.
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let host = |file: fs::DirEntry| Some(file.file_name().to_str()?.strip_suffix(".pem")?.to_owned());
    let is_on_demand = |host: &String| {
        !host.starts_with('_')
            && !domains.contains(host)
            && (on_demand.ask.is_some() || on_demand.lists(host))
    };
    let mut hosts: Vec<String> = files.filter_map(host).filter(is_on_demand).collect();
    hosts.sort();
    hosts
}

/// The file with what is remembered of failed attempts to obtain the certificate of this host.
pub(crate) fn attempts_file(settings: &AcmeSettings, host: &str) -> PathBuf {
    attempts_in(&settings.state_dir, &settings.directory, host)
}

fn attempts_in(state: &Path, directory: &str, host: &str) -> PathBuf {
    state.join(ATTEMPTS).join(name_of(directory)).join(format!("{}.json", file_name(host)))
}

/// A host in the name of a file, without the `*`, which shells know. No label of a domain begins with `_`.
fn file_name(host: &str) -> String {
    host.replacen('*', "_", 1)
}

/// What an authority is called in the names of files.
fn name_of(directory: &str) -> String {
    let digest = Sha256::digest(directory.as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The folder, locked.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The authority.
    directory: String,
    /// Locked for as long as it is open, whatever becomes of this process.
    _lock: File,
}

impl Folder {
    /// Makes the folder, if it is not there, and locks it. `None`: another process has locked it.
    ///
    /// # Errors
    /// It cannot be used, and what to do.
    pub(crate) fn lock(path: &Path, directory: &str) -> io::Result<Option<Self>> {
        make(path)?;
        make(&path.join(ACCOUNTS))?;
        for folder in [CERTIFICATES, ATTEMPTS] {
            make(&path.join(folder))?;
            make(&path.join(folder).join(name_of(directory)))?;
        }
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(false).mode(0o600).custom_flags(careful());
        let lock = open.open(path.join(LOCK))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                Ok(Some(Folder { path: path.to_owned(), directory: directory.to_owned(), _lock: lock }))
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of the account with the authority.
    pub(crate) fn account(&self) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        read(&self.account_file())
    }

    pub(crate) async fn keep_account(&self, account: &[u8], owner: &dyn Owner) -> io::Result<()> {
        write(&self.account_file(), account, OF_ACCOUNT, owner).await
    }

    /// The certificate of this host, with its key.
    pub(crate) fn certificate(&self, host: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        read(&self.file_of(host))
    }

    pub(crate) async fn keep_certificate(&self, host: &str, pem: &[u8], owner: &dyn Owner) -> io::Result<()> {
        write(&self.file_of(host), pem, OF_CERTIFICATE, owner).await
    }

    /// It is kept no longer.
    pub(crate) fn forget_certificate(&self, host: &str) -> io::Result<()> {
        remove(&self.file_of(host))
    }

    /// What is remembered of failed attempts.
    pub(crate) fn attempts(&self, host: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        read(&attempts_in(&self.path, &self.directory, host))
    }

    pub(crate) async fn keep_attempts(&self, host: &str, bytes: &[u8], owner: &dyn Owner) -> io::Result<()> {
        write(&attempts_in(&self.path, &self.directory, host), bytes, OF_ATTEMPT, owner).await
    }

    /// Nothing is remembered any more.
    pub(crate) fn forget_attempts(&self, host: &str) -> io::Result<()> {
        remove(&attempts_in(&self.path, &self.directory, host))
    }

    /// The file of a host's certificate.
    pub(crate) fn file_of(&self, host: &str) -> PathBuf {
        file_in(&self.path, &self.directory, host)
    }

    fn account_file(&self) -> PathBuf {
        self.path.join(ACCOUNTS).join(format!("{}.json", name_of(&self.directory)))
    }
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// A folder that only its owner can look into.
fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    examine(folder, true)
}

/// Whether this is a folder that can be written to, and, if it is one of the state's, that only its owner can look into.
pub(crate) fn examine(folder: &Path, is_own: bool) -> io::Result<()> {
    let found = if is_own { fs::symlink_metadata(folder)? } else { fs::metadata(folder)? };
    let refused = |why: &str| Err(io::Error::other(format!("{} {why}", folder.display())));
    match () {
        () if !found.is_dir() => refused("is not a folder"),
        () if is_own && found.uid() != geteuid().as_raw() => {
            refused("belongs to another user, who could put other keys there")
        }
        () if is_own && found.mode() & 0o077 != 0 => refused("can be read by other users: chmod 700"),
        () => access(folder, Access::WRITE_OK | Access::EXEC_OK)
            .or_else(|error| refused(&format!("cannot be written to: {error}"))),
    }
}

/// No link is followed, and a pipe is not waited for.
fn careful() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32
}

pub(crate) fn read(path: &Path) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let file = match OpenOptions::new().read(true).custom_flags(careful()).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Zeroizing::new(Vec::with_capacity(file.metadata()?.len().min(MOST_BYTES) as usize));
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces a file, or makes it. What a process that was killed has left beside it is overwritten.
async fn write(path: &Path, bytes: &[u8], steps: Steps, owner: &dyn Owner) -> io::Result<()> {
    let [written, synced, renamed] = steps;
    let beside = path.with_extension("new");
    let _ = fs::remove_file(&beside); // a link there is not followed
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    owner.passes(written).await;
    file.sync_all()?;
    owner.passes(synced).await;
    fs::rename(&beside, path)?;
    owner.passes(renamed).await;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Proof;
    use std::future::{ready, Future};
    use std::os::unix::fs::{symlink, PermissionsExt};
    use std::pin::Pin;

    /// An owner without clients.
    struct Idle;

    impl Owner for Idle {
        fn show(&self, _: &Proof) {}
        fn take_back(&self, _: &Proof) {}
        fn can_use(&self, _: &Path) -> Result<(), String> {
            Ok(())
        }
        fn has_changed(&self) {}
        fn passes(&self, _: &'static str) -> Pin<Box<dyn Future<Output = ()> + '_>> {
            Box::pin(ready(()))
        }
    }

    #[test]
    fn one_process_at_a_time_has_it() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("deep/state");
        let folder = Folder::lock(&path, "https://one.test").expect("made").expect("free");
        assert!(Folder::lock(&path, "https://one.test").expect("made").is_none());
        drop(folder);
        drop(when_free(&path, "https://one.test"));
        for folder in [path.clone(), path.join(ACCOUNTS), path.join(CERTIFICATES)] {
            assert_eq!(fs::metadata(folder).expect("there").mode() & 0o777, 0o700);
        }
    }

    /// Another test's process may have the lock's descriptor for a moment, between its fork and its program.
    fn when_free(path: &Path, authority: &str) -> Folder {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            if let Some(folder) = Folder::lock(path, authority).expect("made") {
                return folder;
            }
            assert!(std::time::Instant::now() < deadline, "it is not free");
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn what_is_kept_is_found_again_whatever_lay_beside_it() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let folder = Folder::lock(&path, "https://one.test").expect("made").expect("free");
        assert!(folder.certificate("a.test").expect("read").is_none());
        let victim = place.path().join("victim");
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, file_in(&path, "https://one.test", "a.test").with_extension("new")).expect("a link");
        folder.keep_certificate("a.test", b"key", &Idle).await.expect("kept");
        folder.keep_certificate("a.test", b"another key", &Idle).await.expect("kept");
        assert_eq!(folder.certificate("a.test").expect("read").as_deref(), Some(&b"another key".to_vec()));
        assert_eq!(fs::read(&victim).expect("there"), b"precious");
        let mode = fs::metadata(file_in(&path, "https://one.test", "a.test")).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
        folder.keep_account(b"1", &Idle).await.expect("kept");
        assert_eq!(folder.account().expect("read").as_deref(), Some(&b"1".to_vec()));
        folder.keep_attempts("*.a.test", b"{}", &Idle).await.expect("kept");
        assert!(folder.attempts("*.a.test").expect("read").is_some());
        assert!(folder.attempts("a.test").expect("read").is_none());
        folder.forget_attempts("*.a.test").expect("forgotten");
        folder.forget_attempts("*.a.test").expect("forgotten already");
        assert!(folder.attempts("*.a.test").expect("read").is_none());
        drop(folder);
        let of_another = when_free(&path, "https://two.test");
        assert!(of_another.account().expect("read").is_none());
        assert!(of_another.certificate("a.test").expect("read").is_none());
    }

    #[test]
    fn a_pipe_or_a_link_is_no_lock() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("closed");
        let (pipe, kind) = (path.join(LOCK), rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, 0)
            .expect("a pipe");
        Folder::lock(&path, "https://one.test").expect_err("it is a pipe");
        fs::remove_file(&pipe).expect("removed");
        symlink(place.path().join("elsewhere"), &pipe).expect("a link");
        Folder::lock(&path, "https://one.test").expect_err("it is a link");
        assert!(!place.path().join("elsewhere").exists());
    }

    #[test]
    fn a_folder_that_others_can_read_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("opened");
        let words = Folder::lock(&path, "https://one.test").expect_err("refused").to_string();
        assert!(words.contains("chmod 700"), "{words}");
    }
}
