//! Values that are written as their numbers.

/// Gives each value a number, and reads it back. An unknown number is refused with the given word;
/// the first value is the default.
macro_rules! numbered {
    ($name:ident, $word:literal: $first:ident $(, $value:ident)* $(,)?) => {
        impl From<$name> for u8 {
            fn from(value: $name) -> u8 {
                value as u8
            }
        }

        impl TryFrom<u8> for $name {
            type Error = &'static str;
            fn try_from(number: u8) -> Result<$name, &'static str> {
                [$name::$first $(, $name::$value)*].into_iter().find(|v| *v as u8 == number).ok_or($word)
            }
        }

        written_as_number!($name, $name::$first);
    };
}

/// Writes a type as its number; the default value is left out.
macro_rules! written_as_number {
    ($name:ident, $blank:expr) => {
        impl<'a> $crate::format::Written<'a> for $name {
            fn blank() -> Self {
                $blank
            }

            fn is_blank(&self) -> bool {
                *self == Self::blank()
            }

            fn write(&self, to: &mut Vec<u8>) {
                $crate::format::Written::write(&u8::from(*self), to);
            }

            fn read<D: serde::Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
                let number: u8 = $crate::format::Written::read(from)?;
                Self::try_from(number).map_err(serde::de::Error::custom)
            }
        }
    };
}
