//! Whether one of several texts stands in another.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memmem::find;

/// From how many bytes on several texts are sought at once, in one pass: that has to be prepared.
const LONG: usize = 64 << 10;

/// Whether one of these texts stands in another one. O(n) for its n bytes and those of the texts, however many
/// there are.
pub(crate) fn contains_any<'a>(within: &[u8], texts: impl Iterator<Item = &'a [u8]> + Clone) -> bool {
    if within.len() >= LONG && texts.clone().nth(1).is_some() {
        // The kind that is prepared in a time and a memory in proportion to the texts.
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        if let Ok(all) = AhoCorasick::builder().kind(kind).build(texts.clone()) {
            return all.is_match(within);
        }
    }
    texts.into_iter().any(|text| find(within, text).is_some())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn many_texts_are_found_in_a_long_one_wherever_they_stand() {
        let texts: Vec<Vec<u8>> = (0..100).map(|n| format!("absent {n:03}").into_bytes()).collect();
        let any = |within: &[u8]| contains_any(within, texts.iter().map(Vec::as_slice));
        for length in [0, LONG - 1, LONG, 3 * LONG] {
            let mut within = vec![b'a'; length];
            assert!(!any(&within), "{length}");
            within.extend_from_slice(b"absent 09");
            assert!(!any(&within), "{length}");
            within.push(b'9');
            assert!(any(&within), "{length}");
            within.extend_from_slice(&b"a".repeat(length));
            assert!(any(&within), "{length}");
        }
    }

    proptest! {
        #[test]
        fn long_texts_are_searched_as_short_ones(
            within in prop::collection::vec(0u8..3, 0..60),
            texts in prop::collection::vec(prop::collection::vec(0u8..3, 0..8), 0..5),
        ) {
            let naive = |within: &[u8]| {
                texts.iter().any(|t| t.is_empty() || within.windows(t.len()).any(|part| part == &t[..]))
            };
            let any = |within: &[u8]| contains_any(within, texts.iter().map(Vec::as_slice));
            prop_assert_eq!(any(&within), naive(&within));
            let long = [vec![9; LONG], within].concat();
            prop_assert_eq!(any(&long), naive(&long));
        }
    }
}
