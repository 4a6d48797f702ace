//! The folder `bench`: schemes and workloads.

use std::path::{Path, PathBuf};

use crate::results::Skipped;
use crate::scheme::Scheme;
use crate::Failure;

/// The folder `bench` of the source tree or the gem: named, or somewhere above the binary.
///
/// # Errors
/// There is none.
pub(crate) fn data_folder() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os("HIGHBALL_BENCH") {
        return Ok(named.into());
    }
    let binary =
        std::env::current_exe().map_err(|error| Failure(format!("find this program's folder: {error}")))?;
    let mut folders = binary.ancestors().skip(1).take(4).map(|folder| folder.join("bench"));
    folders.find(|folder| folder.join("schemes").is_dir() && folder.join("workloads").is_dir()).ok_or_else(|| {
        Failure::new("cannot find the benchmark's data (bench/schemes) near this binary: name the folder in HIGHBALL_BENCH")
    })
}

/// Highball's scheme, where it can run.
pub(crate) fn highball(data: &Path) -> Result<Scheme, Failure> {
    let scheme = Scheme::read(&data.join("schemes/highball.toml"))?;
    match scheme.missing() {
        None => Ok(scheme),
        Some(missing) => Err(Failure(format!("Highball: {}", missing.why))),
    }
}

/// The schemes that can run here, and why the others cannot.
pub(crate) fn present(schemes: Vec<Scheme>) -> (Vec<Scheme>, Vec<Skipped>) {
    let mut present = Vec::new();
    let mut skipped = Vec::new();
    for scheme in schemes {
        match scheme.missing() {
            None => present.push(scheme),
            Some(missing) => skipped.push(Skipped {
                scheme: scheme.name,
                workload: None,
                why: missing.why,
                packages: missing.packages,
            }),
        }
    }
    (present, skipped)
}
