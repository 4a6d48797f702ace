//! A page with a flame graph. All of it is in one file, and a policy in it allows nothing from elsewhere.

use crate::profile::calls::{Calls, Unit};
use crate::profile::About;
use crate::status::profile_report::ProfileReport;
use highball_config::ProfileMode;
use highball_text::{counted, json};
use serde_json::json;

/// `nonce`: names the style and the script of the page, which are the only ones that its policy allows.
pub(crate) fn page(report: &ProfileReport, calls: &Calls, about: &About, nonce: &str) -> String {
    let names: Vec<_> = calls.names.iter().map(|name| json!([name.label, name.file, name.line])).collect();
    let data = json!({
        "names": names,
        "stacks": calls.stacks,
        "unit": match calls.unit { Unit::Microseconds => "time", Unit::Objects => "objects" },
    });
    // In a script element, only `<` could end the text.
    let data = json::compact(&data).replace('<', "\\u003c");
    let title = format!("{} – {}", about.app, about.mode);
    include_str!("page.html")
        .replace("/* STYLE */", include_str!("page.css"))
        .replace("/* SCRIPT */", include_str!("page.js"))
        .replace("NONCE", nonce)
        .replace("TITLE", &escaped(&title))
        .replace("SUMMARY", &escaped(&summary(report, about)))
        // The last: texts of others are in it.
        .replacen("DATA", &data, 1)
}

/// What the picture shows, in a sentence or two.
fn summary(report: &ProfileReport, about: &About) -> String {
    let what = match report.mode {
        ProfileMode::Cpu => "CPU time of Ruby threads",
        ProfileMode::Wall => "Time that threads were at something",
        ProfileMode::Gvl => "Time that threads waited for the GVL",
        ProfileMode::Allocations => "Objects made",
    };
    let time = counted(about.time.as_secs(), "second");
    let workers = counted(report.workers.len() as u64, "worker");
    let mut text = format!("{what}, in {time} of {workers}: {}.", counted(report.samples, "sample"));
    if report.left_out > 0 {
        text +=
            &format!(" {} beyond the limits of a profile are left out.", counted(report.left_out, "thing"));
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::calls::tests::a_report;
    use crate::status::profile_report::ProfiledName;
    use std::time::{Duration, SystemTime};

    #[test]
    fn names_of_an_application_end_no_element() {
        let hostile = "</script><script>alert(1)</script>";
        let mut report = a_report();
        report.names[1] = ProfiledName { label: hostile.into(), file: hostile.into(), line: 1 };
        let about = About {
            app: "<b>".into(),
            mode: ProfileMode::Cpu,
            time: Duration::from_secs(10),
            began: SystemTime::UNIX_EPOCH,
        };
        let text = page(&report, &Calls::of(&report), &about, "0");
        assert_eq!(text.matches("<script").count(), 2);
        assert!(text.contains("&lt;b&gt;") && !text.contains("<b>"));
        assert!(!text.contains("http://") && !text.contains("https://"));
    }
}
