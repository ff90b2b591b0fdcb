//! Values that are written down as their numbers.

/// The number of a value and back; the values in the order of their numbers, from 0. A number
/// that none has is refused with the word.
macro_rules! numbered {
    ($name:ident, $word:literal: $($value:ident),* $(,)?) => {
        impl From<$name> for u8 {
            fn from(value: $name) -> u8 {
                value as u8
            }
        }

        impl TryFrom<u8> for $name {
            type Error = &'static str;
            fn try_from(number: u8) -> Result<$name, &'static str> {
                [$($name::$value),*].get(number as usize).copied().ok_or($word)
            }
        }
    };
}
