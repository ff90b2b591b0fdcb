//! What records are written to: a reply, element by element, or one string of MessagePack.

use rmp::encode;

use crate::redis::cell::MainCell;
use crate::redis::reply::Reply;

/// What records are written to.
pub trait Writes {
    /// A name, or a word of ours.
    fn text(&mut self, text: &str);
    /// Any bytes.
    fn bytes(&mut self, bytes: &[u8]);
    /// A whole number.
    fn int(&mut self, n: i64);
    /// A number.
    fn double(&mut self, n: f64);
    /// Nothing.
    fn null(&mut self);
    /// The head of a list of `n` values, which follow.
    fn array(&mut self, n: usize);
    /// The head of a map of `n` names and values, which follow.
    fn map(&mut self, n: usize);
}

impl Writes for Reply<'_> {
    fn text(&mut self, text: &str) {
        Reply::text(*self, text);
    }
    fn bytes(&mut self, bytes: &[u8]) {
        Reply::bytes(*self, bytes);
    }
    fn int(&mut self, n: i64) {
        Reply::int(*self, n);
    }
    fn double(&mut self, n: f64) {
        Reply::double(*self, n);
    }
    fn null(&mut self) {
        Reply::null(*self);
    }
    fn array(&mut self, n: usize) {
        Reply::array(*self, n);
    }
    fn map(&mut self, n: usize) {
        Reply::map(*self, n);
    }
}

/// MessagePack: names of fields are str, all else that is text is bin, since it may be any bytes.
#[derive(Default)]
pub struct Pack(Vec<u8>);

/// Writing to memory cannot fail.
macro_rules! pack {
    ($write:ident($pack:expr, $value:expr)) => {{
        let done = encode::$write(&mut $pack.0, $value);
        debug_assert!(done.is_ok());
    }};
}

impl Writes for Pack {
    fn text(&mut self, text: &str) {
        pack!(write_str(self, text));
    }
    fn bytes(&mut self, bytes: &[u8]) {
        pack!(write_bin(self, bytes));
    }
    fn int(&mut self, n: i64) {
        pack!(write_sint(self, n));
    }
    fn double(&mut self, n: f64) {
        pack!(write_f64(self, n));
    }
    fn null(&mut self) {
        let done = encode::write_nil(&mut self.0);
        debug_assert!(done.is_ok());
    }
    fn array(&mut self, n: usize) {
        pack!(write_array_len(self, n as u32));
    }
    fn map(&mut self, n: usize) {
        pack!(write_map_len(self, n as u32));
    }
}

/// The buffer of the last packed records, to be reused.
static PACK: MainCell<Pack> = MainCell::new(Pack(Vec::new()));
/// A longer buffer is not kept.
const KEPT: usize = 1 << 20;

/// Replies with what `write` packs, as one string.
pub fn packed(reply: Reply, write: impl FnOnce(&mut Pack)) {
    let mut pack = PACK.with(std::mem::take);
    pack.0.clear();
    write(&mut pack);
    reply.bytes(&pack.0);
    if pack.0.capacity() <= KEPT {
        PACK.with(|place| *place = pack);
    }
}
