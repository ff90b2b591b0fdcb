//! Parts that few records and few boards have: a pointer, and no memory until something is written to
//! them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::Deserializer;

use crate::format::Written;
use crate::structures::allotted::allotted;

/// A part with a blank form, which is read where the part is missing.
pub trait Part: Default + 'static {
    /// The part before anything is written to it.
    const BLANK: &'static Self;
}

/// A part out of line, allocated when it is first written to.
#[derive(Clone)]
pub struct Lazy<T>(Option<Box<T>>);

impl<K: 'static, V: 'static> Part for BTreeMap<K, V> {
    const BLANK: &'static Self = &BTreeMap::new();
}

impl<T> Lazy<T> {
    /// A part to which nothing has been written.
    pub const fn new() -> Self {
        Lazy(None)
    }

    /// This part, allocated.
    pub fn holding(part: T) -> Self {
        Lazy(Some(Box::new(part)))
    }
}

impl<T: Part> Lazy<T> {
    /// The part, if it has been allocated.
    pub fn there(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Bytes that it takes now, without what it points to.
    pub fn allocated(&self) -> usize {
        self.0.as_deref().map_or(0, |part| allotted(std::mem::size_of_val(part)))
    }

    /// Writes to one of its fields; a blank value is written only over another value.
    pub fn set_text<V: for<'a> From<&'a [u8]>>(
        &mut self,
        field: impl FnOnce(&mut T) -> &mut Option<V>,
        value: Option<&[u8]>,
    ) {
        if value.is_some() || self.0.is_some() {
            *field(self) = value.map(V::from);
        }
    }

    /// Bytes that it takes, without what it points to; the same before and after a snapshot.
    pub fn part_bytes(&self) -> usize
    where
        T: PartialEq,
    {
        if **self == *T::BLANK {
            return 0;
        }
        std::mem::size_of::<T>()
    }

    pub(crate) fn boxed_mut(&mut self) -> &mut Option<Box<T>> {
        &mut self.0
    }
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Lazy(None)
    }
}

impl<T: Part + PartialEq> From<T> for Lazy<T> {
    fn from(part: T) -> Self {
        Lazy((part != *T::BLANK).then(|| Box::new(part)))
    }
}

impl<T: Part> Deref for Lazy<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::BLANK)
    }
}

impl<T: Part> DerefMut for Lazy<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(Box::default)
    }
}

impl<T: Part + PartialEq> PartialEq for Lazy<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Part + Eq> Eq for Lazy<T> {}

impl<T: Part + fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'a, T: Part + PartialEq + Written<'a>> Written<'a> for Lazy<T> {
    fn blank() -> Self {
        Lazy(None)
    }

    fn is_blank(&self) -> bool {
        (**self).is_blank()
    }

    fn write(&self, to: &mut Vec<u8>) {
        (**self).write(to);
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        T::read(from).map(Self::from)
    }

    #[cfg(test)]
    fn check_growth() {
        T::check_growth();
    }
}
