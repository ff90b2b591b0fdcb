//! Moving values to better places in memory.

/// Who knows where memory is better used.
pub trait Mover {
    /// These bytes, here or elsewhere.
    fn bytes(&mut self, bytes: Box<[u8]>) -> Box<[u8]>;
    /// This value, here or elsewhere.
    fn value<T>(&mut self, value: Box<T>) -> Box<T>;
    /// These values, with the same capacity, here or elsewhere.
    fn values<T>(&mut self, values: Vec<T>) -> Vec<T>;
    /// Whether to go on at another time.
    fn is_tired(&mut self) -> bool;
}
