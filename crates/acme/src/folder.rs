//! What is kept: the accounts, and each certificate with its key, one file each.
//!
//! A file is written beside its place, and put there when all of it is on the disk. Whatever ends this
//! process, a reader finds the old file or the new one. One process at a time writes: the one that has locked the folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const ACCOUNTS: &str = "accounts";
const CERTIFICATES: &str = "certificates";
const LOCK: &str = "lock";
/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The file with the certificate of this host and its key, in the state folder.
pub fn certificate_file(state: &Path, host: &str) -> PathBuf {
    state.join(CERTIFICATES).join(format!("{host}.pem"))
}

/// The folder, locked.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Locked for as long as it is open, whatever becomes of this process.
    _lock: File,
}

impl Folder {
    /// Makes the folder, if it is not there, and locks it. `None`: another process has locked it.
    ///
    /// # Errors
    /// It cannot be used, and what to do.
    pub(crate) fn lock(path: &Path) -> io::Result<Option<Self>> {
        for folder in [path.to_owned(), path.join(ACCOUNTS), path.join(CERTIFICATES)] {
            make(&folder)?;
        }
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Folder { path: path.to_owned(), _lock: lock })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of the account with the authority of this directory.
    pub(crate) fn account(&self, directory: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        read(&self.account_file(directory))
    }

    pub(crate) fn keep_account(&self, directory: &str, account: &[u8]) -> io::Result<()> {
        write(&self.account_file(directory), account)
    }

    /// The certificate of this host, with its key.
    pub(crate) fn certificate(&self, host: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        read(&certificate_file(&self.path, host))
    }

    pub(crate) fn keep_certificate(&self, host: &str, pem: &[u8]) -> io::Result<()> {
        write(&certificate_file(&self.path, host), pem)
    }

    fn account_file(&self, directory: &str) -> PathBuf {
        let digest = Sha256::digest(directory.as_bytes());
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.path.join(ACCOUNTS).join(format!("{name}.json"))
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
        let folder = Folder::lock(&path).expect("made").expect("free");
        assert!(Folder::lock(&path).expect("made").is_none());
        drop(folder);
        assert!(Folder::lock(&path).expect("made").is_some());
        for folder in [path.clone(), path.join(ACCOUNTS), path.join(CERTIFICATES)] {
            assert_eq!(fs::metadata(folder).expect("there").mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn what_is_kept_is_found_again_whatever_lay_beside_it() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        let folder = Folder::lock(&path).expect("made").expect("free");
        assert!(folder.certificate("a.test").expect("read").is_none());
        let victim = place.path().join("victim");
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, certificate_file(&path, "a.test").with_extension("new")).expect("a link");
        folder.keep_certificate("a.test", b"key").expect("kept");
        folder.keep_certificate("a.test", b"another key").expect("kept");
        assert_eq!(folder.certificate("a.test").expect("read").as_deref(), Some(&b"another key".to_vec()));
        assert_eq!(fs::read(&victim).expect("there"), b"precious");
        let mode = fs::metadata(certificate_file(&path, "a.test")).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
        folder.keep_account("https://one.test", b"1").expect("kept");
        assert!(folder.account("https://two.test").expect("read").is_none());
        assert_eq!(folder.account("https://one.test").expect("read").as_deref(), Some(&b"1".to_vec()));
    }

    #[test]
    fn a_folder_that_others_can_read_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state");
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("opened");
        let words = Folder::lock(&path).expect_err("refused").to_string();
        assert!(words.contains("chmod 700"), "{words}");
    }
}
