//! Plots of numbers over time, drawn as SVG. Their colours are the stylesheet's.

use maud::{html, Markup};

use crate::format::{number, span, time_of_day};

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 24.0;

/// Values at times (Unix ms); where there is no value the line is broken.
pub struct Line {
    pub label: &'static str,
    pub points: Vec<(i64, Option<f64>)>,
}

pub struct Chart {
    pub title: &'static str,
    pub lines: Vec<Line>,
    /// Whether the values are durations in ms, or plain numbers.
    pub ms: bool,
}

impl Chart {
    pub fn draw(&self) -> Markup {
        let times = self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
        let (first, last) = times.fold((i64::MAX, i64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        let values = self.lines.iter().flat_map(|line| line.points.iter().filter_map(|point| point.1));
        let top = ceiling(values.fold(0.0, f64::max));
        let x = |at: i64| {
            let share = if last > first { (at - first) as f64 / (last - first) as f64 } else { 1.0 };
            LEFT + share * (WIDTH - LEFT - RIGHT)
        };
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
        html! {
            figure.chart {
                figcaption { (self.title) (self.legend()) }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.summary()) tabindex="0"
                    data-times=[self.times()] data-ms=[self.ms.then_some("1")]
                    data-frame={ (LEFT) " " (WIDTH - RIGHT) " " (TOP) " " (HEIGHT - BOTTOM) } {
                    @for step in 0..=4 {
                        @let value = top * f64::from(step) / 4.0;
                        line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(round(y(value))) y2=(round(y(value))) {}
                        text.tick x=(LEFT - 6.0) y=(round(y(value) + 4.0)) text-anchor="end" { (self.tick(value)) }
                    }
                    @if last >= first {
                        @if last > first { text.tick x=(LEFT) y=(HEIGHT - 6.0) data-at=[is_time(first, last).then_some(first)] { (self.at(first, last, first)) } }
                        text.tick x=(WIDTH - RIGHT) y=(HEIGHT - 6.0) text-anchor="end" data-at=[is_time(first, last).then_some(last)] { (self.at(first, last, last)) }
                    }
                    @for (number, line) in self.lines.iter().enumerate() {
                        path class={ "line line" (number) } d=(path(line, &x, &y)) data-values=(listed_values(line)) {}
                        @for (at, value) in alone(line) {
                            circle class={ "dot line" (number) } cx=(round(x(at))) cy=(round(y(value))) r="2.5" {}
                        }
                    }
                }
            }
        }
    }

    /// The lines alone, for a row of a table.
    pub fn spark(&self) -> Markup {
        const SIZE: (f64, f64) = (120.0, 26.0);
        let times = self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
        let (first, last) = times.fold((i64::MAX, i64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        let values = self.lines.iter().flat_map(|line| line.points.iter().filter_map(|point| point.1));
        let top = values.fold(1.0, f64::max);
        let x = |at: i64| {
            if last > first {
                (at - first) as f64 / (last - first) as f64 * SIZE.0
            } else {
                SIZE.0
            }
        };
        let y = |value: f64| SIZE.1 - 2.0 - value / top * (SIZE.1 - 4.0);
        html! {
            svg.spark viewBox={ "0 0 " (SIZE.0) " " (SIZE.1) } role="img" aria-label=(self.summary()) {
                @for (number, line) in self.lines.iter().enumerate() {
                    path class={ "line line" (number) } d=(path(line, &x, &y)) {}
                }
            }
        }
    }

    fn legend(&self) -> Markup {
        html! {
            span.legend {
                @for (number, line) in self.lines.iter().enumerate() {
                    span class={ "key key" (number) } { (line.label) " " b { (self.last(line)) } }
                }
            }
        }
    }

    fn last(&self, line: &Line) -> String {
        match line.points.last().and_then(|point| point.1) {
            Some(value) => self.tick(value),
            None => "–".into(),
        }
    }

    /// The times of its points, for scripts that read the plot: the first, and from each to the next. `None` when
    /// its lines have different ones.
    fn times(&self) -> Option<String> {
        let times = |line: &Line| -> Vec<i64> { line.points.iter().map(|point| point.0).collect() };
        let first = times(self.lines.first()?);
        if first.is_empty() || self.lines.iter().any(|line| times(line) != first) {
            return None;
        }
        let steps = first.windows(2).map(|two| two[1] - two[0]);
        let all: Vec<String> = std::iter::once(first[0]).chain(steps).map(|ms| ms.to_string()).collect();
        Some(all.join(" "))
    }

    /// What the plot says, in words.
    fn summary(&self) -> String {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| {
                let most = line.points.iter().filter_map(|point| point.1).fold(0.0, f64::max);
                format!("{}: {} now, {} at most", line.label, self.last(line), self.tick(most))
            })
            .collect();
        format!("{}. {}.", self.title, lines.join("; "))
    }

    fn tick(&self, value: f64) -> String {
        if self.ms {
            span(value.round() as i64)
        } else if value < 10.0 && value.fract() != 0.0 {
            format!("{value:.1}")
        } else {
            number(value.round() as i64)
        }
    }

    /// Days where the plot is longer than two, else times of day.
    fn at(&self, first: i64, last: i64, at: i64) -> String {
        if is_time(first, last) {
            return time_of_day(at);
        }
        match jiff::Timestamp::from_millisecond(at) {
            Ok(time) => time.strftime("%Y-%m-%d").to_string(),
            Err(_) => String::new(),
        }
    }
}

/// Whether a plot over this time names times of day, which scripts show in the zone of the reader.
fn is_time(first: i64, last: i64) -> bool {
    last - first < 2 * 86_400_000
}

/// The next of 1, 2, 4, 10, 20, 40 … that holds the value; four equal steps of it are easy to read.
fn ceiling(value: f64) -> f64 {
    let mut step = 1.0;
    loop {
        for times in [1.0, 2.0, 4.0] {
            if value <= step * times {
                return (step * times).max(4.0);
            }
        }
        step *= 10.0;
    }
}

/// The values of a line; nothing where there is none.
fn listed_values(line: &Line) -> String {
    let value = |point: &(i64, Option<f64>)| point.1.map_or(String::new(), |value| round(value).to_string());
    line.points.iter().map(value).collect::<Vec<_>>().join(",")
}

fn path(line: &Line, x: &dyn Fn(i64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut text = String::new();
    let mut drawing = false;
    for (at, value) in &line.points {
        match value {
            Some(value) => {
                let (x, y) = (round(x(*at)), round(y(*value)));
                text.push_str(&format!("{}{x} {y}", if drawing { 'L' } else { 'M' }));
                drawing = true;
            }
            None => drawing = false,
        }
    }
    text
}

/// Points without a neighbour to draw a line to.
fn alone(line: &Line) -> Vec<(i64, f64)> {
    let there = |at: usize| line.points.get(at).is_some_and(|point| point.1.is_some());
    let alone = |at: &usize| !there(at.wrapping_sub(1)) && !there(at + 1);
    (0..line.points.len())
        .filter(alone)
        .filter_map(|at| Some((line.points[at].0, line.points[at].1?)))
        .collect()
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_holds_its_values() {
        assert_eq!([0.0, 3.0, 5.0, 41.0, 100.0, 2500.0].map(ceiling), [4.0, 4.0, 10.0, 100.0, 100.0, 4000.0]);
    }

    #[test]
    fn a_missing_value_breaks_the_line() {
        let line =
            Line { label: "a", points: vec![(0, Some(1.0)), (1, Some(2.0)), (2, None), (3, Some(1.0))] };
        assert_eq!(path(&line, &|at| at as f64, &|value| value), "M0 1L1 2M3 1");
        assert_eq!(alone(&line), [(3, 1.0)]);
    }

    #[test]
    fn scripts_read_times_and_values() {
        let line = |points| Line { label: "a", points };
        let one = line(vec![(1000, Some(1.25)), (1500, None), (3000, Some(7.0))]);
        assert_eq!(listed_values(&one), "1.3,,7");
        let chart = |lines| Chart { title: "t", lines, ms: false };
        assert_eq!(chart(vec![one]).times().as_deref(), Some("1000 500 1500"));
        assert_eq!(chart(vec![line(vec![(1, None)]), line(vec![(2, None)])]).times(), None);
    }

    #[test]
    fn a_plot_of_nothing_is_drawn() {
        let svg = Chart { title: "Wait", lines: vec![Line { label: "a", points: vec![] }], ms: true }.draw();
        assert!(svg.into_string().contains("a: – now"));
    }
}
