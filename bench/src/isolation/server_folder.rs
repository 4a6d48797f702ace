//! The folder with all applications, and the configuration of the server for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tempfile::TempDir;

use super::{Way, BURNERS, WELL};
use crate::waiting::wait_for;
use crate::Failure;

/// The file in which burners say that they begin, and the variable that names it to them.
const BURNS: &str = "burns";
const BURNS_VARIABLE: &str = "BURNS";
/// What runs until its worker is killed is not waited for.
const DRAIN_TIMEOUT: &str = "1s";
/// How long it may take until all burn.
const ALL_BURN_WITHIN: Duration = Duration::from_secs(60);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ServerFolder(TempDir);

/// One of the applications that do no harm, from 1; it is reached below its name.
pub(super) fn name_of_well(number: u32) -> String {
    format!("well-{number}")
}

impl ServerFolder {
    /// With copies of the applications: one of them is changed again and again, to be booted again.
    ///
    /// # Errors
    /// It cannot be filled.
    pub(super) fn make(data: &Path, way: Way) -> Result<ServerFolder, Failure> {
        let problem = |error| Failure(format!("make a folder for the applications: {error}"));
        let folder = tempfile::Builder::new().prefix("highball-bench-apps-").tempdir().map_err(problem)?;
        let folder = ServerFolder(folder);
        folder.fill(data, way).map_err(problem)?;
        Ok(folder)
    }

    fn fill(&self, data: &Path, way: Way) -> io::Result<()> {
        let well = (1..=WELL).map(name_of_well);
        for name in well.clone() {
            copy(&data.join("apps/work"), &self.file(&name))?;
        }
        copy(&data.join("apps/burners"), self.path())?;
        let burners = BURNERS.iter().filter(|_| way == Way::Inside).map(|burner| (*burner).to_owned());
        let entry = |name| format!("\n[[app]]\npath = \"{name}\"\nprefix = \"/{name}\"\n");
        let entries: String = well.chain(burners).map(entry).collect();
        fs::write(self.file("highball.toml"), format!("drain_timeout = \"{DRAIN_TIMEOUT}\"\n{entries}"))?;
        fs::write(self.file(BURNS), "")
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// This file or folder in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Variables that burners need, wherever they run.
    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(BURNS_VARIABLE.into(), self.file(BURNS).to_string_lossy().into_owned())])
    }

    /// How often each of the burners has begun to burn.
    pub(super) fn burnt(&self) -> BTreeMap<String, u64> {
        let text = fs::read_to_string(self.file(BURNS)).unwrap_or_default();
        let count = |burner: &str| text.lines().filter(|line| *line == burner).count() as u64;
        BURNERS.iter().map(|burner| ((*burner).to_owned(), count(burner))).collect()
    }

    /// # Errors
    /// One of them has not begun after a minute, or an interrupt came.
    pub(super) fn wait_until_all_burn(&self) -> Result<(), Failure> {
        wait_for(ALL_BURN_WITHIN, LOOK_EVERY, || match self.burnt().iter().find(|(_, count)| **count == 0) {
            Some((idle, _)) => Err(Failure(format!("the burner `{idle}` has not begun to burn"))),
            None => Ok(()),
        })
    }
}

/// All of a folder; what lies in `to` already stays.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
