//! The words of a call.

use redis_module::raw;
use std::marker::PhantomData;

use crate::redis::ctx::Ctx;
use crate::redis::strings::{bytes_of, Key, ServerString};

/// The words of a call, the command's name first.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    argv: *const *mut raw::RedisModuleString,
    argc: usize,
    _life: PhantomData<&'a ()>,
}

/// About how many bytes a word takes beside its own.
const WORD: usize = 64;

/// Words that outlive their call.
pub struct KeptWords(Vec<Box<[u8]>>);

impl KeptWords {
    /// Copies the words of a call.
    pub fn copy(words: Words<'_>) -> KeptWords {
        KeptWords((0..words.len()).filter_map(|at| words.get(at)).map(Box::from).collect())
    }

    /// How many bytes they have, and about how many it takes to keep them.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|word| word.len() + WORD).sum()
    }

    /// Calls `work` with the words, as those of a call.
    pub fn read<R>(&self, ctx: Ctx, work: impl FnOnce(Words<'_>) -> R) -> R {
        let strings: Vec<_> = self.0.iter().map(|word| ctx.string(word)).collect();
        let argv: Vec<_> = strings.iter().map(ServerString::raw).collect();
        work(Words { argv: argv.as_ptr(), argc: argv.len(), _life: PhantomData })
    }
}

impl<'a> Words<'a> {
    /// Wraps the words that the server passes.
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

    /// The bytes of one word.
    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        // SAFETY: the string lives for `'a`, as `new` was promised.
        self.string(at).map(|string| unsafe { bytes_of(string) })
    }

    /// One word as a key, which must not outlive the call.
    pub fn key(&self, at: usize) -> Option<Key<'a>> {
        // SAFETY: the string lives as long as the call, beyond which no key is kept.
        self.string(at).map(|string| unsafe { Key(ServerString::borrowed(string)) })
    }
}
