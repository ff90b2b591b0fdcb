//! An input of parts, after the choices of what is done with the board that comes of them: one byte
//! says how many choices there are, two before each part how long it is, the lower first.

use board::mix;
use libfuzzer_sys::fuzzer_mutate;

use crate::choices::{Choices, NUMBERS};
use crate::numbers::{numbers, written};

/// See the module's comment.
pub struct Input<'a> {
    pub choices: Choices<'a>,
    pub parts: Vec<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// Whatever the bytes are, they are an input.
    pub fn read(bytes: &'a [u8]) -> Input<'a> {
        let (len, rest) = bytes.split_first().unwrap_or((&0, &[]));
        let (choices, mut rest) = rest.split_at(usize::from(*len).min(rest.len()));
        let mut parts = Vec::new();
        while let Some((len, more)) = rest.split_first_chunk::<2>() {
            let (part, after) = more.split_at(usize::from(u16::from_le_bytes(*len)).min(more.len()));
            parts.push(part);
            rest = after;
        }
        Input { choices: Choices(choices), parts }
    }

    /// The bytes that are this input.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = [&[self.choices.0.len() as u8], self.choices.0].concat();
        for part in &self.parts {
            bytes.extend((part.len() as u16).to_le_bytes());
            bytes.extend(*part);
        }
        bytes
    }
}

/// Changes an input in place and gives its new length: one part, as the fuzzer does it or in one of
/// its numbers, or the choices; now and then all as one.
pub fn mutate(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut draws = (0..).map(|n| mix(u64::from(seed) << 8 | n) as usize);
    let mut draw = |n: usize| draws.next().unwrap_or_default() % n.max(1);
    let whole = data[..size].to_vec();
    let mut input = Input::read(&whole);
    let which = draw(input.parts.len() + 1);
    let how = draw(8);
    let Some(part) = input.parts.get(which).filter(|_| how > 0) else {
        if how < 4 {
            return fuzzer_mutate(data, size, most);
        }
        let choices = mutated(input.choices.0, 255);
        input.choices = Choices(&choices);
        return put(&input, data, size, most);
    };
    let found = numbers(part);
    let changed = match found.get(draw(found.len())) {
        Some(at) if how < 5 => {
            let number = match draw(4) {
                0 => part[found[draw(found.len())].clone()].to_vec(),
                1 => written(draw(256) as i64),
                _ => written(NUMBERS[draw(NUMBERS.len())]),
            };
            [&part[..at.start], &number, &part[at.end..]].concat()
        }
        _ => mutated(part, most.min(usize::from(u16::MAX))),
    };
    input.parts[which] = &changed;
    if draw(4) == 0 {
        input.parts.truncate(which + 1);
    }
    put(&input, data, size, most)
}

fn mutated(bytes: &[u8], most: usize) -> Vec<u8> {
    let mut room = bytes.to_vec();
    room.resize(most.max(bytes.len()), 0);
    let len = fuzzer_mutate(&mut room, bytes.len(), most);
    room.truncate(len);
    room
}

/// Leaves it as it is when there is no room for the other.
fn put(input: &Input<'_>, data: &mut [u8], size: usize, most: usize) -> usize {
    let bytes = input.bytes();
    if bytes.len() > most {
        return size;
    }
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}
