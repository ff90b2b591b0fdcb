//! How effects and snapshots are written, so that both can grow.
//!
//! The format is MessagePack. A struct is a map from the numbers of its fields to their values.
//! Each field has a blank value, which is not written. So a later version can add fields and still
//! read what earlier ones wrote, and an earlier version reads what a later one wrote without using
//! the new fields. A number is never reused. A reader that meets an unknown number refuses the
//! whole struct: it guesses nothing.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use rmp::{encode, Marker};
use rmp_serde::decode::{Error, ReadRefReader};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::structures::byte_string::ByteString;

/// Bytes that this version cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl Unreadable {
    /// The same as an error of a decoder.
    pub fn error<E: de::Error>(self) -> E {
        E::custom("not as this version writes it")
    }
}

/// Reads one value after another from bytes.
pub(crate) type Decoder<'a> = rmp_serde::Deserializer<ReadRefReader<'a, [u8]>>;

/// A value that is written and read. A value with a reader's lifetime refers to the bytes that are
/// read.
///
/// It is read through serde, and written without it: serde needs a map's length first, and hot
/// commands write a map each.
pub(crate) trait Written<'a>: Sized {
    /// The value that is not written.
    fn blank() -> Self;
    /// Whether it is the blank value.
    fn is_blank(&self) -> bool;
    /// Appends it to these bytes.
    fn write(&self, to: &mut Vec<u8>);
    /// Reads a value.
    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error>;

    /// Checks that every struct in it may get new fields: see [`tests::may_grow`].
    #[cfg(test)]
    fn check_growth() {}
}

/// The next tag; `None` when all has been read.
pub(crate) fn next_tag(from: &mut Decoder<'_>) -> Result<Option<u8>, Unreadable> {
    match u8::deserialize(from) {
        Ok(tag) => Ok(Some(tag)),
        Err(Error::InvalidMarkerRead(_)) => Ok(None),
        Err(_) => Err(Unreadable),
    }
}

/// A value as serde reads it.
struct Read<T>(T);

impl<'a, T: Written<'a>> Deserialize<'a> for Read<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        T::read(from).map(Read)
    }
}

/// Begins a map whose number of entries is not known yet.
pub(crate) fn open_map(to: &mut Vec<u8>) -> usize {
    to.push(0x80);
    to.len() - 1
}

/// Writes the number of entries into the head of a map.
#[inline]
pub(crate) fn close_map(to: &mut Vec<u8>, at: usize, entries: u8) {
    match to.get_mut(at) {
        Some(marker) if entries < 16 => *marker |= entries,
        _ => drop(to.splice(at..=at, [0xde, 0, entries])),
    }
}

/// Writes a map whose keys are rising numbers.
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

/// Reads the number of the next field; numbers must rise.
#[inline]
pub(crate) fn next_field<'a, M: MapAccess<'a>>(
    from: &mut M,
    last: &mut Option<u8>,
) -> Result<Option<u8>, M::Error> {
    let Some(number) = from.next_key::<u8>()? else { return Ok(None) };
    match last.replace(number) {
        Some(last) if last >= number => Err(Unreadable.error()),
        _ => Ok(Some(number)),
    }
}

/// Reads the value of a field.
#[inline]
pub(crate) fn read_value<'a, M: MapAccess<'a>, V: Written<'a>>(from: &mut M) -> Result<V, M::Error> {
    from.next_value::<Read<V>>().map(|value| value.0)
}

/// Reads a map whose keys are rising numbers.
pub(crate) fn read_map<'a, V: Written<'a>, D: Deserializer<'a>>(from: D) -> Result<Vec<(u8, V)>, D::Error> {
    struct Entries<V>(PhantomData<V>);

    impl<'a, V: Written<'a>> Visitor<'a> for Entries<V> {
        type Value = Vec<(u8, V)>;

        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a map of numbers")
        }

        fn visit_map<M: MapAccess<'a>>(self, mut from: M) -> Result<Self::Value, M::Error> {
            let (mut all, mut last) = (Vec::new(), None);
            while let Some(number) = next_field(&mut from, &mut last)? {
                all.push((number, read_value(&mut from)?));
            }
            Ok(all)
        }
    }

    from.deserialize_map(Entries(PhantomData))
}

/// Defines a struct that can be written: `number name: type`, and `= value` where the blank value
/// is not that of the type. In the order of the numbers, from 1.
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

            fn read<D: serde::Deserializer<$life>>(from: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<$life> serde::de::Visitor<$life> for Fields {
                    type Value = $($name)*;

                    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        to.write_str("a map of fields")
                    }

                    fn visit_map<M: serde::de::MapAccess<$life>>(
                        self,
                        mut from: M,
                    ) -> Result<Self::Value, M::Error> {
                        let mut value = <Self::Value as $crate::format::Written<$life>>::blank();
                        let mut last = None;
                        while let Some(number) = $crate::format::next_field(&mut from, &mut last)? {
                            match number {
                                $($number => value.$field = $crate::format::read_value(&mut from)?,)*
                                _ => return Err($crate::format::Unreadable.error()),
                            }
                        }
                        Ok(value)
                    }
                }

                from.deserialize_map(Fields)
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
macro_rules! plain {
    ($($type:ty: $blank:expr, $write:ident as $wide:ty,)*) => {$(
        impl<'a> Written<'a> for $type {
            fn blank() -> Self {
                $blank
            }

            fn is_blank(&self) -> bool {
                *self == $blank
            }

            #[inline]
            fn write(&self, to: &mut Vec<u8>) {
                let _ = encode::$write(to, <$wide>::from(*self));
            }

            #[inline]
            fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
                Self::deserialize(from)
            }
        }
    )*};
}

plain! {
    u8: 0, write_uint as u64,
    u16: 0, write_uint as u64,
    u32: 0, write_uint as u64,
    u64: 0, write_uint as u64,
    i32: 0, write_sint as i64,
    i64: 0, write_sint as i64,
    bool: false, write_bool as bool,
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
    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Borrowed;

        impl<'a> Visitor<'a> for Borrowed {
            type Value = &'a [u8];

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("bytes")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'a [u8]) -> Result<Self::Value, E> {
                Ok(bytes)
            }
        }

        from.deserialize_bytes(Borrowed)
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

            fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
                let read: fn(&'a [u8]) -> Result<Self, Unreadable> = $read;
                read(<&[u8]>::read(from)?).map_err(Unreadable::error)
            }
        }
    )*};
}

bytes! {
    ByteString: ByteString::default(), |bytes| Ok(bytes.into());
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

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        Option::<Read<T>>::deserialize(from).map(|value| value.map(|value| value.0))
    }

    #[cfg(test)]
    fn check_growth() {
        T::check_growth();
    }
}

/// Types that are written as the value that they hold.
macro_rules! holders {
    ($($type:ty, $($bound:ident)?: $hold:expr;)*) => {$(
        impl<'a, T: Written<'a> $(+ $bound)?> Written<'a> for $type {
            fn blank() -> Self {
                $hold(T::blank())
            }

            fn is_blank(&self) -> bool {
                (**self).is_blank()
            }

            fn write(&self, to: &mut Vec<u8>) {
                (**self).write(to);
            }

            fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
                T::read(from).map($hold)
            }

            #[cfg(test)]
            fn check_growth() {
                T::check_growth();
            }
        }
    )*};
}

holders! {
    Box<T>, : Box::new;
    Cow<'a, T>, Clone: Cow::Owned;
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

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);

        impl<'a, T: Written<'a>> Visitor<'a> for Values<T> {
            type Value = Vec<T>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a list")
            }

            /// Allocates nothing on the word of a length: each value takes at least a byte.
            fn visit_seq<A: SeqAccess<'a>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(Read(value)) = from.next_element()? {
                    all.push(value);
                }
                Ok(all)
            }
        }

        from.deserialize_seq(Values(PhantomData))
    }

    #[cfg(test)]
    fn check_growth() {
        T::check_growth();
    }
}

/// Two values that belong together for good, such as a name and its value.
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

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        <(Read<A>, Read<B>)>::deserialize(from).map(|(a, b)| (a.0, b.0))
    }

    #[cfg(test)]
    fn check_growth() {
        A::check_growth();
        B::check_growth();
    }
}

#[cfg(test)]
pub(crate) mod tests;
