//! How people read reports in `highball status`: facts, each in a line, and tables, such as that of the workers.

/// A line's name, and the text beside it. An empty name continues the fact above.
pub type Fact = (&'static str, String);

/// A column of a table whose rows are `T`s.
#[derive(Debug)]
pub struct Column<T> {
    heading: &'static str,
    width: usize,
    is_left_aligned: bool,
    text: fn(&T) -> String,
}

impl<T> Column<T> {
    pub(crate) const fn left(heading: &'static str, width: usize, text: fn(&T) -> String) -> Column<T> {
        Column { heading, width, is_left_aligned: true, text }
    }

    pub(crate) const fn right(heading: &'static str, width: usize, text: fn(&T) -> String) -> Column<T> {
        Column { heading, width, is_left_aligned: false, text }
    }

    fn cell(&self, text: &str) -> String {
        let width = self.width;
        if self.is_left_aligned {
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
