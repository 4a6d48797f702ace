//! Links that open a developer's editor at a line of a file.

use std::fmt::Write as _;
use std::path::Path;

/// Variables that name the editor, the first that is known counts: ours, and those of all programs.
const VARIABLES: [&str; 3] = ["HIGHBALL_EDITOR", "VISUAL", "EDITOR"];

/// Commands of editors, and the addresses that these editors have registered with the desktop.
const KNOWN: [(&[&str], &str); 15] = [
    (&["code", "vscode"], "vscode://file{file}:{line}"),
    (&["code-insiders"], "vscode-insiders://file{file}:{line}"),
    (&["codium", "vscodium"], "vscodium://file{file}:{line}"),
    (&["cursor"], "cursor://file{file}:{line}"),
    (&["windsurf"], "windsurf://file{file}:{line}"),
    (&["zed", "zeditor"], "zed://file{file}:{line}"),
    (&["subl", "sublime"], "subl://open?url=file://{file}&line={line}"),
    (&["mate", "textmate"], "txmt://open?url=file://{file}&line={line}"),
    (&["mvim", "macvim"], "mvim://open?url=file://{file}&line={line}"),
    (&["nova"], "nova://open?path={file}&line={line}"),
    (&["idea"], "idea://open?file={file}&line={line}"),
    (&["mine", "rubymine"], "x-mine://open?file={file}&line={line}"),
    (&["emacs", "emacsclient"], "emacs://open?url=file://{file}&line={line}"),
    (&["nvim", "neovim"], "nvim://open?url=file://{file}&line={line}"),
    (&["atom"], "atom://core/open/file?filename={file}&line={line}"),
];

/// Schemes that run something in the page or leave it for a place that is no editor.
const REFUSED: [&str; 5] = ["javascript", "data", "vbscript", "blob", "file"];

/// The address that opens a file, with `{file}`, `{relative}` and `{line}` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Editor(String);

impl Editor {
    /// The editor that the environment names: by its command, or by such an address.
    pub(crate) fn of_environment() -> Option<Editor> {
        VARIABLES.iter().find_map(|name| Editor::named(&std::env::var(name).ok()?))
    }

    /// The same by a value of such a variable.
    pub(super) fn named(value: &str) -> Option<Editor> {
        if let Some((scheme, _)) = value.split_once("://") {
            let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
            let is_refused = REFUSED.iter().any(|refused| scheme.eq_ignore_ascii_case(refused));
            let names_a_file = value.contains("{file}") || value.contains("{relative}");
            return (is_scheme && !is_refused && names_a_file).then(|| Editor(value.into()));
        }
        let command = Path::new(value.split_whitespace().next()?).file_name()?.to_str()?;
        let known = KNOWN.iter().find(|(names, _)| names.contains(&command))?;
        Some(Editor(known.1.into()))
    }

    /// The address for a line of this file; `None` if the file has no place on the disk, such as `(eval)`.
    pub(crate) fn link(&self, file: &str, line: u32, folder: &Path) -> Option<String> {
        let path = Path::new(file);
        if !path.is_absolute() {
            return None;
        }
        let relative = path.strip_prefix(folder).unwrap_or(path).to_str()?;
        let address = self.0.replace("{line}", &line.to_string());
        Some(address.replace("{relative}", &encoded(relative)).replace("{file}", &encoded(file)))
    }
}

/// A path as a part of an address.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte))
            }
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(editor: &str) -> Option<String> {
        Editor::named(editor)?.link("/srv/shop/a b\"<é>{line}.rb", 7, Path::new("/srv/shop"))
    }

    #[test]
    fn commands_and_addresses_name_an_editor() {
        let file = "/srv/shop/a%20b%22%3C%C3%A9%3E%7Bline%7D.rb";
        for command in ["code", "/usr/local/bin/code --wait", "vscode"] {
            assert_eq!(link(command).unwrap(), format!("vscode://file{file}:7"));
        }
        assert_eq!(link("rubymine").unwrap(), format!("x-mine://open?file={file}&line=7"));
        let mapped = "vscode://file/Users/me/shop/{relative}:{line}";
        assert_eq!(link(mapped).unwrap(), format!("vscode://file/Users/me/shop{}:7", &file[9..]));
        for unknown in ["", " ", "vi", "ed", "https", "code://", "://{file}", "1x://{file}", "a b://{file}"] {
            assert_eq!(link(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn no_address_runs_something_in_the_page() {
        for refused in
            ["javascript://{file}", "JavaScript://%0aalert(1)//{file}", "data://{file}", "file://{file}"]
        {
            assert_eq!(link(refused), None, "{refused}");
        }
    }

    #[test]
    fn only_files_on_the_disk_have_links() {
        let editor = Editor::named("zed").unwrap();
        assert_eq!(editor.link("(eval)", 1, Path::new("/srv")), None);
        assert_eq!(editor.link("<internal:kernel>", 1, Path::new("/srv")), None);
    }
}
