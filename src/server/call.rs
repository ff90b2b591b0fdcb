//! One call of a command.

use redis_module::raw;
use std::marker::PhantomData;

use crate::args::Args;
use crate::server::ctx::{bytes_of, Ctx, Key};

/// The words of a call, the command's name first.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    argv: *const *mut raw::RedisModuleString,
    argc: usize,
    _life: PhantomData<&'a ()>,
}

impl<'a> Words<'a> {
    /// The words that the server passes.
    ///
    /// # Safety
    /// `argv` points to `argc` strings that live for `'a`.
    pub unsafe fn new(argv: *mut *mut raw::RedisModuleString, argc: i32) -> Self {
        Words { argv, argc: argc.max(0) as usize, _life: PhantomData }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.argc
    }

    fn string(&self, at: usize) -> Option<*mut raw::RedisModuleString> {
        // SAFETY: within the bounds that `new` was promised.
        (at < self.argc).then(|| unsafe { *self.argv.add(at) })
    }

    /// The bytes of one.
    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        // SAFETY: the string lives for `'a`, as `new` was promised.
        self.string(at).map(|string| unsafe { bytes_of(string) })
    }
}

/// One call: context and arguments.
pub struct Call<'a> {
    /// The server's context.
    pub ctx: Ctx<'a>,
    /// The arguments after the key, or after the name of a command without key.
    pub args: Args<'a>,
    words: Words<'a>,
    key_at: usize,
}

impl<'a> Call<'a> {
    pub(super) fn new(ctx: Ctx<'a>, words: Words<'a>, key_at: usize, args_at: usize) -> Self {
        Call { ctx, args: Args::new(words, args_at), words, key_at }
    }

    /// The command, as the client named it.
    pub fn command(&self) -> &'a [u8] {
        self.words.get(0).unwrap_or_default()
    }

    /// All words from the board's key on, as keys.
    pub fn keys(&self) -> impl Iterator<Item = Key<'a>> + '_ {
        (self.key_at..self.words.len()).filter_map(|at| self.key_of(at))
    }

    /// The board's key. Only for commands that have one, where the server sees to it that it is there.
    pub fn key(&self) -> Key<'a> {
        self.key_of(self.key_at).expect("the arity of the command covers its key")
    }

    fn key_of(&self, at: usize) -> Option<Key<'a>> {
        // SAFETY: the string lives as long as the call, beyond which no key is kept.
        self.words.string(at).map(|string| unsafe { Key::borrowed(string) })
    }
}
