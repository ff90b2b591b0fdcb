//! What an allocator takes for a number of bytes.

/// The bytes that an allocator takes for `bytes`: jemalloc has a size every 16 bytes up to 128, and four
/// sizes in each doubling above.
pub(crate) const fn allotted(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_those_of_jemalloc() {
        let sizes = [0, 1, 16, 17, 100, 112, 113, 128, 129, 160, 161, 256, 257, 320, 2_848, 14_000];
        let rounded = [0, 16, 16, 32, 112, 112, 128, 128, 160, 160, 192, 256, 320, 320, 3_072, 14_336];
        assert_eq!(sizes.map(allotted), rounded);
    }
}
