//! Reads commands.md, so that the reference is the one place that says what a command is.
//!
//! It writes a `Spec` for each command and subcommand: name, arity, summary, complexity, version and
//! syntax. `src/commands` includes the file and adds what only the server asks: flags and key.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// The values of a `Spec` that the page has.
struct Entry<'a> {
    name: &'a str,
    sub: &'a str,
    summary: String,
    complexity: &'a str,
    since: &'a str,
    syntax: &'a str,
    internal: bool,
}

fn main() {
    // From where Cargo runs this, so that a copied target folder looks at its own copy.
    let mut folders =
        std::iter::successors(Some(String::new()), |folder| Some(format!("../{folder}"))).take(9);
    let path =
        folders.find_map(|folder| Some(folder + "commands.md").filter(|path| Path::new(path).exists()));
    let path = path.expect("commands.md in the folder of Cargo.toml");
    println!("cargo::rerun-if-changed={path}");
    let page = fs::read_to_string(path).expect("commands.md");
    let mut specs = String::new();
    for section in page.split("\n### ").skip(1) {
        let section = section.split("\n## ").next().unwrap_or(section);
        match section.split_once('\n').expect("a heading and its text") {
            ("Internal commands", text) => internal(text, &mut specs),
            (name, text) if name.starts_with("JOB.") => command(name, text, &page, &mut specs),
            _ => {}
        }
    }
    let folder = env::var("OUT_DIR").expect("the folder for what is generated");
    fs::write(Path::new(&folder).join("reference.rs"), specs).expect("room for reference.rs");
}

/// What stands between two texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let inside = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    inside.unwrap_or_else(|| panic!("commands.md lacks '{before} … {after}' in: {text:.80}")).0
}

/// A text as a summary: it begins with a capital, has no marks and ends with a full stop.
fn sentence(text: &str) -> String {
    let text = text.replace('`', "");
    text[..1].to_uppercase() + text[1..].trim_end_matches('.') + "."
}

/// The section of a command, or of a command with subcommands.
fn command(name: &str, text: &str, page: &str, specs: &mut String) {
    let row = between(page, &format!("| [{name}]("), "\n");
    let summary = sentence(between(row, ") | ", " |"));
    let complexity = between(text, "**Complexity** ", " · ");
    let since = between(text, "**Since** ", "\n");
    let lines = between(text, "```syntax\n", "\n```").replace("\n  ", " ");
    let entry = Entry { name, sub: "", summary, complexity, since, syntax: "", internal: false };
    if !lines.ends_with(" HELP") {
        let syntax = lines.strip_prefix(name).expect("the syntax of the heading's command");
        return write(Entry { syntax, ..entry }, specs);
    }
    for line in lines.lines().filter(|line| !line.ends_with(" HELP")) {
        let mut words = line.splitn(3, ' ');
        let (_, sub, syntax) =
            (words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let told = between(text, &format!("\n- `{sub}` "), "\n");
        let summary = sentence(told.split(". ").next().unwrap_or(told));
        write(Entry { sub, summary, syntax, ..entry }, specs);
    }
    write(entry, specs);
}

/// The table of the commands that are not for clients.
fn internal(text: &str, specs: &mut String) {
    for row in text.lines().filter(|line| line.starts_with("| `JOB.")) {
        let mut cells = row.trim_matches(['|', ' ']).split(" | ");
        let mut cell = || cells.next().unwrap_or_else(|| panic!("commands.md lacks a cell: {row}"));
        let (call, summary, complexity) = (cell().trim_matches('`'), cell(), cell());
        let (name, syntax) = call.split_once(' ').unwrap_or((call, ""));
        let summary = format!("Internal: {summary}.");
        write(Entry { name, sub: "", summary, complexity, since: "0.2.0", syntax, internal: true }, specs);
    }
}

fn write(entry: Entry<'_>, specs: &mut String) {
    let Entry { name, sub, summary, complexity, since, syntax, internal } = entry;
    let syntax = syntax.trim_start();
    let full = format!("{name} {sub}");
    let full = full.trim_end();
    let sub = (!sub.is_empty()).then(|| sub.to_lowercase());
    // The server asks of a command with subcommands only that one is named.
    let is_parent = sub.is_none() && syntax.is_empty();
    let (least, more) = if is_parent { (1, true) } else { words(&mut tokens(syntax)) };
    let arity = (least + full.split(' ').count() as i32) * if more { -1 } else { 1 };
    let (constant, name) = (full.replace(['.', ' '], "_"), name.to_lowercase());
    let many_keys = syntax.starts_with("[board");
    writeln!(
        specs,
        "/// `{full}`.\npub const {constant}: Spec = Spec {{ name: {name:?}, sub: {sub:?}, arity: {arity}, \
         many_keys: {many_keys}, summary: {summary:?}, complexity: {complexity:?}, since: {since:?}, \
         syntax: {syntax:?}, internal: {internal}, ..Spec::NONE }};"
    )
    .expect("room in memory");
}

/// The words of a line of syntax and its brackets.
fn tokens(syntax: &str) -> impl Iterator<Item = &str> {
    syntax.split_inclusive([' ', '[', ']', '<', '>', '|']).flat_map(|part| {
        let (word, mark) =
            part.split_at(part.len() - part.ends_with([' ', '[', ']', '<', '>', '|']) as usize);
        [word, mark.trim()]
    })
}

/// The fewest words that a line of syntax stands for up to the end of a bracket, and whether it may stand for more.
fn words(tokens: &mut dyn Iterator<Item = &str>) -> (i32, bool) {
    let (mut least, mut count, mut more) = (i32::MAX, 0, false);
    while let Some(token) = tokens.next() {
        match token {
            "" => {}
            "]" | ">" => break,
            "[" => {
                words(tokens);
                more = true;
            }
            "<" => {
                let (inside, open) = words(tokens);
                count += inside;
                more |= open;
            }
            "|" => {
                least = least.min(count);
                count = 0;
                more = true;
            }
            _ => count += 1,
        }
    }
    (least.min(count), more)
}
