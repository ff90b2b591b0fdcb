//! Why a command ends without its reply.

use board::{clean, Refusal};

use crate::server::keyspace::WrongType;

/// Ends a command; nothing has been replied yet.
#[derive(Debug)]
pub enum Fault {
    /// Arguments that cannot be understood.
    Syntax(String),
    /// The board refuses.
    Refused(Refusal),
    /// The key holds something else.
    WrongType,
    /// The server has reached `maxmemory`, and this call would add.
    Full,
}

/// A command's outcome; its reply has been written when it is `Ok`.
pub type Done = Result<(), Fault>;

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Fault::Refused(refusal)
    }
}

impl From<WrongType> for Fault {
    fn from(_: WrongType) -> Self {
        Fault::WrongType
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Syntax(text) => write!(f, "ERR {text}"),
            Fault::Refused(refusal) => refusal.fmt(f),
            Fault::WrongType => {
                f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Fault::Full => f.write_str("OOM command not allowed when used memory > 'maxmemory'."),
        }
    }
}

/// An argument that cannot be understood.
pub fn syntax<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Syntax(text.into()))
}

/// A word that no option has.
pub fn unexpected<T>(word: &[u8]) -> Result<T, Fault> {
    let text: String = clean(word).chars().take(64).collect();
    syntax(format!("syntax error near '{text}'"))
}
