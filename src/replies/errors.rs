//! Errors: why a command ends without its reply.

use board::{clean, Refusal};

use crate::redis::keyspace::WrongType;

/// How many bytes of a client's word an error shows.
const SHOWN: usize = 64;

/// Why a command has failed; it has written no reply yet.
#[derive(Debug)]
pub enum CommandError {
    /// The arguments are invalid.
    Syntax(String),
    /// No option has this word; and where it is.
    Unexpected(String, String),
    /// The board refuses.
    Refused(Refusal),
    /// The key holds another type.
    WrongType,
    /// The server has reached `maxmemory`, and this call would add to it.
    Full,
    /// The server is a replica.
    Replica,
}

/// The outcome of a command; when it is `Ok`, the reply has been written.
pub type Done = Result<(), CommandError>;

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        CommandError::Refused(refusal)
    }
}

impl From<WrongType> for CommandError {
    fn from(_: WrongType) -> Self {
        CommandError::WrongType
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandError::Syntax(text) => write!(f, "ERR {text}"),
            CommandError::Unexpected(word, place) => write!(f, "ERR syntax error near '{word}'{place}"),
            CommandError::Refused(refusal) => refusal.fmt(f),
            CommandError::WrongType => {
                f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            CommandError::Replica => {
                f.write_str("READONLY this server is a replica: its boards follow its primary alone")
            }
            CommandError::Full => f.write_str("OOM command not allowed when used memory > 'maxmemory'."),
        }
    }
}

/// An error for invalid arguments.
pub fn syntax<T>(text: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::Syntax(text.into()))
}

/// An error for a word that no option has.
pub fn unexpected<T>(word: &[u8]) -> Result<T, CommandError> {
    Err(CommandError::Unexpected(shown(word), String::new()))
}

/// An error for an unknown name, with the known name that it resembles, or all of them.
pub fn unknown<'n, T>(
    what: &str,
    name: &[u8],
    known: impl IntoIterator<Item = &'n str>,
) -> Result<T, CommandError> {
    let name = shown(name);
    let known: Vec<String> = known.into_iter().map(str::to_ascii_lowercase).collect();
    syntax(match nearest(&name, known.iter().map(|known| &**known)) {
        Some(near) => format!("unknown {what} '{name}': did you mean '{near}'?"),
        None => format!("unknown {what} '{name}': it must be one of {}", known.join(", ")),
    })
}

/// A client's word as an error shows it.
fn shown(word: &[u8]) -> String {
    clean(word.get(..4 * SHOWN).unwrap_or(word)).chars().take(SHOWN).collect()
}

impl CommandError {
    /// The option that the client probably meant, of those that are allowed there.
    pub fn hint(&self, options: impl FnOnce() -> Vec<String>) -> Option<String> {
        let CommandError::Unexpected(word, _) = self else { return None };
        nearest(word, options().iter().map(|option| &**option)).map(str::to_string)
    }
}

/// The known name with the most similar spelling; `None` when the name is known, or resembles none.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_ascii_lowercase();
    let far = |other: &str| strsim::osa_distance(&name, &other.to_ascii_lowercase());
    let (distance, near) = known.map(|other| (far(other), other)).min_by_key(|(distance, _)| *distance)?;
    // About a third of the letters may be wrong.
    (1..=(name.len().max(near.len()) + 1) / 3).contains(&distance).then_some(near)
}
