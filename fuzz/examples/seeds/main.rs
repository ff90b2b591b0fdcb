//! Writes the seeds of the fuzz targets: what a board with something of everything comes to, and the
//! sessions of commands.md.
//! `cargo run --example seeds`, in `fuzz/`.

use std::fs;
use std::io::Result;
use std::path::Path;

mod sessions;
#[path = "../../../board/tests/life/site.rs"]
mod site;
#[path = "../../../board/tests/hostile/whole.rs"]
mod whole;
#[path = "../../../board/tests/world/mod.rs"]
mod world;

const TEXTS: [&[u8]; 3] = [
    b"1.2.r.0.17.3\0ready\0id\0queue\0name\0tag\0user\0group\0key\0*/5 * * * *\0Europe/Rome",
    b"\0\0\xff\0q\0\0t\0\0g\0k\00 30 9 L * FRI#L\0UTC",
    b"\0\0@s@1\0\0\0\0\0\0\0@monthly\0",
];

fn write(target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = Path::new("seeds").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

fn main() -> Result<()> {
    let w = whole::full();
    write("snapshot", "full", &whole::parts(&w.board).concat())?;
    let marked = whole::marked().board;
    let end = |name: &str, from, to| write("snapshot", name, &whole::with_number(&marked, from, to));
    end("last-revision", marked.revision(), (1 << 48) - 2)?;
    end("last-token", marked.token(), (1 << 53) - 40)?;
    let batches = |from: usize, to: usize| -> Vec<u8> {
        let framed = |batch: &Vec<u8>| [&(batch.len() as u16).to_le_bytes()[..], batch].concat();
        w.sent[from..to].iter().flat_map(framed).collect()
    };
    for to in (20..=w.sent.len()).step_by(20) {
        write("effects", &format!("first-{to:03}"), &batches(0, to))?;
    }
    for (n, text) in TEXTS.iter().enumerate() {
        write("texts", &format!("{n}"), text)?;
    }
    for (name, input) in sessions::inputs(&fs::read_to_string("../commands.md")?) {
        write("commands", &name, &input)?;
    }
    Ok(())
}
