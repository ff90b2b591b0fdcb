//! How events are spread over a time: a small picture of bars, for a row of a list.

use maud::{html, Markup};

use crate::format::{number, span};

/// Bars of the picture, each of them a part of the time.
const PARTS: usize = 24;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 26.0;

/// Nothing that happened is drawn lower.
const LOW: f64 = 2.0;

/// How many moments (Unix ms) fall into each part of the time from `first` to `last`.
fn parts(moments: impl Iterator<Item = i64>, first: i64, last: i64) -> [i64; PARTS] {
    let mut counts = [0; PARTS];
    let whole = i128::from((last - first).max(1));
    for at in moments {
        let part = i128::from((at - first).max(0)) * PARTS as i128 / whole;
        counts[(part as usize).min(PARTS - 1)] += 1;
    }
    counts
}

/// Bars for `moments`, oldest first. All rows of a list have the same `first` and `last`, so that they compare.
pub fn draw(what: &str, moments: impl Iterator<Item = i64>, first: i64, last: i64) -> Markup {
    let counts = parts(moments, first, last);
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let width = WIDTH / PARTS as f64;
    let told = format!(
        "{what} over {}: {} in all, at most {} in {}",
        span(last - first),
        number(counts.iter().sum()),
        number(most),
        span((last - first) / PARTS as i64)
    );
    html! {
        svg.spark.course viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(told) {
            title { (told) }
            @for (part, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                @let height = (*count as f64 / most as f64 * HEIGHT).max(LOW);
                rect x=(part as f64 * width) y=(HEIGHT - height) width=(width - 1.0) height=(height) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_fall_into_parts() {
        let counts = parts([0, 10, 239, 240, -5, 999].into_iter(), 0, 240);
        assert_eq!((counts[0], counts[1], counts[PARTS - 1]), (2, 1, 3));
        assert_eq!(parts([7, 7].into_iter(), 7, 7)[0], 2);
    }
}
