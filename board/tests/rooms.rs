//! The rooms of the code use each other as their comments say, and never in a circle.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms in a folder of sources: name, the words of its comment on what it uses, its files.
fn rooms(src: &Path) -> BTreeMap<String, (String, Vec<PathBuf>)> {
    let folders = fs::read_dir(src).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.join("mod.rs").exists());
    let named = folders.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
    let room = |(name, path): (String, PathBuf)| {
        let text = fs::read_to_string(path.join("mod.rs")).unwrap();
        let comment = text.lines().map_while(|line| line.strip_prefix("//!"));
        let comment: Vec<&str> = comment.collect();
        let at = comment.iter().position(|line| line.starts_with(" Uses "));
        let at = at.unwrap_or_else(|| panic!("{name}/mod.rs does not say which rooms it uses"));
        (name, (comment[at..].concat(), files(&path)))
    };
    named.map(room).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The rooms that the words name.
fn named(words: &str) -> BTreeSet<String> {
    words.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The first words behind `crate::` in a text; those of its tests do not count.
fn used(text: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let word = |rest: &str| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
    code.split("crate::").skip(1).map(word).collect()
}

fn check(src: &Path) {
    let rooms = rooms(src);
    assert!(rooms.len() > 3, "rooms in {}", src.display());
    for (name, (words, files)) in &rooms {
        let said = named(words);
        let used: BTreeSet<String> = files
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "rs"))
            .flat_map(|path| used(&fs::read_to_string(path).unwrap()))
            .filter(|other| other != name && rooms.contains_key(other))
            .collect();
        assert_eq!(said, used, "{name}/mod.rs says the first, its files use the second");
    }
    // Rooms whose rooms have all been passed are passed: nothing is left unless there is a circle.
    let mut left: BTreeMap<&str, BTreeSet<String>> =
        rooms.iter().map(|(name, (words, _))| (&name[..], named(words))).collect();
    while let Some(name) = left.iter().find(|(_, uses)| uses.iter().all(|u| !left.contains_key(&u[..]))) {
        let name = *name.0;
        left.remove(name);
    }
    assert!(left.is_empty(), "in a circle, or behind one: {left:?}");
}

#[test]
fn rooms_of_the_board_use_each_other_one_way() {
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
}

#[test]
fn rooms_of_the_module_use_each_other_one_way() {
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"));
}
