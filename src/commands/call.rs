//! One call of a command.

use crate::commands::args::Args;
use crate::redis::ctx::Ctx;
use crate::redis::park::Client;
use crate::redis::strings::Key;
use crate::redis::words::{KeptWords, Words};

/// One call: context and arguments.
pub struct Call<'a> {
    /// The server's context.
    pub ctx: Ctx<'a>,
    /// The arguments after the key, or after the name of a command without a key.
    pub args: Args<'a>,
    words: Words<'a>,
    key_at: usize,
}

impl<'a> Call<'a> {
    pub(crate) fn new(ctx: Ctx<'a>, words: Words<'a>, key_at: usize, args_at: usize) -> Self {
        Call { ctx, args: Args::new(words, args_at), words, key_at }
    }

    /// The command, as the client named it.
    pub fn command(&self) -> &'a [u8] {
        self.words.get(0).unwrap_or_default()
    }

    /// The words of the call, which names one key, to be read again later.
    pub fn keep(&self) -> KeptCall {
        KeptCall { words: KeptWords::copy(self.words), args_at: self.key_at + 1 }
    }

    /// All words from the board's key on, as keys.
    pub fn keys(&self) -> impl Iterator<Item = Key<'a>> + '_ {
        (self.key_at..self.words.len()).filter_map(|at| self.words.key(at))
    }

    /// The board's key. Only for commands with a key, whose presence the server checks.
    pub fn key(&self) -> Key<'a> {
        self.words.key(self.key_at).expect("the arity of the command covers its key")
    }

    /// The client, ready to be parked.
    pub fn client(&self) -> Client<'a> {
        Client { ctx: self.ctx, board: self.key(), command: self.command() }
    }
}

/// What a call says, kept beyond the call.
pub struct KeptCall {
    words: KeptWords,
    args_at: usize,
}

impl KeptCall {
    /// Calls `work` with the arguments after the key.
    pub fn read<R>(&self, ctx: Ctx, work: impl FnOnce(&mut Args<'_>) -> R) -> R {
        self.words.read(ctx, |words| work(&mut Args::new(words, self.args_at)))
    }

    /// How many bytes it keeps.
    pub fn bytes(&self) -> usize {
        self.words.bytes()
    }
}
