//! How people read reports in `highball status`: facts, each in a line, and tables, such as that of the workers.

/// A line's name, and the text beside it. An empty name continues the fact above.
pub type Fact = (&'static str, String);

/// A column of a table whose rows are `T`s. With a negative width it is left-aligned, as in printf(3).
#[derive(Debug)]
pub struct Column<T> {
    heading: &'static str,
    width: isize,
    text: fn(&T) -> String,
}

impl<T> Column<T> {
    pub(crate) const fn new(heading: &'static str, width: isize, text: fn(&T) -> String) -> Column<T> {
        Column { heading, width, text }
    }

    fn cell(&self, text: &str) -> String {
        let width = self.width.unsigned_abs();
        if self.width < 0 {
            format!("  {text:<width$}")
        } else {
            format!("  {text:>width$}")
        }
    }

    /// The first line of a table.
    pub fn headings(columns: &[Column<T>]) -> String {
        columns.iter().map(|column| column.cell(column.heading)).collect()
    }

    /// The line of one row.
    pub fn row(columns: &[Column<T>], row: &T) -> String {
        columns.iter().map(|column| column.cell(&(column.text)(row))).collect()
    }
}

/// A number, or a dash.
pub(crate) fn or_dash<N: ToString>(value: Option<N>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

/// `, 5m 12s ago`
pub(crate) fn ago(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(", {} ago", highball_text::duration(seconds))).unwrap_or_default()
}
