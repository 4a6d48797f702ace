//! `docs/configuration.md`, the man pages, the completions and a table for Ruby are what the table of options makes.

use clap_complete::{generate, Shell};
use clap_mangen::Man;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn of_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn is_to_be_written() -> bool {
    std::env::var_os("HIGHBALL_BLESS").is_some()
}

fn check(path: &str, text: &[u8]) {
    let file = of_project(path);
    let is_current = || fs::read(&file).unwrap_or_default() == text;
    if is_to_be_written() && !is_current() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        println!("wrote {path}");
    }
    assert!(is_current(), "{path} is out of date: run `just docs`");
}

#[test]
fn the_manual_is_up_to_date() {
    check("docs/configuration.md", highball_config::manual().as_bytes());
}

#[test]
fn the_table_for_ruby_is_up_to_date() {
    let text = highball_config::ruby_table();
    check("lib/highball/development_server/option_table.rb", text.as_bytes());
}

/// The table of restrictions, between two marks of the page.
#[test]
fn the_page_of_restrictions_has_all() {
    let page = fs::read_to_string(of_project("docs/restrictions.md")).unwrap();
    let (before, rest) = page.split_once("<!-- restrictions:").unwrap();
    let (mark, rest) = rest.split_once("-->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of restrictions -->").unwrap();
    let table = highball_config::restrictions();
    let text = format!("{before}<!-- restrictions:{mark}-->\n{table}<!-- end of restrictions -->{after}");
    check("docs/restrictions.md", text.as_bytes());
}

/// `highball.1`, and a page for each command.
fn man_pages() -> BTreeMap<String, Vec<u8>> {
    let mut highball = highball_config::command().disable_help_subcommand(true);
    highball.build();
    let mut pages = BTreeMap::new();
    for command in std::iter::once(&highball).chain(highball.get_subcommands()) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let mut text = Vec::new();
        let man = Man::new(command.clone()).title(name.to_owned()).source("Highball").date("");
        if name == "highball" {
            render_overview(&man, &mut text);
        } else {
            render_command(command, &man, &mut text);
        }
        pages.insert(format!("{name}.1"), text);
    }
    pages
}

/// The page of all of Highball: what people look for first, then every option.
fn render_overview(man: &Man, text: &mut Vec<u8>) {
    man.render_title(text).unwrap();
    man.render_name_section(text).unwrap();
    text.extend(highball_config::man_beginning().bytes());
    man.render_subcommands_section(text).unwrap();
    man.render_options_section(text).unwrap();
    man.render_version_section(text).unwrap();
}

/// A synopsis names at most this number of options: the pages of `serve` and others have every option of the server.
const NAMED: usize = 20;

/// The page of a command.
fn render_command(command: &clap::Command, man: &Man, text: &mut Vec<u8>) {
    man.render_title(text).unwrap();
    man.render_name_section(text).unwrap();
    if command.get_opts().count() > NAMED {
        let name = command.get_bin_name().unwrap_or_default();
        let arguments: String = command
            .get_positionals()
            .map(|one| match one.is_required_set() {
                true => format!(" \\fI{}\\fR", one.get_id()),
                false => format!(" [\\fI{}\\fR]", one.get_id()),
            })
            .collect();
        text.extend(format!(".SH SYNOPSIS\n\\fB{name}\\fR [OPTIONS]{arguments}\n").bytes());
    } else {
        man.render_synopsis_section(text).unwrap();
    }
    man.render_description_section(text).unwrap();
    man.render_options_section(text).unwrap();
    if let Some(environment) = command.get_after_help() {
        text.extend(environment_section(&environment.to_string()).bytes());
    }
}

/// `Environment:`, and lines such as `  NAME  What it is.`, which may go on.
fn environment_section(help: &str) -> String {
    let variables = help.strip_prefix("Environment:\n").expect("only the environment follows the options");
    let mut text = String::from(".SH ENVIRONMENT\n");
    for line in variables.lines() {
        match line.trim_start().split_once("  ") {
            Some((name, what)) => text += &format!(".TP\n\\fB{name}\\fR\n{what}\n"),
            None => text += &format!("{}\n", line.trim_start()),
        }
    }
    text
}

#[test]
fn the_man_pages_are_up_to_date() {
    let pages = man_pages();
    for (name, text) in &pages {
        check(&format!("share/man/man1/{name}"), text);
    }
    for found in fs::read_dir(of_project("share/man/man1")).unwrap() {
        let found = found.unwrap();
        if !pages.contains_key(found.file_name().to_str().unwrap()) {
            assert!(is_to_be_written(), "{:?} is no command's: run `just docs`", found.path());
            fs::remove_file(found.path()).unwrap();
        }
    }
}

#[test]
fn the_completions_are_up_to_date() {
    for (shell, name) in
        [(Shell::Bash, "highball.bash"), (Shell::Zsh, "_highball"), (Shell::Fish, "highball.fish")]
    {
        let mut text = Vec::new();
        generate(shell, &mut highball_config::command(), "highball", &mut text);
        check(&format!("share/completions/{name}"), &text);
    }
}
