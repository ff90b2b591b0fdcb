//! The scale of the line of time: true to time, but that long stretches in which nothing runs are folded.

use std::collections::HashSet;

use maud::{html, Markup};

use crate::format::{day_and_time, moment, span, time_of_day, time_with_ms};

/// The width of a bar in its own units; the page stretches it.
pub const WIDTH: f64 = 1000.0;

/// Nothing is drawn narrower than this.
const THIN: f64 = 3.0;

/// What runs gets a quarter of the line at least, if folding can give it that.
const BUSY_SHARE: i64 = 4;

/// Stretches that are folded at most, and the width of each.
const FOLDS: usize = 12;
const FOLD: f64 = 40.0;

/// Two texts below the line are no nearer, so that they can be read on a phone.
const APART: f64 = 220.0;

/// Above this length of all, ticks name the day; below this length of what is not folded, milliseconds.
const DAY: i64 = 86_400_000;
const SHORT: i64 = 5_000;

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    from: i64,
    to: i64,
    x: f64,
    width: f64,
    is_folded: bool,
}

impl Piece {
    fn length(&self) -> i64 {
        self.to - self.from
    }

    fn end(&self) -> f64 {
        self.x + self.width
    }
}

/// From the first to the last moment that is drawn.
pub struct Scale(Vec<Piece>);

impl Scale {
    /// Every stretch of time is as wide as it is long.
    pub fn linear(first: i64, last: i64) -> Self {
        Self(pieces(first, last, &[]))
    }

    /// Folds long stretches between `busy` ones, in which something runs, and `moments`, at which something happens.
    pub fn folding(first: i64, last: i64, busy: &[(i64, i64)], moments: &[i64]) -> Self {
        let mut marks: Vec<(i64, i64)> =
            moments.iter().map(|at| (*at, *at)).chain(busy.iter().copied()).collect();
        marks.retain(|(from, to)| *to >= first && *from <= last);
        marks.sort_unstable();
        let (mut at, mut idle) = (first, Vec::new());
        for (from, to) in marks {
            if from > at {
                idle.push((at, from));
            }
            at = at.max(to);
        }
        if last > at {
            idle.push((at, last));
        }
        idle.sort_by_key(|(from, to)| (from - to, *from));
        let mut rest = last - first;
        let runs = rest - idle.iter().map(|(from, to)| to - from).sum::<i64>();
        let mut folds = Vec::new();
        for (from, to) in idle.into_iter().take(FOLDS) {
            // Where nothing runs, the wait is all that there is to see.
            if busy.is_empty() || runs.max(1) >= rest / BUSY_SHARE {
                break;
            }
            rest -= to - from;
            folds.push((from, to));
        }
        folds.sort_unstable();
        Self(pieces(first, last, &folds))
    }

    fn folds(&self) -> impl Iterator<Item = &Piece> {
        self.0.iter().filter(|piece| piece.is_folded)
    }

    pub fn is_folded(&self) -> bool {
        self.folds().next().is_some()
    }

    fn first(&self) -> i64 {
        self.0.first().map_or(0, |piece| piece.from)
    }

    fn last(&self) -> i64 {
        self.0.last().map_or(0, |piece| piece.to)
    }

    fn x(&self, at: i64) -> f64 {
        let Some(piece) = self.0.iter().find(|piece| at <= piece.to).or(self.0.last()) else { return 0.0 };
        let share = (at - piece.from) as f64 / piece.length().max(1) as f64;
        piece.x + share.clamp(0.0, 1.0) * piece.width
    }

    /// The moment at a place outside of folds.
    fn moment_at(&self, x: f64) -> Option<i64> {
        let piece = self.0.iter().find(|piece| !piece.is_folded && x >= piece.x && x <= piece.end())?;
        let share = if piece.width > 0.0 { (x - piece.x) / piece.width } else { 0.0 };
        Some(piece.from + (share * piece.length() as f64).round() as i64)
    }

    pub fn bar(&self, class: &str, from: i64, to: i64) -> Markup {
        let (x, end) = (self.x(from), self.x(to));
        let width = (end - x).max(THIN);
        html! { rect class=(class) x=(tenths(x.min(WIDTH - THIN))) y="3" width=(tenths(width)) height="14" {} }
    }

    /// A moment.
    pub fn mark(&self, class: &str, at: i64, title: &str) -> Markup {
        let x = self.x(at).min(WIDTH - THIN);
        html! { rect class={ "mark " (class) } x=(tenths(x)) y="0" width=(THIN) height="20" { title { (title) } } }
    }

    /// Thin lines at the ticks, which stand behind the bars.
    pub fn behind(&self) -> Markup {
        let lines: String = self.ticks().iter().map(|(x, _)| format!("M{} 0V20", tenths(*x))).collect();
        html! { path.ticks d=(lines) {} }
    }

    /// What is folded, drawn over the bars.
    pub fn before(&self) -> Markup {
        html! {
            @for fold in self.folds() {
                rect.fold x=(tenths(fold.x)) y="0" width=(tenths(fold.width)) height="20" {
                    title { (span(fold.length())) " folded" }
                }
            }
        }
    }

    /// Moments that are named below the line, and where.
    fn ticks(&self) -> Vec<(f64, i64)> {
        let edges = self.folds().flat_map(|fold| [(fold.x, fold.from), (fold.end(), fold.to)]);
        let quarters = [0.5, 0.25, 0.75].map(|share| share * WIDTH);
        let quarters = quarters.into_iter().filter_map(|x| Some((x, self.moment_at(x)?)));
        let ends = [(0.0, self.first()), (WIDTH, self.last())].into_iter();
        let mut ticks = apart(ends.chain(edges).chain(quarters), |(x, _)| *x);
        // Of a run of a few milliseconds several places are the same moment.
        let mut seen = HashSet::new();
        ticks.retain(|(_, at)| seen.insert(*at));
        ticks
    }

    /// A line with times below it, and the lengths of what is folded.
    pub fn axis(&self) -> Markup {
        let folds = apart(self.folds(), |fold| fold.x + fold.width / 2.0);
        let told = format!("from {} to {}{}", moment(self.first()), moment(self.last()), self.folded_words());
        html! {
            div.axis {
                p.faint { "Time" }
                svg role="img" aria-label=(told) width="100%" height="32" {
                    @for (x, at) in self.ticks() { (self.tick(x, at)) }
                    @for fold in folds {
                        @let x = fold.x + fold.width / 2.0;
                        text.tick.length x=(percent(x)) y="28" text-anchor=(anchor(x)) { (span(fold.length())) }
                    }
                }
            }
        }
    }

    fn tick(&self, x: f64, at: i64) -> Markup {
        let shown = self.0.iter().filter(|piece| !piece.is_folded).map(Piece::length).sum::<i64>();
        let (form, text) = match self.last() - self.first() {
            DAY.. => (Some("day"), day_and_time(at)),
            _ if shown < SHORT => (Some("ms"), time_with_ms(at)),
            _ => (None, time_of_day(at)),
        };
        html! {
            g {
                title { (moment(at)) }
                text.tick x=(percent(x)) y="12" text-anchor=(anchor(x)) data-at=(at) data-form=[form] { (text) }
            }
        }
    }

    fn folded_words(&self) -> String {
        let lengths: Vec<String> = self.folds().map(|fold| span(fold.length())).collect();
        if lengths.is_empty() {
            String::new()
        } else {
            format!("; folded: {}", lengths.join(", "))
        }
    }

    /// The lengths of what is folded, in their order.
    pub fn lengths(&self) -> String {
        self.folds().map(|fold| span(fold.length())).collect::<Vec<_>>().join(", ")
    }
}

/// Folds of one width each; the rest of the line in proportion.
fn pieces(first: i64, last: i64, folds: &[(i64, i64)]) -> Vec<Piece> {
    let fold = FOLD.min(WIDTH / 2.0 / folds.len().max(1) as f64);
    let mut cuts: Vec<(i64, i64, bool)> = Vec::new();
    let mut at = first;
    for &(from, to) in folds {
        if from > at {
            cuts.push((at, from, false));
        }
        cuts.push((from, to, true));
        at = to;
    }
    if last > at || cuts.is_empty() {
        cuts.push((at, last, false));
    }
    let open: i64 = cuts.iter().filter(|cut| !cut.2).map(|(from, to, _)| to - from).sum();
    let room = WIDTH - fold * folds.len() as f64;
    let mut x = 0.0;
    let piece = |(from, to, is_folded): (i64, i64, bool)| {
        let width = if is_folded { fold } else { (to - from) as f64 / open.max(1) as f64 * room };
        let piece = Piece { from, to, x, width, is_folded };
        x += width;
        piece
    };
    cuts.into_iter().map(piece).collect()
}

/// Those that are not too near to an earlier one.
fn apart<T>(all: impl Iterator<Item = T>, x: impl Fn(&T) -> f64) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if kept.iter().all(|other| (x(other) - x(&one)).abs() >= APART) {
            kept.push(one);
        }
    }
    kept
}

fn percent(x: f64) -> String {
    format!("{}%", tenths(x / WIDTH * 100.0))
}

/// A text at an end stays inside.
fn anchor(x: f64) -> &'static str {
    match x {
        x if x < WIDTH * 0.1 => "start",
        x if x > WIDTH * 0.9 => "end",
        _ => "middle",
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn folds(scale: &Scale) -> Vec<(i64, i64)> {
        scale.folds().map(|fold| (fold.from, fold.to)).collect()
    }

    #[test]
    fn what_lies_outside_is_drawn_at_the_edge() {
        for scale in [Scale::linear(5, 5), Scale::folding(5, 5, &[(5, 5)], &[5])] {
            assert!((0.0..=WIDTH).contains(&scale.x(-100)) && (0.0..=WIDTH).contains(&scale.x(100)));
        }
    }

    #[test]
    fn a_long_wait_is_folded_and_the_run_is_wide() {
        let (claimed, ended) = (8 * HOUR, 8 * HOUR + 4_000);
        let scale = Scale::folding(0, ended, &[(claimed, ended)], &[0, claimed, ended]);
        assert_eq!(folds(&scale), [(0, claimed)]);
        assert_eq!((scale.x(0), scale.x(claimed), scale.x(ended)), (0.0, FOLD, WIDTH));
        assert_eq!(scale.x(claimed + 2_000), FOLD + (WIDTH - FOLD) / 2.0);
        assert_eq!(Scale::linear(0, ended).x(claimed / 2).round(), 500.0);
        assert_eq!(scale.lengths(), "8 h");
    }

    #[test]
    fn a_second_wait_is_folded_only_while_what_runs_is_still_narrow() {
        let busy = [(10 * HOUR, 10 * HOUR + 60_000), (11 * HOUR, 11 * HOUR + 60_000)];
        let moments = [0, busy[0].0, busy[0].1, busy[1].0, busy[1].1];
        let scale = Scale::folding(0, busy[1].1, &busy, &moments);
        assert_eq!(folds(&scale), [(0, 10 * HOUR), (busy[0].1, busy[1].0)]);
        // Short waits stay as they are.
        let busy = [(1_000, 3_000), (5_000, 7_000)];
        assert_eq!(folds(&Scale::folding(0, 7_000, &busy, &[0])), []);
        // A wait alone is drawn as it is.
        assert_eq!(folds(&Scale::folding(0, HOUR, &[], &[0, HOUR])), []);
    }

    #[test]
    fn a_moment_within_a_wait_parts_it() {
        let scale = Scale::folding(0, 9 * HOUR, &[(9 * HOUR - 1_000, 9 * HOUR)], &[0, 4 * HOUR]);
        assert_eq!(folds(&scale), [(0, 4 * HOUR), (4 * HOUR, 9 * HOUR - 1_000)]);
        assert_eq!(scale.x(4 * HOUR), FOLD);
    }

    #[test]
    fn many_waits_leave_half_of_the_line_and_times_stay_in_order() {
        let busy: Vec<(i64, i64)> = (0..40).map(|n| (n * HOUR, n * HOUR + 1_000)).collect();
        let scale = Scale::folding(0, 39 * HOUR + 1_000, &busy, &[]);
        assert_eq!(folds(&scale).len(), FOLDS);
        let places: Vec<f64> = (0..40).map(|n| scale.x(n * HOUR)).collect();
        assert!(places.windows(2).all(|two| two[0] < two[1]), "{places:?}");
        assert!((scale.x(39 * HOUR + 1_000) - WIDTH).abs() < 0.01);
    }

    #[test]
    fn ticks_are_three_or_more_and_none_lies_in_a_fold() {
        let scale = Scale::folding(0, 8 * HOUR + 4_000, &[(8 * HOUR, 8 * HOUR + 4_000)], &[]);
        let ticks = scale.ticks();
        assert!((3..=5).contains(&ticks.len()), "{ticks:?}");
        for (x, at) in &ticks {
            assert!(scale.folds().all(|fold| *at <= fold.from || *at >= fold.to), "{at}");
            assert!((scale.x(*at) - x).abs() < 1.0, "{at} is at {} and named at {x}", scale.x(*at));
        }
        assert_eq!(
            Scale::linear(0, 8).ticks().iter().map(|tick| tick.1).collect::<Vec<_>>(),
            [0, 8, 4, 2, 6]
        );
    }
}
