//! Small immutable byte strings.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// Bytes from a client: an id, a name, a payload, a text. Never assumed to be UTF-8.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteString(Box<[u8]>);

impl ByteString {
    pub(crate) fn boxed_mut(&mut self) -> &mut Box<[u8]> {
        &mut self.0
    }
}

impl From<&[u8]> for ByteString {
    fn from(bytes: &[u8]) -> Self {
        ByteString(bytes.into())
    }
}

impl Deref for ByteString {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for ByteString {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}
