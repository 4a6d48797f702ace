//! Colours for some lines of Ruby. The lines are an excerpt, so what began above them is not known: each line is read on
//! its own, and a text of several lines has the wrong colours at worst. No parser of Ruby reads half a file, and
//! highlighters of many languages are larger than this server.

/// What a part of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Comment,
    Text,
    Symbol,
    Number,
    Keyword,
    Constant,
    Variable,
    Other,
}

const KEYWORDS: [&str; 49] = [
    "BEGIN",
    "END",
    "alias",
    "and",
    "begin",
    "break",
    "case",
    "class",
    "def",
    "defined?",
    "do",
    "else",
    "elsif",
    "end",
    "ensure",
    "extend",
    "false",
    "for",
    "if",
    "in",
    "include",
    "module",
    "next",
    "nil",
    "not",
    "or",
    "prepend",
    "private",
    "protected",
    "public",
    "raise",
    "redo",
    "require",
    "require_relative",
    "rescue",
    "retry",
    "return",
    "self",
    "super",
    "then",
    "true",
    "undef",
    "unless",
    "until",
    "when",
    "while",
    "yield",
    "__FILE__",
    "__dir__",
];

impl Token {
    /// The class of its element in the page; `None`: it needs none.
    pub(super) fn class(self) -> Option<&'static str> {
        match self {
            Token::Comment => Some("c"),
            Token::Text => Some("s"),
            Token::Symbol => Some("y"),
            Token::Number => Some("n"),
            Token::Keyword => Some("k"),
            Token::Constant => Some("t"),
            Token::Variable => Some("v"),
            Token::Other => None,
        }
    }
}

/// Whether a file of this name is Ruby.
pub(super) fn is_ruby(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let endings = [".rb", ".ru", ".rake", ".gemspec", ".jbuilder", ".builder"];
    endings.iter().any(|ending| name.ends_with(ending)) || matches!(name, "Gemfile" | "Rakefile" | "Capfile")
}

/// The parts of a line, which make the line together.
pub(super) fn of_line(line: &str) -> Vec<(Token, &str)> {
    let mut tokens = Vec::new();
    Reader { rest: line, before: None, tokens: &mut tokens }.read(None);
    tokens
}

struct Reader<'a, 't> {
    rest: &'a str,
    /// The last character that is no white space.
    before: Option<char>,
    tokens: &'t mut Vec<(Token, &'a str)>,
}

impl<'a> Reader<'a, '_> {
    /// Reads up to the end of the line, or to this closing bracket of an interpolation.
    fn read(&mut self, until: Option<char>) {
        let mut depth = 0_u32;
        while let Some(first) = self.rest.chars().next() {
            match first {
                '}' if until.is_some() && depth == 0 => return,
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.next(first);
        }
    }

    fn next(&mut self, first: char) {
        let second = self.rest[first.len_utf8()..].chars().next().unwrap_or(' ');
        let is_start = !self.follows_a_value();
        match first {
            '#' => self.take(Token::Comment, self.rest.len()),
            '"' | '`' => self.text(1, first, true),
            '\'' => self.text(1, first, false),
            '/' if is_start && second != ' ' => self.text(1, '/', true),
            '%' if is_start && (second.is_ascii_punctuation() || "wWiIqQrx".contains(second)) => {
                self.percent(second)
            }
            ':' if second == '"' => self.text(2, '"', true),
            ':' if is_word(second) && self.before != Some(':') => {
                self.take(Token::Symbol, 1 + word_bytes(&self.rest[1..]));
            }
            '@' | '$' => {
                let signs = self.rest.len() - self.rest.trim_start_matches(first).len();
                self.take(Token::Variable, signs + word_bytes(&self.rest[signs..]));
            }
            _ if first.is_ascii_digit() => {
                let is_of_number = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                self.take(Token::Number, bytes_while(self.rest, is_of_number));
            }
            _ if is_word(first) => self.word(),
            _ => self.take(Token::Other, first.len_utf8()),
        }
    }

    /// Whether a `/` or `%` here would be an operator.
    fn follows_a_value(&self) -> bool {
        let is_keyword = matches!(
            self.tokens.iter().rfind(|(_, text)| !text.trim().is_empty()),
            Some((Token::Keyword, _))
        );
        !is_keyword && self.before.is_some_and(|letter| is_word(letter) || ")]}\"'".contains(letter))
    }

    fn word(&mut self) {
        let bytes = word_bytes(self.rest);
        let (word, after) = self.rest.split_at(bytes);
        let is_label = after.starts_with(':') && !after.starts_with("::");
        let token = match () {
            () if is_label => return self.take(Token::Symbol, bytes + 1),
            () if self.before == Some('.') => Token::Other,
            () if KEYWORDS.contains(&word) => Token::Keyword,
            () if word.starts_with(|letter: char| letter.is_uppercase()) => Token::Constant,
            () => Token::Other,
        };
        self.take(token, bytes);
    }

    /// `%w[a b]` and the like.
    fn percent(&mut self, second: char) {
        let opening =
            if second.is_ascii_punctuation() { Some(second) } else { self.rest[2..].chars().next() };
        let start = if second.is_ascii_punctuation() { 2 } else { 3 };
        match opening {
            Some('(') => self.text(start, ')', true),
            Some('[') => self.text(start, ']', true),
            Some('{') => self.text(start, '}', true),
            Some('<') => self.text(start, '>', true),
            Some(mark @ ('|' | '!' | '/')) => self.text(start, mark, true),
            _ => self.take(Token::Other, 1),
        }
    }

    /// Reads a text with the code inside it. `start`: the bytes up to its content; `end`: the character that ends it.
    fn text(&mut self, start: usize, end: char, interpolates: bool) {
        let text = self.rest;
        let mut letters = text.char_indices().skip_while(|(at, _)| *at < start);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => drop(letters.next()),
                _ if letter == end => return self.take(Token::Text, at + letter.len_utf8()),
                '#' if interpolates && text[at..].starts_with("#{") => {
                    self.take(Token::Text, at + 2);
                    self.before = None;
                    self.read(Some('}'));
                    return self.text(usize::from(self.rest.starts_with('}')), end, interpolates);
                }
                _ => {}
            }
        }
        self.take(Token::Text, text.len());
    }

    fn take(&mut self, token: Token, bytes: usize) {
        let (part, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.before = part.trim_end().chars().next_back().or(self.before);
        if !part.is_empty() {
            self.tokens.push((token, part));
        }
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn bytes_while(text: &str, holds: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !holds(letter)).unwrap_or(text.len())
}

/// The length of the name that a text begins with.
fn word_bytes(text: &str) -> usize {
    let bytes = bytes_while(text, is_word);
    let ends_with_mark = text[bytes..].starts_with(['?', '!']) && !text[bytes + 1..].starts_with('=');
    bytes + usize::from(bytes > 0 && ends_with_mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(line: &str) -> String {
        let part = |(token, text): (Token, &str)| {
            token.class().map_or(text.into(), |class| format!("<{class} {text}>"))
        };
        of_line(line).into_iter().map(part).collect()
    }

    #[test]
    fn parts_have_their_colours() {
        for (line, expected) in [
            ("def of(drink) # why", "<k def> of(drink) <c # why>"),
            ("raise Error, \"no #{@name} here\"", "<k raise> <t Error>, <s \"no #{><v @name><s } here\">"),
            ("{ tea: 3, :milk => 'a' }", "{ <y tea:> <n 3>, <y :milk> => <s 'a'> }"),
            ("a / b if x =~ /\\/y/", "a / b <k if> x =~ <s /\\/y/>"),
            ("%w[a b].each { |n| n % 2 }", "<s %w[a b]>.each { |n| n % <n 2> }"),
            ("x.class::NAME", "x.class::<t NAME>"),
            ("\"#{h[\"a\"].map { |x| x }}!\"", "<s \"#{>h[<s \"a\">].map { |x| x }<s }!\">"),
            ("return /x/ unless empty?", "<k return> <s /x/> <k unless> empty?"),
        ] {
            assert_eq!(coloured(line), expected);
        }
    }

    #[test]
    fn no_character_is_lost() {
        let deep = "\"#{".repeat(100);
        for line in [
            "",
            " ",
            "\"open",
            "%",
            "%w",
            "%w[",
            ":",
            "@",
            "$",
            "é ? ü : ß",
            "'\\",
            "a?=b",
            "}}#{",
            "::X",
            &deep,
        ] {
            assert_eq!(of_line(line).iter().map(|(_, text)| *text).collect::<String>(), line);
        }
    }
}
