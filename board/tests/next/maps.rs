//! The maps in MessagePack bytes, and the bytes with an entry more or less.

use rmp::decode::{read_array_len, read_bin_len, read_int, read_map_len, read_marker};
use rmp::Marker;

use crate::world::Bytes;

/// A map: where it begins, and where each of its entries does, up to its end.
pub struct Map {
    begin: usize,
    pub entries: Vec<(usize, usize)>,
    end: usize,
}

/// Where the value ends that begins there; adds the maps in it, itself included.
pub fn value(bytes: &[u8], at: usize, maps: &mut Vec<Map>) -> usize {
    let after = |rest: &[u8]| bytes.len() - rest.len();
    let mut rest = &bytes[at..];
    let mut next = rest;
    match read_marker(&mut next).unwrap() {
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
            let entries = read_map_len(&mut rest).unwrap();
            let mut map = Map { begin: at, entries: Vec::new(), end: after(rest) };
            for _ in 0..entries {
                let key = value(bytes, map.end, &mut Vec::new());
                let end = value(bytes, key, maps);
                map.entries.push((map.end, end));
                map.end = end;
            }
            let end = map.end;
            maps.push(map);
            end
        }
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            let values = read_array_len(&mut rest).unwrap();
            (0..values).fold(after(rest), |at, _| value(bytes, at, maps))
        }
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
            let len = read_bin_len(&mut rest).unwrap() as usize;
            after(rest) + len
        }
        Marker::Null | Marker::True | Marker::False => after(next),
        _ => {
            read_int::<i128, _>(&mut rest).unwrap();
            after(rest)
        }
    }
}

fn with(bytes: &[u8], map: &Map, entries: usize, content: &[u8]) -> Bytes {
    let [high, low] = (entries as u16).to_be_bytes();
    let small = [0x80 | low];
    let head: &[u8] = if entries < 16 { &small } else { &[0xde, high, low] };
    [&bytes[..map.begin], head, content, &bytes[map.end..]].concat()
}

fn content<'a>(bytes: &'a [u8], map: &Map) -> &'a [u8] {
    let begin = map.entries.first().map_or(map.end, |entry| entry.0);
    &bytes[begin..map.end]
}

/// With one entry more, of a number that nothing has.
pub fn more(bytes: &[u8], map: &Map) -> Bytes {
    with(bytes, map, map.entries.len() + 1, &[content(bytes, map), &[126, 0x05]].concat())
}

/// Without one of the entries.
pub fn less(bytes: &[u8], map: &Map, entry: usize) -> Bytes {
    let (from, to) = map.entries[entry];
    let all = content(bytes, map);
    let begin = map.end - all.len();
    with(bytes, map, map.entries.len() - 1, &[&all[..from - begin], &all[to - begin..]].concat())
}
