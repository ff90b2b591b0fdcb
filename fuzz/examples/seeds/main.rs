//! Writes the seeds of the fuzz targets: what a board with something of everything comes to, and the
//! sessions of commands.md.
//! `cargo run --example seeds`, in `fuzz/`.

use std::fs;
use std::io::Result;
use std::path::Path;

use board_fuzz::choices::Choices;
use board_fuzz::input::Input;
use board_fuzz::whole;

mod ends;
mod sessions;

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

/// An input of parts, and some choices of what is done then.
fn after<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let choices: Vec<u8> = (0..96).map(|n| board::mix(n) as u8).collect();
    Input { choices: Choices(&choices), parts: parts.into_iter().collect() }.bytes()
}

fn main() -> Result<()> {
    let w = whole::full();
    let parts = whole::parts(&w.board);
    write("snapshot", "full", &after(parts.iter().map(|part| &part[..])))?;
    for (name, bytes) in ends::snapshots() {
        write("snapshot", name, &after([&bytes[..]]))?;
    }
    for to in (20..=w.sent.len()).step_by(20) {
        write("effects", &format!("first-{to:03}"), &after(w.sent[..to].iter().map(|batch| &batch[..])))?;
    }
    write("effects", "last-token", &after(ends::batches().iter().map(|batch| &batch[..])))?;
    for (n, text) in TEXTS.iter().enumerate() {
        write("texts", &format!("{n}"), text)?;
    }
    for (name, input) in sessions::inputs(&fs::read_to_string("../commands.md")?) {
        write("commands", &name, &input)?;
    }
    for (name, input) in ends::sessions() {
        write("commands", name, &input)?;
    }
    Ok(())
}
