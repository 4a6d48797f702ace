//! What is asked of an application: a file of `bench/workloads`.
#![allow(missing_docs)] // where a name and its unit say all

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    pub title: String,
    /// The application's folder, relative to the folder `bench`.
    pub app: PathBuf,
    /// What is sent, one after the other and from the beginning again.
    #[serde(rename = "request")]
    pub requests: Vec<Request>,
    /// The floors can answer it too (they answer a constant).
    #[serde(default)]
    pub floors: bool,
    /// Debian packages that the application needs.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Environment variables of the application.
    #[serde(default)]
    pub env: std::collections::BTreeMap<String, String>,
}

/// A request, and what the answer to it must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    #[serde(default = "get")]
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Bytes of the request's body.
    #[serde(default)]
    pub body_bytes: u64,
    #[serde(default = "ok")]
    pub status: u16,
}

fn get() -> String {
    "GET".into()
}

fn ok() -> u16 {
    200
}

impl Default for Request {
    fn default() -> Self {
        Request { method: get(), path: "/".into(), headers: Vec::new(), body_bytes: 0, status: ok() }
    }
}

impl Workload {
    /// Reads every workload of this folder, sorted by file name.
    ///
    /// # Errors
    /// The folder cannot be read, or one of them is not a workload.
    pub fn read_all(folder: &Path) -> Result<Vec<Workload>, crate::Failure> {
        crate::data_files(folder)?.iter().map(|file| Workload::read(file)).collect()
    }

    /// Reads the workload in this file.
    ///
    /// # Errors
    /// It cannot be read, or is not a workload.
    pub fn read(file: &Path) -> Result<Workload, crate::Failure> {
        let problem =
            |error: &dyn std::fmt::Display| crate::Failure(format!("workload {}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|e| problem(&e))?;
        let mut workload: Workload = toml::from_str(&text).map_err(|e| problem(&e))?;
        workload.name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if workload.requests.is_empty() {
            return Err(problem(&"it has no [[request]]"));
        }
        Ok(workload)
    }
}
