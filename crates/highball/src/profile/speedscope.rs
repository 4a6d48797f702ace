//! The JSON of speedscope (its file format schema).

use crate::profile::calls::{Calls, Unit};
use crate::profile::About;
use highball_text::json;
use serde_json::{json, Value};

pub(crate) fn speedscope(calls: &Calls, about: &About) -> String {
    let frame = |name: &crate::status::profile_report::ProfiledName| {
        let mut frame = json!({ "name": name.label });
        if !name.file.is_empty() {
            frame["file"] = json!(name.file);
        }
        if name.line > 0 {
            frame["line"] = json!(name.line);
        }
        frame
    };
    let frames: Vec<Value> = calls.names.iter().map(frame).collect();
    let (samples, weights): (Vec<_>, Vec<_>) = calls.stacks.iter().cloned().unzip();
    let unit = match calls.unit {
        Unit::Microseconds => "microseconds",
        Unit::Objects => "none",
    };
    json::compact(&json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("highball ", env!("CARGO_PKG_VERSION")),
        "name": format!("{} ({})", about.app, about.mode),
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled",
            "name": about.app,
            "unit": unit,
            "startValue": 0,
            "endValue": calls.total,
            "samples": samples,
            "weights": weights,
        }],
    }))
}
