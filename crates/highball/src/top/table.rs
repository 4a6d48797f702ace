//! Tables whose columns fit the available width, and texts that are cut or wrapped to it. Widths are those of a terminal: a
//! character may take two columns, or none.

use ratatui::text::Span;

/// Fewest columns for a name that is longer.
const LEAST_NAME: usize = 12;

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) width: usize,
    pub(super) is_left: bool,
    /// Columns with the lowest rank stay if there is no room for all.
    pub(super) rank: u8,
}

/// Creates a column of numbers.
pub(super) const fn right(title: &'static str, width: usize, rank: u8) -> Column {
    Column { title, width, is_left: false, rank }
}

/// Creates a column of words.
pub(super) const fn left(title: &'static str, width: usize, rank: u8) -> Column {
    Column { title, width, is_left: true, rank }
}

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// The note behind or below the cells.
    pub(super) note: String,
}

/// A table. The first column has names, and is as wide as they need, up to its width.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Row>,
}

/// The visible columns of a table, each with its width.
#[derive(Debug)]
pub(super) struct Shown(Vec<(usize, usize)>);

impl Table {
    /// Returns all columns, with as much room as they may have.
    pub(super) fn all(&self) -> Shown {
        Shown(self.columns.iter().enumerate().map(|(place, column)| (place, column.width)).collect())
    }

    /// Returns the columns that fit.
    pub(super) fn that_fit(&self, room: usize) -> Shown {
        let [name, others @ ..] = self.columns else { return Shown(Vec::new()) };
        let names = self.rows.iter().filter_map(|row| row.cells.first()).map(|text| width(text));
        let wanted = names.max().unwrap_or(0).max(name.title.len()).min(name.width);
        let least = wanted.min(LEAST_NAME);
        let mut by_rank: Vec<usize> = (1..=others.len()).collect();
        by_rank.sort_by_key(|place| self.columns[*place].rank);
        let mut left = room.saturating_sub(least);
        let mut places = Vec::new();
        for place in by_rank {
            let Some(rest) = left.checked_sub(self.columns[place].width + 1) else { break };
            left = rest;
            places.push(place);
        }
        places.sort_unstable();
        let name = (0, wanted.min(least + left));
        Shown(
            std::iter::once(name)
                .chain(places.into_iter().map(|place| (place, self.columns[place].width)))
                .collect(),
        )
    }

    pub(super) fn title(&self, shown: &Shown) -> String {
        self.line(shown, |place| self.columns[place].title)
    }

    pub(super) fn row(&self, shown: &Shown, row: &Row) -> String {
        self.line(shown, |place| row.cells.get(place).map_or("", String::as_str))
    }

    fn line<'a>(&self, shown: &Shown, cell: impl Fn(usize) -> &'a str) -> String {
        let cell = |(place, room): &(usize, usize)| {
            let text = cut(cell(*place), *room);
            let blanks = " ".repeat(room.saturating_sub(width(&text)));
            if self.columns[*place].is_left {
                text + &blanks
            } else {
                blanks + &text
            }
        };
        shown.0.iter().map(cell).collect::<Vec<_>>().join(" ")
    }

    /// Returns the table as text: title and rows, each with its note behind it.
    pub(super) fn text(&self) -> Vec<String> {
        let shown = self.all();
        let row = |row: &Row| {
            let gap = if row.note.is_empty() { "" } else { "  " };
            format!("  {}{gap}{}", self.row(&shown, row), row.note)
        };
        std::iter::once(format!("  {}", self.title(&shown))).chain(self.rows.iter().map(row)).collect()
    }
}

/// Returns the number of terminal columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Cuts a text that is too long.
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (begin, _) = split(text, most.saturating_sub(1));
    format!("{begin}…")
}

/// Wraps a text into lines of at most this width, after blanks where possible. Together the lines are the text.
pub(super) fn wrap(text: &str, most: usize) -> Vec<String> {
    let most = most.max(2); // the widest character
    let mut lines = Vec::new();
    let mut rest = text;
    while width(rest) > most {
        let (line, _) = split(rest, most);
        let blank = line.rfind(' ').map(|place| place + 1).filter(|end| *end > line.len() / 2);
        let (line, after) = rest.split_at(blank.unwrap_or(line.len()));
        lines.push(line.to_owned());
        rest = after;
    }
    lines.push(rest.to_owned());
    lines
}

/// Splits a text into the part that fits, and the rest.
fn split(text: &str, most: usize) -> (&str, &str) {
    let mut taken = 0;
    let end = text.char_indices().find(|(at, letter)| {
        taken += width(&text[*at..*at + letter.len_utf8()]);
        taken > most
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] =
        &[left("NAME", 20, 0), right("RARE", 6, 3), left("STATE", 8, 1), right("N", 4, 2)];

    fn table(name: &str) -> Table {
        let cells = [name, "7", "serving", "3"].map(String::from).to_vec();
        Table { columns: COLUMNS, rows: vec![Row { cells, note: "why".into() }] }
    }

    fn line(name: &str, room: usize) -> String {
        let table = table(name);
        table.row(&table.that_fit(room), &table.rows[0])
    }

    #[test]
    fn columns_that_matter_less_give_way() {
        assert_eq!(line("shop", 40), "shop      7 serving     3");
        assert_eq!(line("shop", 24), "shop serving     3");
        assert_eq!(line("shop", 14), "shop serving ");
        assert_eq!(line("a-very-long-name-of-an-app", 26), "a-very-long… serving     3");
        assert_eq!(line("a-very-long-name-of-an-app", 60), "a-very-long-name-of…      7 serving     3");
        assert_eq!(table("shop").text()[1], "  shop                      7 serving     3  why");
    }

    #[test]
    fn no_character_is_lost() {
        let text = "/srv/shop/app/models/order.rb:17:in `block (2 levels) in total' 日本語のテキスト ✓ ends";
        for most in 1..100 {
            let lines = wrap(text, most);
            assert_eq!(lines.concat(), text, "{most}");
            assert!(lines.iter().all(|line| width(line) <= most.max(2)), "{most}: {lines:?}");
        }
    }

    #[test]
    fn texts_are_cut_with_a_mark() {
        assert_eq!((cut("abcd", 4), cut("abcde", 4)), ("abcd".into(), "abc…".into()));
        assert_eq!((cut("abc", 0), cut("日本", 3)), ("…".to_owned(), "日…".to_owned()));
    }
}
