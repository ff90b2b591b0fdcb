//! How effects and snapshots are written down, so that both can grow.
//!
//! It is MessagePack. A struct is a map from the numbers of its fields to their values. Each
//! field has a value that stands for nothing, and is written only when it has another: so a
//! version may add fields, and reads what was written before it; and a struct in which nothing
//! new is used is one that an older version reads. A number is never used again. Whoever meets
//! a number that it does not know refuses the whole: nothing is guessed.

use std::borrow::Cow;

use rmp::{decode, encode, Marker};

use crate::bin::Bin;

/// Bytes that this version cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// A value that is written down. Those of a reader's lifetime refer to what is read.
pub(crate) trait Written<'a>: Sized {
    /// The value that stands for nothing.
    fn blank() -> Self;
    /// Whether it is that.
    fn is_blank(&self) -> bool;
    /// Writes it behind what is there.
    fn write(&self, to: &mut Vec<u8>);
    /// Reads one and moves on behind it.
    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable>;

    /// Checks of every struct in it that it may grow: see [`tests::may_grow`].
    #[cfg(test)]
    fn check_growth() {}
}

/// Begins a map whose entries are not counted yet.
pub(crate) fn open_map(to: &mut Vec<u8>) -> usize {
    to.push(0x80);
    to.len() - 1
}

/// Notes how many entries have been written to a map.
#[inline]
pub(crate) fn close_map(to: &mut Vec<u8>, at: usize, entries: u8) {
    match to.get_mut(at) {
        Some(marker) if entries < 16 => *marker |= entries,
        _ => drop(to.splice(at..=at, [0xde, 0, entries])),
    }
}

/// Writes a map of numbers that rise.
pub(crate) fn write_map<'a, V: Written<'a>>(to: &mut Vec<u8>, all: impl Iterator<Item = (u8, V)>) {
    let map = open_map(to);
    let mut entries = 0;
    for (number, value) in all {
        number.write(to);
        value.write(to);
        entries += 1;
    }
    close_map(to, map, entries);
}

/// Reads a map by calling `entry` with the number of each field, which must rise.
#[inline]
pub(crate) fn read_map<'a>(
    from: &mut &'a [u8],
    mut entry: impl FnMut(u8, &mut &'a [u8]) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let mut last = None;
    for _ in 0..decode::read_map_len(from).or(Err(Unreadable))? {
        let number = u8::read(from)?;
        if last.replace(number).is_some_and(|last| last >= number) {
            return Err(Unreadable);
        }
        entry(number, from)?;
    }
    Ok(())
}

/// Defines a struct that is written down: `number name: type`, and `= value` where a value
/// other than the type's own stands for nothing. In the order of the numbers, from 1.
macro_rules! written {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        written! { @struct 'a [$name] [$(#[$meta])* $vis struct $name] $($fields)* }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident<$life:lifetime> { $($fields:tt)* }) => {
        written! { @struct $life [$name<$life>] [$(#[$meta])* $vis struct $name<$life>] $($fields)* }
    };
    (@struct $life:lifetime [$($name:tt)*] [$($head:tt)*]
        $($(#[$doc:meta])* $number:literal $vis:vis $field:ident: $type:ty $(= $blank:expr)?,)*
    ) => {
        $($head)* { $($(#[$doc])* $vis $field: $type,)* }

        impl<$life> $crate::format::Written<$life> for $($name)* {
            fn blank() -> Self {
                Self { $($field: written!(@blank $($blank)?),)* }
            }

            fn is_blank(&self) -> bool {
                $(written!(@is_blank self.$field $(, $blank)?))&&*
            }

            fn write(&self, to: &mut Vec<u8>) {
                let map = $crate::format::open_map(to);
                let mut entries = 0;
                $(if !written!(@is_blank self.$field $(, $blank)?) {
                    to.push($number);
                    $crate::format::Written::write(&self.$field, to);
                    entries += 1;
                })*
                $crate::format::close_map(to, map, entries);
            }

            fn read(from: &mut &$life [u8]) -> Result<Self, $crate::format::Unreadable> {
                let mut value = Self::blank();
                $crate::format::read_map(from, |number, from| {
                    match number {
                        $($number => value.$field = $crate::format::Written::read(from)?,)*
                        _ => return Err($crate::format::Unreadable),
                    }
                    Ok(())
                })?;
                Ok(value)
            }

            #[cfg(test)]
            fn check_growth() {
                $crate::format::tests::may_grow::<Self>(&[$($number),*]);
                $(<$type as $crate::format::Written<$life>>::check_growth();)*
            }
        }
    };
    (@blank) => { $crate::format::Written::blank() };
    (@blank $blank:expr) => { $blank };
    (@is_blank $value:expr) => { $crate::format::Written::is_blank(&$value) };
    (@is_blank $value:expr, $blank:expr) => { $value == $blank };
}

// Writing to memory cannot fail.
macro_rules! numbers {
    ($($type:ty: $write:ident as $wide:ty,)*) => {$(
        impl<'a> Written<'a> for $type {
            fn blank() -> Self {
                0
            }

            fn is_blank(&self) -> bool {
                *self == 0
            }

            #[inline]
            fn write(&self, to: &mut Vec<u8>) {
                let _ = encode::$write(to, <$wide>::from(*self));
            }

            #[inline]
            fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
                decode::read_int(from).or(Err(Unreadable))
            }
        }
    )*};
}

numbers! {
    u8: write_uint as u64,
    u16: write_uint as u64,
    u32: write_uint as u64,
    u64: write_uint as u64,
    i32: write_sint as i64,
    i64: write_sint as i64,
}

impl<'a> Written<'a> for bool {
    fn blank() -> Self {
        false
    }

    fn is_blank(&self) -> bool {
        !self
    }

    fn write(&self, to: &mut Vec<u8>) {
        let _ = encode::write_bool(to, *self);
    }

    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
        decode::read_bool(from).or(Err(Unreadable))
    }
}

impl<'a> Written<'a> for &'a [u8] {
    fn blank() -> Self {
        &[]
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn write(&self, to: &mut Vec<u8>) {
        let _ = encode::write_bin_len(to, u32::try_from(self.len()).unwrap_or(u32::MAX));
        to.extend_from_slice(self);
    }

    #[inline]
    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
        let len = decode::read_bin_len(from).or(Err(Unreadable))?;
        let (bytes, rest) = from.split_at_checked(len as usize).ok_or(Unreadable)?;
        *from = rest;
        Ok(bytes)
    }
}

/// Types that are written as bytes.
macro_rules! bytes {
    ($($type:ty: $blank:expr, $read:expr;)*) => {$(
        impl<'a> Written<'a> for $type {
            fn blank() -> Self {
                $blank
            }

            fn is_blank(&self) -> bool {
                *self == Self::blank()
            }

            fn write(&self, to: &mut Vec<u8>) {
                (&self[..]).write(to);
            }

            fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
                let read: fn(&'a [u8]) -> Result<Self, Unreadable> = $read;
                read(<&[u8]>::read(from)?)
            }
        }
    )*};
}

bytes! {
    Bin: Bin::default(), |bytes| Ok(bytes.into());
    Cow<'a, [u8]>: Cow::Borrowed(&[]), |bytes| Ok(Cow::Borrowed(bytes));
    [u8; 16]: [0; 16], |bytes| bytes.try_into().or(Err(Unreadable));
}

impl<'a, T: Written<'a>> Written<'a> for Option<T> {
    fn blank() -> Self {
        None
    }

    fn is_blank(&self) -> bool {
        self.is_none()
    }

    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(to),
            None => to.push(Marker::Null.to_u8()),
        }
    }

    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
        match from.split_first() {
            Some((nil, rest)) if *nil == Marker::Null.to_u8() => {
                *from = rest;
                Ok(None)
            }
            _ => T::read(from).map(Some),
        }
    }

    #[cfg(test)]
    fn check_growth() {
        T::check_growth();
    }
}

impl<'a, T: Written<'a>> Written<'a> for Box<T> {
    fn blank() -> Self {
        Box::new(T::blank())
    }

    fn is_blank(&self) -> bool {
        (**self).is_blank()
    }

    fn write(&self, to: &mut Vec<u8>) {
        (**self).write(to);
    }

    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
        T::read(from).map(Box::new)
    }

    #[cfg(test)]
    fn check_growth() {
        T::check_growth();
    }
}

impl<'a, T: Written<'a> + Clone> Written<'a> for Cow<'a, T> {
    fn blank() -> Self {
        Cow::Owned(T::blank())
    }

    fn is_blank(&self) -> bool {
        (**self).is_blank()
    }

    fn write(&self, to: &mut Vec<u8>) {
        (**self).write(to);
    }

    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
        T::read(from).map(Cow::Owned)
    }

    #[cfg(test)]
    fn check_growth() {
        T::check_growth();
    }
}

impl<'a, T: Written<'a>> Written<'a> for Vec<T> {
    fn blank() -> Self {
        Vec::new()
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, to: &mut Vec<u8>) {
        let _ = encode::write_array_len(to, u32::try_from(self.len()).unwrap_or(u32::MAX));
        self.iter().for_each(|value| value.write(to));
    }

    /// Takes no memory on the word of a length: each value has a byte at least.
    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
        let len = decode::read_array_len(from).or(Err(Unreadable))?;
        (0..len).map(|_| T::read(from)).collect()
    }

    #[cfg(test)]
    fn check_growth() {
        T::check_growth();
    }
}

/// Two that belong together for good, as a name and its value do.
impl<'a, A: Written<'a>, B: Written<'a>> Written<'a> for (A, B) {
    fn blank() -> Self {
        (A::blank(), B::blank())
    }

    fn is_blank(&self) -> bool {
        self.0.is_blank() && self.1.is_blank()
    }

    fn write(&self, to: &mut Vec<u8>) {
        let _ = encode::write_array_len(to, 2);
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut &'a [u8]) -> Result<Self, Unreadable> {
        match decode::read_array_len(from) {
            Ok(2) => Ok((A::read(from)?, B::read(from)?)),
            _ => Err(Unreadable),
        }
    }

    #[cfg(test)]
    fn check_growth() {
        A::check_growth();
        B::check_growth();
    }
}

#[cfg(test)]
pub(crate) mod tests;
