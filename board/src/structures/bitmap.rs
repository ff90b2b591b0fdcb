//! A set of numbers that finds the lowest number outside it quickly: each word of a level says
//! which words of the level below are full.

/// Words of [`Bitmap`] that are allocated together: a slot far off costs no more than these.
const BLOCK: usize = 16;

/// See the module's comment.
#[derive(Default)]
pub struct Bitmap {
    /// The first word: a small set needs no other.
    low: u64,
    /// All words, without the first one.
    blocks: Vec<Option<Box<[u64; BLOCK]>>>,
    levels: Vec<Vec<u64>>,
}

impl Bitmap {
    /// An empty set.
    pub const fn new() -> Self {
        Bitmap { low: 0, blocks: Vec::new(), levels: Vec::new() }
    }

    fn word(&self, at: usize) -> u64 {
        if at == 0 {
            return self.low;
        }
        let block = self.blocks.get(at / BLOCK).and_then(Option::as_ref);
        block.and_then(|block| block.get(at % BLOCK)).copied().unwrap_or(0)
    }

    /// A word, to change; `None` when its block is missing.
    fn word_mut(&mut self, at: usize) -> Option<&mut u64> {
        if at == 0 {
            return Some(&mut self.low);
        }
        self.blocks.get_mut(at / BLOCK)?.as_mut()?.get_mut(at % BLOCK)
    }

    fn add_block(&mut self, at: usize) {
        if at / BLOCK >= self.blocks.len() {
            self.blocks.resize_with(at / BLOCK + 1, || None);
        }
        if let Some(block) = self.blocks.get_mut(at / BLOCK) {
            block.get_or_insert_with(|| Box::new([0; BLOCK]));
        }
    }

    /// Adds a number.
    pub fn set(&mut self, number: usize) {
        let mut at = number / 64;
        if self.word_mut(at).is_none() {
            self.add_block(at);
        }
        let Some(word) = self.word_mut(at) else { return };
        *word |= 1 << (number % 64);
        if *word != u64::MAX {
            return;
        }
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let Some(words) = self.levels.get_mut(level) else { return };
            if at / 64 >= words.len() {
                words.resize(at / 64 + 1, 0);
            }
            let Some(word) = words.get_mut(at / 64) else { return };
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                return;
            }
            at /= 64;
            level += 1;
        }
    }

    /// Removes a number.
    pub fn clear(&mut self, number: usize) {
        let mut at = number / 64;
        let Some(word) = self.word_mut(at) else { return };
        let mut was_full = *word == u64::MAX;
        *word &= !(1 << (number % 64));
        for words in &mut self.levels {
            let Some(word) = words.get_mut(at / 64).filter(|_| was_full) else { return };
            was_full = *word == u64::MAX;
            *word &= !(1 << (at % 64));
            at /= 64;
        }
    }

    /// Whether the set has none of the `n` numbers from `first` on; both are divisible by 64.
    pub fn is_clear(&self, first: usize, n: usize) -> bool {
        (first / 64..(first + n) / 64).all(|at| self.word(at) == 0)
    }

    /// Frees what an empty set does not need.
    pub fn give_back(&mut self) {
        if !self.blocks.is_empty() {
            *self = Bitmap::default();
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().flatten().count() * std::mem::size_of::<[u64; BLOCK]>();
        let pointers = self.blocks.capacity() * std::mem::size_of::<usize>();
        blocks + pointers + self.levels.iter().map(|words| std::mem::size_of_val(&**words)).sum::<usize>()
    }

    /// The lowest number that it has not.
    pub fn first_clear(&self) -> usize {
        // From the top: the lowest word that is not full, then down into it.
        let mut at = match self.levels.last() {
            None => 0,
            Some(top) => match top.iter().enumerate().find(|(_, w)| **w != u64::MAX) {
                Some((i, w)) => i * 64 + w.trailing_ones() as usize,
                None => top.len() * 64,
            },
        };
        for words in self.levels.iter().rev().skip(1) {
            let word = words.get(at).copied().unwrap_or(0);
            at = at * 64 + word.trailing_ones() as usize;
        }
        at * 64 + self.word(at).trailing_ones() as usize
    }
}
