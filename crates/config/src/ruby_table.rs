//! `lib/highball/development_server/option_table.rb`: the names of options and commands, for systems on which the gem has no
//! program.

use std::fmt::Write;

use crate::counterparts::COMMANDS;
use crate::form::Notation;
use crate::options::{options, Opt};

/// The widest line of Ruby code, in characters.
const WIDTH: usize = 120;

const BEGINNING: &str = "\
# frozen_string_literal: true

# Made from crates/config/src/options.rs by `just docs`; changes belong there.

module Highball
  module DevelopmentServer
";

const ENDING: &str = "
    # Options by how the command line names them.
    LONG = OPTIONS.to_h { |name, option| [\"--#{option[:long] || name.tr('_', '-')}\", name] }.freeze
    LETTERS = OPTIONS.filter_map { |name, option| [option[:letter], name] if option[:letter] }.to_h.freeze
  end
end
";

/// The text of that file.
pub fn ruby_table() -> String {
    let mut text = BEGINNING.to_owned();
    text.push_str("    # The commands of `highball`.\n    COMMANDS = %w[\n");
    text.push_str(&filled(&COMMANDS));
    text.push_str("    ].freeze\n");
    text.push_str(
        "\n    # The options by name. flag: the value may be left out; list: variables separate values by commas.\n    OPTIONS = {\n",
    );
    let rows: Vec<String> =
        options().map(|option| format!("      \"{}\" => {}", option.name, row(option))).collect();
    let _ = write!(text, "{}\n    }}.freeze\n", rows.join(",\n"));
    text + ENDING
}

/// The words in lines.
fn filled(words: &[&str]) -> String {
    let mut text = String::new();
    let mut line = String::from("     ");
    for word in words {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("     ");
        }
        line.push(' ');
        line.push_str(word);
    }
    text + &line + "\n"
}

/// What is not as the name lets expect.
fn row(option: &Opt) -> String {
    let mut facts = Vec::new();
    let own_long = option.name.replace('_', "-");
    if option.long() != own_long {
        facts.push(format!("long: \"{}\"", option.long()));
    }
    if let Some(letter) = option.letter() {
        facts.push(format!("letter: \"{letter}\""));
    }
    let variables: Vec<String> = option.variables().skip(1).collect();
    if !variables.is_empty() {
        facts.push(format!("variables: %w[{}]", variables.join(" ")));
    }
    match option.value.form().notation() {
        Notation::Flag => facts.push("flag: true".into()),
        Notation::List | Notation::Table => facts.push("list: true".into()),
        Notation::Text | Notation::Number | Notation::Switch | Notation::Entries => {}
    }
    if facts.is_empty() {
        return "{}".into();
    }
    format!("{{ {} }}", facts.join(", "))
}
