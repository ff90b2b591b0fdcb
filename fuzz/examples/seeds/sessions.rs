//! The sessions of commands.md as inputs of the target `commands`: the bytes that make it send
//! these very words.

/// An input says so: a command, word by word, of the first client.
const PLAIN: [u8; 3] = [160, 0, 0];
/// In place of a word: the last id, the last token that a reply told.
const LAST_ID: u8 = 200;
const LAST_TOKEN: u8 = 216;
/// Longer words have no place.
const LONGEST: usize = 199;
/// Time passes: seconds, up to 16.
const SECONDS: [u8; 2] = [180, 3];

/// The inputs, by the heading of the session and its number there.
pub fn inputs(page: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<(String, Vec<u8>)> = Vec::new();
    let (mut inside, mut heading, mut n) = (false, String::new(), 0);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line.starts_with("```redis-cli");
            if inside {
                n += 1;
                inputs.push((format!("{heading}-{n}"), Vec::new()));
            }
        } else if line.starts_with('#') && !inside {
            let words = line.trim_start_matches(['#', ' ']).to_ascii_lowercase();
            (heading, n) = (words.replace(|c: char| !c.is_ascii_alphanumeric(), "-"), 0);
        }
        let command = line.strip_prefix("> ").filter(|_| inside);
        if let (Some(command), Some((_, input))) = (command, inputs.last_mut()) {
            input.extend(bytes(&words(command)));
        }
    }
    inputs.retain(|(_, input)| !input.is_empty());
    inputs
}

/// A command's bytes.
pub fn bytes(words: &[String]) -> Vec<u8> {
    match words {
        [clock, verb, ms] if clock == "JOB.CLOCK" && verb == "ADVANCE" => {
            let seconds = ms.parse::<i64>().unwrap_or(0).clamp(1_000, 16_000) / 1_000;
            [&SECONDS[..], &[(seconds - 1) as u8]].concat()
        }
        _ if words.len() > 255 || words.iter().any(|word| word.len() > LONGEST) => Vec::new(),
        _ => {
            let mut bytes = [&PLAIN[..], &[words.len() as u8]].concat();
            for word in words {
                match word.as_str() {
                    token if token.starts_with("<token") => bytes.push(LAST_TOKEN),
                    id if id.starts_with('<') => bytes.push(LAST_ID),
                    _ => {
                        bytes.push(word.len() as u8);
                        bytes.extend(word.bytes());
                    }
                }
            }
            bytes
        }
    }
}

/// The words of a line, quoted or not.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '\'' | '"' => rest[1..].split_once(first).unwrap_or((&rest[1..], "")),
            _ => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_string());
        rest = after.trim_start();
    }
    words
}
