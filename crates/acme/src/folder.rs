//! What is kept: the accounts, and each certificate with its key, one file each.
//!
//! A file is written beside its place, and put there when all of it is on the disk. Whatever ends this
//! process, a reader finds the old file or the new one. One process at a time writes: the one that has locked the folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use highball_config::AcmeSettings;
use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const ACCOUNTS: &str = "accounts";
const CERTIFICATES: &str = "certificates";
const LOCK: &str = "lock";
/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The file with the certificate of this host and its key: one for each authority, as what is obtained for a try is worth nothing.
pub fn certificate_file(settings: &AcmeSettings, host: &str) -> PathBuf {
    file_in(&settings.state_dir, &settings.directory, host)
}

fn file_in(state: &Path, directory: &str, host: &str) -> PathBuf {
    certificates_of(state, directory).join(format!("{host}.pem"))
}

fn certificates_of(state: &Path, directory: &str) -> PathBuf {
    state.join(CERTIFICATES).join(name_of(directory))
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
        let certificates = certificates_of(path, directory);
        for folder in [path.to_owned(), path.join(ACCOUNTS), path.join(CERTIFICATES), certificates] {
            make(&folder)?;
        }
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK))?;
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

    pub(crate) fn keep_account(&self, account: &[u8]) -> io::Result<()> {
        write(&self.account_file(), account)
    }

    /// The certificate of this host, with its key.
    pub(crate) fn certificate(&self, host: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        read(&self.file_of(host))
    }

    pub(crate) fn keep_certificate(&self, host: &str, pem: &[u8]) -> io::Result<()> {
        write(&self.file_of(host), pem)
    }

    /// The file of a host's certificate.
    pub(crate) fn file_of(&self, host: &str) -> PathBuf {
        file_in(&self.path, &self.directory, host)
    }

    fn account_file(&self) -> PathBuf {
        self.path.join(ACCOUNTS).join(format!("{}.json", name_of(&self.directory)))
    }
}

/// A folder that only its owner can look into.
fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    let refused = |why: &str| Err(io::Error::other(format!("{} {why}", folder.display())));
    match () {
        () if !found.is_dir() => refused("is no folder"),
        () if found.uid() != geteuid().as_raw() => {
            refused("belongs to another user, who could put other keys there")
        }
        () if found.mode() & 0o077 != 0 => refused("can be read by other users: chmod 700"),
        () => Ok(()),
    }
}

fn read(path: &Path) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Zeroizing::new(Vec::with_capacity(file.metadata()?.len().min(MOST_BYTES) as usize));
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces a file, or makes it. What a process that was killed has left beside it is overwritten.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let _ = fs::remove_file(&beside); // a link there is not followed
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn one_process_at_a_time_has_it() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("deep/state");
        let folder = Folder::lock(&path, "https://one.test").expect("made").expect("free");
        assert!(Folder::lock(&path, "https://one.test").expect("made").is_none());
        drop(folder);
        assert!(Folder::lock(&path, "https://one.test").expect("made").is_some());
        for folder in [path.clone(), path.join(ACCOUNTS), path.join(CERTIFICATES)] {
            assert_eq!(fs::metadata(folder).expect("there").mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn what_is_kept_is_found_again_whatever_lay_beside_it() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let folder = Folder::lock(&path, "https://one.test").expect("made").expect("free");
        assert!(folder.certificate("a.test").expect("read").is_none());
        let victim = place.path().join("victim");
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, file_in(&path, "https://one.test", "a.test").with_extension("new")).expect("a link");
        folder.keep_certificate("a.test", b"key").expect("kept");
        folder.keep_certificate("a.test", b"another key").expect("kept");
        assert_eq!(folder.certificate("a.test").expect("read").as_deref(), Some(&b"another key".to_vec()));
        assert_eq!(fs::read(&victim).expect("there"), b"precious");
        let mode = fs::metadata(file_in(&path, "https://one.test", "a.test")).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
        folder.keep_account(b"1").expect("kept");
        assert_eq!(folder.account().expect("read").as_deref(), Some(&b"1".to_vec()));
        drop(folder);
        let of_another = Folder::lock(&path, "https://two.test").expect("made").expect("free");
        assert!(of_another.account().expect("read").is_none());
        assert!(of_another.certificate("a.test").expect("read").is_none());
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
