//! Changes to the header fields of responses (option `response_headers`).

use std::sync::Arc;

use highball_config::{App, HeaderChange, HeaderRule};

use crate::path_pattern::is_about;

/// The changes that apply to the responses to one request.
#[derive(Debug)]
pub(crate) struct HeaderChanges {
    /// Configuration that has the rules.
    app: Arc<App>,
    /// Which of the rules apply: a bit each.
    applying: u64,
}

impl HeaderChanges {
    /// Finds the changes for a request with this plain path. `None`: there are none.
    pub(crate) fn of(app: &Arc<App>, path: &[u8]) -> Option<Box<Self>> {
        let rules = app.response_headers.iter().enumerate();
        let applying = rules
            .filter(|(_, rule)| is_about(rule.pattern.as_ref(), path))
            .fold(0_u64, |bits, (index, _)| bits | 1 << index);
        (applying != 0).then(|| Box::new(HeaderChanges { app: Arc::clone(app), applying }))
    }

    /// Returns these lines of a head, `name: value` CR LF each, with the changes made in the order of the configuration.
    pub(crate) fn made_to(&self, lines: &[&[u8]]) -> Vec<u8> {
        let mut lines = lines.concat();
        let rules = self.app.response_headers.iter().enumerate();
        for (_, rule) in rules.filter(|(index, _)| self.applying >> index & 1 == 1) {
            change(rule, &mut lines);
        }
        lines
    }
}

fn change(rule: &HeaderRule, lines: &mut Vec<u8>) {
    let value = match &rule.change {
        HeaderChange::Remove => {
            remove(&rule.name, lines);
            return;
        }
        HeaderChange::Set(value) => {
            remove(&rule.name, lines);
            value
        }
        HeaderChange::Add(value) => value,
    };
    for part in [&*rule.name, ": ", value, "\r\n"] {
        lines.extend_from_slice(part.as_bytes());
    }
}

fn remove(name: &str, lines: &mut Vec<u8>) {
    let is_named = |line: &[u8]| {
        line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
            && line.get(name.len()) == Some(&b':')
    };
    if lines.split_inclusive(|byte| *byte == b'\n').any(is_named) {
        *lines = lines
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| !is_named(line))
            .flatten()
            .copied()
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(rules: &[(&str, HeaderChange)], lines: &str) -> String {
        let mut lines = lines.as_bytes().to_vec();
        for (name, made) in rules {
            change(&HeaderRule { pattern: None, name: (*name).to_owned(), change: made.clone() }, &mut lines);
        }
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn fields_are_set_added_and_removed() {
        let (set, add) = (HeaderChange::Set("1".to_owned()), HeaderChange::Add("1".to_owned()));
        let lines = "X-A: a\r\nx-ab: b\r\nX-a: c\r\n";
        assert_eq!(changed(&[("x-a", HeaderChange::Remove)], lines), "x-ab: b\r\n");
        assert_eq!(changed(&[("x-a", set.clone())], lines), "x-ab: b\r\nx-a: 1\r\n");
        assert_eq!(changed(&[("x-a", add)], lines), format!("{lines}x-a: 1\r\n"));
        assert_eq!(changed(&[("x-a", set), ("x-a", HeaderChange::Remove)], ""), "");
        assert_eq!(changed(&[("x", HeaderChange::Remove)], lines), lines);
    }
}
