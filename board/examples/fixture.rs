//! Writes a fixture's log: `cargo run -p board --example fixture -- folder`, as `make fixtures`
//! does. The same code gives the same bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::fs;
use std::io::Result;
use std::path::PathBuf;

#[path = "../tests/fixtures/scenario.rs"]
mod scenario;
#[path = "../tests/life/site.rs"]
mod site;
#[path = "../tests/hostile/whole.rs"]
mod whole;
#[path = "../tests/world/mod.rs"]
mod world;

fn command(words: [&[u8]; 3]) -> Vec<u8> {
    let word = |word: &[u8]| [format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat();
    [b"*3\r\n".to_vec(), words.map(word).concat()].concat()
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let w = scenario::made();
    let log: Vec<u8> = w.sent.iter().flat_map(|batch| command([b"JOB.APPLY", b"board", batch])).collect();
    let tags: Vec<String> = w.tags.iter().map(u8::to_string).collect();
    let facts = [
        format!("version {}", env!("CARGO_PKG_VERSION")),
        format!("digest {:032x}", w.board.digest()),
        format!("now {}", w.now),
        format!("revision {}", w.board.revision()),
        format!("effects {}", tags.join(" ")),
    ];
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("effects.aof"), log)?;
    fs::write(folder.join("facts"), facts.join("\n") + "\n")
}
