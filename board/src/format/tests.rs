//! Whether what is written down may grow.

use super::*;

fn bytes<'a>(value: &impl Written<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.write(&mut bytes);
    bytes
}

fn read<'a, T: Written<'a>>(bytes: &'a [u8]) -> Result<T, Unreadable> {
    T::read(&mut Decoder::from_read_ref(bytes)).or(Err(Unreadable))
}

/// Whether a struct with these fields may get more: a value that was written without any of
/// them reads as a blank one, and a field that only a later version knows is refused, where
/// it stands behind the others and where it stands alone.
pub(crate) fn may_grow<'a, T: Written<'a>>(numbers: &[u8]) {
    let name = std::any::type_name::<T>();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{name}: the numbers of the fields rise");
    assert!(numbers.iter().all(|n| (1..120).contains(n)), "{name}: numbers of one byte");
    assert!(read::<T>(&[0x80]).is_ok_and(|value| value.is_blank()), "{name}: of no fields");
    assert_eq!(bytes(&T::blank()), [0x80], "{name}: what is blank is not written");
    for unknown in [0x78, 0x7f] {
        for value in [0x00, 0xc0, 0xc3, 0x80, 0x90] {
            let bytes = Vec::leak(vec![0x81, unknown, value]);
            assert!(read::<T>(bytes).is_err(), "{name}: a field of a later version");
        }
    }
}

written! {
    #[derive(Debug, PartialEq)]
    struct Today<'a> {
        1 name: &'a [u8],
        2 lease: i64 = 30,
        3 more: Option<Box<More>>,
    }
}

written! {
    #[derive(Debug, PartialEq)]
    struct More {
        1 count: u32,
    }
}

/// As a later version may have them: a field and one within a field more.
mod next {
    written! {
        #[derive(Debug, PartialEq)]
        pub struct Next<'a> {
            1 pub name: &'a [u8],
            2 pub lease: i64 = 30,
            3 pub more: Option<Box<More>>,
            4 pub until: Option<i64>,
        }
    }

    written! {
        #[derive(Debug, PartialEq)]
        pub struct More {
            1 pub count: u32,
            2 pub weight: u32 = 1,
        }
    }
}

#[test]
fn a_later_version_reads_what_is_written_today() {
    let today = bytes(&Today { name: b"x", lease: 31, more: Some(Box::new(More { count: 7 })) });
    let more = Some(Box::new(next::More { count: 7, weight: 1 }));
    let read = read::<next::Next>(&today);
    assert_eq!(read, Ok(next::Next { name: b"x", lease: 31, more, until: None }));
}

#[test]
fn what_a_later_version_writes_is_read_or_refused_and_never_misread() {
    let next = |until, weight| {
        let more = Some(Box::new(next::More { count: 7, weight }));
        bytes(&next::Next { name: b"x", lease: 30, more, until })
    };
    let today = Today { name: b"x", lease: 30, more: Some(Box::new(More { count: 7 })) };
    assert_eq!(read::<Today>(&next(None, 1)), Ok(today));
    assert_eq!(read::<Today>(&next(Some(0), 1)), Err(Unreadable));
    assert_eq!(read::<Today>(&next(None, 2)), Err(Unreadable));
}

#[test]
fn a_field_comes_once_and_in_its_order() {
    let of = |bytes: &[u8]| read::<More>(bytes).map(|more| more.count);
    assert_eq!(of(&[0x81, 1, 9]), Ok(9));
    assert_eq!(of(&[0x82, 1, 9, 1, 9]), Err(Unreadable));
    let of = |bytes: &[u8]| read::<next::More>(bytes).map(|more| more.count);
    assert_eq!(of(&[0x82, 1, 9, 2, 5]), Ok(9));
    assert_eq!(of(&[0x82, 2, 5, 1, 9]), Err(Unreadable));
}

#[test]
fn what_is_blank_takes_a_byte() {
    assert_eq!(bytes(&Today { name: b"", lease: 30, more: None }), [0x80]);
    let today = bytes(&Today { name: b"x", lease: -1, more: Some(Box::new(More { count: 0 })) });
    assert_eq!(today, [0x83, 1, 0xc4, 1, b'x', 2, 0xff, 3, 0x80]);
}

#[test]
fn a_map_of_many_fields_is_read_as_it_was_written() {
    for n in [0, 1, 15, 16, 100] {
        let map: Vec<(u8, u64)> = (0..n).map(|number| (number, 5)).collect();
        let mut bytes = Vec::new();
        write_map(&mut bytes, map.iter().copied());
        assert_eq!(read_map(&mut Decoder::from_read_ref(&bytes[..])).ok(), Some(map));
    }
}

#[test]
fn no_length_is_believed() {
    let long = [0xdd, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(read::<Vec::<u64>>(&long), Err(Unreadable));
    let long = [0xc6, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(read::<&[u8]>(&long), Err(Unreadable));
}
