//! Finding text in what a job's runs wrote: log lines, messages of failures, output.

use maud::{html, Markup};

use super::output;
use crate::app::RequestContext;
use crate::connection::reply::Record;
use crate::failure::Failure;
use crate::format::{at, number};
use crate::names::{lines, own, shown};
use crate::pages::layout::hidden;

/// Lines that are shown, the last ones.
const MOST: usize = 200;

/// Characters of a line around the text.
const AROUND: usize = 160;

/// What an open page remembers: the lines of output, and how many chunks were searched for them.
#[derive(Default)]
pub struct Found {
    searched: i64,
    hits: Vec<Hit>,
}

/// A line with the text.
#[derive(Clone, Debug, PartialEq)]
struct Hit {
    /// Of a log line its time; output has none.
    at: Option<i64>,
    line: String,
}

/// The field, once there is something to search.
pub fn form(cx: &RequestContext, board: &[u8], id: &[u8], entries: &[Record], has_output: bool) -> Markup {
    let text = cx.query.bytes("find").unwrap_or_default();
    let is_written = has_output || entries.iter().any(|entry| entry.has("message"));
    html! {
        @if is_written {
            form.filters action={ (own("/job")) "#found" } role="search" aria-label="Log and output" {
                (hidden("b", board))
                (hidden("id", id))
                label { "Find in log and output " input type="search" name="find" value=(shown(text)); }
                button { "Find" }
            }
        }
    }
}

/// The lines that have the text, when one is asked for. Output is searched again when some was written.
pub async fn draw(
    cx: &RequestContext,
    board: &[u8],
    id: &[u8],
    entries: &[Record],
    written: i64,
    found: &mut Found,
) -> Result<Markup, Failure> {
    let Some(text) = cx.query.bytes("find").filter(|text| !text.is_empty()) else { return Ok(html! {}) };
    let wanted = shown(text).to_lowercase();
    if found.searched != written {
        let (output, searched) = output::all(cx, board, id).await?;
        *found = Found { searched, hits: hits_in(&output, &wanted, None) };
    }
    let log =
        entries.iter().flat_map(|entry| hits_in(&entry.bytes("message"), &wanted, Some(entry.int("at"))));
    let log: Vec<Hit> = log.collect();
    let all = log.len() + found.hits.len();
    Ok(html! {
        p role="status" {
            @match all { 0 => "No line", 1 => "1 line", all => { (number(all as i64)) " lines" } }
            " of log and output " @if all < 2 { "has" } @else { "have" } " " b { (shown(text)) } ", as far as the server keeps them."
            @if all > MOST { " The last " (MOST) ":" }
        }
        ol.hits {
            @for hit in log.iter().chain(&found.hits).skip(all.saturating_sub(MOST)) {
                li {
                    span.faint { @match hit.at { Some(moment) => { "Log " (at(moment)) }, None => "Output" } } " "
                    code { (marked(&hit.line, &wanted)) }
                }
            }
        }
    })
}

fn hits_in(text: &[u8], wanted: &str, at: Option<i64>) -> Vec<Hit> {
    let text = lines(text);
    let hits = text.lines().filter(|line| line.to_lowercase().contains(wanted));
    hits.map(|line| Hit { at, line: line.to_owned() }).collect()
}

/// The parts of a line: in turn those without the text and those with it.
fn parts<'a>(line: &'a str, wanted: &str) -> Vec<&'a str> {
    // Where small letters take other bytes than capitals, nothing is marked.
    let small = line.to_lowercase();
    if wanted.is_empty() || small.len() != line.len() {
        return vec![line];
    }
    let mut found = Vec::new();
    let mut from = 0;
    for (at, _) in small.match_indices(wanted) {
        if let (Some(before), Some(hit)) = (line.get(from..at), line.get(at..at + wanted.len())) {
            found.extend([before, hit]);
            from = at + wanted.len();
        }
    }
    found.push(line.get(from..).unwrap_or_default());
    found
}

/// A line with the text marked, cut where it is long.
fn marked(line: &str, wanted: &str) -> Markup {
    let parts = parts(line, wanted);
    html! {
        @for (number, part) in parts.iter().enumerate() {
            @if number % 2 == 1 { mark { (part) } }
            @else { (cut(part, number > 0, number + 1 < parts.len())) }
        }
    }
}

/// A part without the text, of which what is near to the text stays.
fn cut(part: &str, follows: bool, precedes: bool) -> String {
    let all = part.chars().count();
    let near = AROUND / 2;
    match (follows, precedes) {
        _ if all <= AROUND => part.to_owned(),
        (false, true) => format!("…{}", part.chars().skip(all - near).collect::<String>()),
        (true, true) => {
            let end: String = part.chars().skip(all - near).collect();
            format!("{}…{end}", part.chars().take(near).collect::<String>())
        }
        _ => format!("{}…", part.chars().take(AROUND).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_with_the_text_is_found_whatever_its_case() {
        let found = hits_in(b"box 1\nno Box\nbag\n", "box", Some(7));
        let lines: Vec<&str> = found.iter().map(|hit| hit.line.as_str()).collect();
        assert_eq!(lines, ["box 1", "no Box"]);
        assert_eq!(parts("a Box in a box", "box"), ["a ", "Box", " in a ", "box", ""]);
        // The small İ takes a byte more.
        assert_eq!(parts("İ box", "box"), ["İ box"]);
    }

    #[test]
    fn long_lines_keep_what_is_near_the_text() {
        let long = "x".repeat(1000);
        assert_eq!(cut(&long, false, true).chars().count(), AROUND / 2 + 1);
        assert_eq!(cut(&long, true, true).chars().count(), AROUND + 1);
        assert!(cut(&long, true, false).ends_with('…') && cut("short", true, true) == "short");
    }
}
