//! Text in the OpenMetrics format, version 1.0: families of samples, each family in one piece.

use std::fmt::Write;

use board::Histogram;

/// The kinds of families.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rises and falls.
    Gauge,
    /// Only rises, or starts again.
    Counter,
    /// A distribution.
    Histogram,
}

/// The head of a family.
pub struct Family {
    /// Its name, without suffix.
    pub name: &'static str,
    /// Its kind, which determines the suffixes of its samples.
    pub kind: Kind,
    /// The unit at the end of its name, or none.
    pub unit: &'static str,
    /// Its help text, one line.
    pub help: &'static str,
}

/// Upper bounds of the buckets of histograms, ms. Each is also the bound of a bin of [`Histogram`],
/// so that counts are exact.
const BOUNDS: [u64; 18] = [
    1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 600_000, 3_600_000,
    21_600_000, 86_400_000,
];

/// The samples of all families, collected in any order.
pub struct Text {
    families: &'static [Family],
    samples: Vec<String>,
    len: usize,
}

/// Labels of a sample: names and values, not escaped.
pub type Labels<'a> = &'a [(&'a str, &'a [u8])];

impl Text {
    /// A text of these families, without samples.
    pub fn new(families: &'static [Family]) -> Text {
        Text { families, samples: vec![String::new(); families.len()], len: 0 }
    }

    /// Bytes of all samples so far.
    pub fn len(&self) -> usize {
        self.len
    }

    fn line(&mut self, name: &str, suffix: &str, labels: Labels<'_>, value: &str) {
        let at = self.families.iter().position(|family| family.name == name);
        let Some(out) = at.and_then(|at| self.samples.get_mut(at)) else { return };
        let before = out.len();
        out.push_str(name);
        out.push_str(suffix);
        for (n, (label, value)) in labels.iter().enumerate() {
            out.push(if n == 0 { '{' } else { ',' });
            out.push_str(label);
            out.push_str("=\"");
            escape(out, value);
            out.push('"');
        }
        if !labels.is_empty() {
            out.push('}');
        }
        out.push(' ');
        out.push_str(value);
        out.push('\n');
        self.len += out.len() - before;
    }

    /// A sample of a gauge.
    pub fn gauge(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.line(name, "", labels, &value.to_string());
    }

    /// A sample of a counter that began at `created`, Unix ms.
    pub fn counter(&mut self, name: &str, labels: Labels<'_>, value: u64, created: i64) {
        self.line(name, "_total", labels, &value.to_string());
        self.line(name, "_created", labels, &seconds(created as u64));
    }

    /// The samples of a histogram of seconds that began at `created`, Unix ms.
    pub fn histogram(&mut self, name: &str, labels: Labels<'_>, dist: &Histogram, created: i64) {
        let mut bins = dist.bins().peekable();
        let mut below = 0u64;
        for bound in BOUNDS {
            while let Some((_, _, n)) = bins.next_if(|(_, to, _)| *to <= bound) {
                below = below.saturating_add(n);
            }
            self.bucket(name, labels, &seconds(bound), below);
        }
        self.bucket(name, labels, "+Inf", dist.count());
        self.line(name, "_count", labels, &dist.count().to_string());
        self.line(name, "_sum", labels, &seconds(dist.sum()));
        self.line(name, "_created", labels, &seconds(created as u64));
    }

    fn bucket(&mut self, name: &str, labels: Labels<'_>, bound: &str, below: u64) {
        let mut labels = labels.to_vec();
        labels.push(("le", bound.as_bytes()));
        self.line(name, "_bucket", &labels, &below.to_string());
    }

    /// The whole text: heads and samples of the families that have any.
    pub fn finish(self) -> String {
        let mut out = String::new();
        for (family, samples) in self.families.iter().zip(self.samples).filter(|(_, s)| !s.is_empty()) {
            let kind = match family.kind {
                Kind::Gauge => "gauge",
                Kind::Counter => "counter",
                Kind::Histogram => "histogram",
            };
            let Family { name, unit, help, .. } = family;
            // Writing to memory cannot fail.
            let _ = writeln!(out, "# TYPE {name} {kind}");
            if !unit.is_empty() {
                let _ = writeln!(out, "# UNIT {name} {unit}");
            }
            let _ = writeln!(out, "# HELP {name} {help}");
            out.push_str(&samples);
        }
        out.push_str("# EOF\n");
        out
    }
}

/// A number of ms in seconds, exactly.
fn seconds(ms: u64) -> String {
    match ms % 1000 {
        0 => format!("{}.0", ms / 1000),
        rest => format!("{}.{rest:03}", ms / 1000).trim_end_matches('0').to_string(),
    }
}

/// Bytes as the value of a label. Bytes that are not UTF-8 become text such as `\xff`.
fn escape(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\\\x{byte:02x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILIES: [Family; 2] = [
        Family { name: "wait_seconds", kind: Kind::Histogram, unit: "seconds", help: "Waits." },
        Family { name: "unused", kind: Kind::Gauge, unit: "", help: "Nothing." },
    ];

    #[test]
    fn buckets_hold_all_up_to_their_bound() {
        for bound in BOUNDS {
            for (ms, within) in [(bound as i64, 1), (bound as i64 + 1, 0)] {
                let mut dist = Histogram::default();
                dist.add(ms);
                let mut text = Text::new(&FAMILIES);
                text.histogram("wait_seconds", &[("q", b"a\"\\\n\xff")], &dist, 1_500);
                let text = text.finish();
                let line = format!("le=\"{}\"}} {within}\n", seconds(bound));
                assert!(text.contains(&line), "{line} in {text}");
                assert!(text.contains("wait_seconds_count{q=\"a\\\"\\\\\\n\\\\xff\"} 1\n"), "{text}");
                assert!(text.contains("_created{q=\"a\\\"\\\\\\n\\\\xff\"} 1.5\n"));
                assert!(text.ends_with("# EOF\n") && !text.contains("unused"));
            }
        }
    }

    #[test]
    fn seconds_are_exact() {
        let texts = [0, 5, 10, 100, 1_000, 1_010, 60_000].map(seconds);
        assert_eq!(texts, ["0.0", "0.005", "0.01", "0.1", "1.0", "1.01", "60.0"]);
    }
}
