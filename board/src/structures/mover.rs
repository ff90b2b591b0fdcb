//! Moving values to better places in memory.

/// Decides which values move, and moves them: the server's defragmentation.
pub trait Mover {
    /// These bytes, in the same place or another.
    fn bytes(&mut self, bytes: Box<[u8]>) -> Box<[u8]>;
    /// This value, in the same place or another.
    fn value<T>(&mut self, value: Box<T>) -> Box<T>;
    /// These values, with the same capacity, in the same place or another.
    fn values<T>(&mut self, values: Vec<T>) -> Vec<T>;
    /// Whether to stop and continue at another time.
    fn is_tired(&mut self) -> bool;
}
