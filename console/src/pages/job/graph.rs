//! The jobs that a job waits for and that wait for it, its parents and children, drawn as SVG.

use std::collections::{HashMap, HashSet};

use maud::{html, Markup};
use redis::Value;

use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, list, page, records, Record};
use crate::failure::Failure;
use crate::format::{job_link, number, state, word};
use crate::names::{address, short, shown};

/// No more jobs are drawn.
const MOST: usize = 60;

/// Of children and of those that wait, so many.
const FAN: usize = 25;

const BOX: (f64, f64) = (168.0, 40.0);
const GAP: (f64, f64) = (56.0, 14.0);
const EDGE: f64 = 8.0;

const FIELDS: [&str; 7] = ["id", "state", "name", "after", "parent", "children", "progress"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bond {
    /// The second waits for the first.
    Waits,
    /// The first is a part of the second.
    Part,
}

#[derive(Default)]
struct Net {
    nodes: Vec<(Vec<u8>, Option<Record>)>,
    index: HashMap<Vec<u8>, usize>,
    edges: Vec<(usize, usize, Bond)>,
    cut: bool,
}

impl Net {
    /// The place of a job, which is added when there is room.
    fn place(&mut self, id: &[u8]) -> Option<usize> {
        if let Some(&at) = self.index.get(id) {
            return Some(at);
        }
        if self.nodes.len() >= MOST {
            self.cut = true;
            return None;
        }
        self.nodes.push((id.to_vec(), None));
        self.index.insert(id.to_vec(), self.nodes.len() - 1);
        Some(self.nodes.len() - 1)
    }

    fn join(&mut self, from: &[u8], to: &[u8], bond: Bond) {
        if let (Some(from), Some(to)) = (self.place(from), self.place(to)) {
            if from != to && !self.edges.contains(&(from, to, bond)) {
                self.edges.push((from, to, bond));
            }
        }
    }

    /// Notes a record, and what it names.
    fn note(&mut self, record: Record) {
        let id = record.bytes("id");
        for other in record.list("after").iter().map(bytes) {
            self.join(&other, &id, Bond::Waits);
        }
        if record.has("parent") {
            self.join(&id, &record.bytes("parent"), Bond::Part);
        }
        if let Some(at) = self.place(&id) {
            self.nodes[at].1 = Some(record);
        }
    }

    fn without_record(&self, asked: &HashSet<Vec<u8>>) -> Vec<Vec<u8>> {
        let open = self.nodes.iter().filter(|(id, record)| record.is_none() && !asked.contains(id));
        open.map(|(id, _)| id.clone()).collect()
    }
}

pub async fn draw(cx: &RequestContext, board: &[u8], record: &Record) -> Result<Markup, Failure> {
    let id = record.bytes("id");
    let mut net = Net::default();
    net.note(record.clone());
    if record.int("children") > 0 {
        children(cx, board, &id, &mut net).await?;
    }
    waiting(cx, board, &id, &mut net).await?;
    upwards(cx, board, &mut net).await?;
    Ok(html! {
        @if net.edges.is_empty() { p { "None: it waits for no other job, no job waits for it, and it has neither parent nor children." } }
        @else {
            (picture(board, &id, &net))
            details { summary { "As a table" } (table(board, &net)) }
            @if net.cut { p.note { "There are more; " (MOST) " are drawn at most." } }
        }
        @if record.int("children") > 0 { p { (number(record.int("children"))) " children." } }
    })
}

async fn children(cx: &RequestContext, board: &[u8], id: &[u8], net: &mut Net) -> Result<(), Failure> {
    let mut command = board_command("GET", board);
    command.arg(id).arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS).arg("CHILDREN").arg("COUNT").arg(FAN + 1);
    let mut reply = list(cx.ask(board, command).await?).into_iter().skip(1);
    let is_whole = reply.next().is_none_or(|cursor| bytes(&cursor) == b"0");
    let mut found = records(reply.next().unwrap_or(Value::Nil));
    net.cut |= !is_whole || found.len() > FAN;
    found.truncate(FAN);
    for child in found {
        net.note(child);
    }
    Ok(())
}

/// The jobs that wait for it.
async fn waiting(cx: &RequestContext, board: &[u8], id: &[u8], net: &mut Net) -> Result<(), Failure> {
    let mut command = board_command("LIST", board);
    command.arg("AFTER").arg(id).arg("COUNT").arg(FAN + 1).arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
    let (next, mut found) = page(cx.ask(board, command).await?);
    net.cut |= next.is_some() || found.len() > FAN;
    found.truncate(FAN);
    found.into_iter().for_each(|record| net.note(record));
    Ok(())
}

/// What those in the picture wait for and are parts of, and so on.
async fn upwards(cx: &RequestContext, board: &[u8], net: &mut Net) -> Result<(), Failure> {
    let mut asked = HashSet::new();
    loop {
        let open = net.without_record(&asked);
        if open.is_empty() {
            return Ok(());
        }
        let mut command = board_command("MGET", board);
        command.arg(open.len()).arg(&open).arg("FIELDS").arg(FIELDS.len()).arg(&FIELDS);
        asked.extend(open);
        for record in records(cx.ask(board, command).await?) {
            net.note(record);
        }
    }
}

/// Columns from left to right along the edges; of a circle, as far as the number of jobs allows.
fn columns(count: usize, edges: &[(usize, usize, Bond)]) -> Vec<usize> {
    let mut column = vec![0; count];
    for _ in 0..count {
        let mut moved = false;
        for (from, to, _) in edges {
            if column[*to] <= column[*from] && column[*from] + 1 < count {
                column[*to] = column[*from] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    // Close empty columns.
    let mut used: Vec<usize> = column.clone();
    used.sort_unstable();
    used.dedup();
    column.iter().map(|at| used.binary_search(at).unwrap_or(0)).collect()
}

fn picture(board: &[u8], of: &[u8], net: &Net) -> Markup {
    let column = columns(net.nodes.len(), &net.edges);
    let mut filled: HashMap<usize, usize> = HashMap::new();
    let spots: Vec<(f64, f64)> = column
        .iter()
        .map(|at| {
            let row = filled.entry(*at).or_default();
            *row += 1;
            let x = EDGE + *at as f64 * (BOX.0 + GAP.0);
            (x, EDGE + (*row - 1) as f64 * (BOX.1 + GAP.1))
        })
        .collect();
    let rows = filled.values().max().copied().unwrap_or(1) as f64;
    let wide = column.iter().max().copied().unwrap_or(0) as f64 + 1.0;
    let width = wide * (BOX.0 + GAP.0) - GAP.0 + 2.0 * EDGE;
    let height = rows * (BOX.1 + GAP.1) + 2.0 * EDGE;
    html! {
        div.wide tabindex="0" role="group" aria-label="Graph" {
            svg.graph viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="group"
                aria-label={ (net.nodes.len()) " jobs, from those that come first to those that come last" } {
                @for (from, to, bond) in &net.edges { (arrow(spots[*from], spots[*to], *bond)) }
                @for (number, (id, record)) in net.nodes.iter().enumerate() {
                    (node(board, id, record.as_ref(), spots[number], id == of))
                }
            }
        }
        p.faint.legend { span.key.waits { "waits for" } " " span.key.part { "is a child of" } }
    }
}

fn arrow(from: (f64, f64), to: (f64, f64), bond: Bond) -> Markup {
    let (x1, y1) = (from.0 + BOX.0, from.1 + BOX.1 / 2.0);
    let (x2, y2) = (to.0, to.1 + BOX.1 / 2.0);
    let bend = GAP.0 / 2.0;
    // One that passes other boxes goes round below them.
    let dip = if x2 - x1 > BOX.0 { y1.max(y2) + BOX.1 } else { 0.0 };
    let (down1, down2) = (y1.max(dip), y2.max(dip));
    let class = if bond == Bond::Waits { "edge waits" } else { "edge part" };
    html! {
        path class=(class) d={ "M" (x1) " " (y1) "C" (x1 + bend) " " (down1) " " (x2 - bend) " " (down2) " " (x2 - 6.0) " " (y2) } {}
        path class={ (class) " head" } d={ "M" (x2) " " (y2) "l-7 -4v8z" } {}
    }
}

fn node(board: &[u8], id: &[u8], record: Option<&Record>, at: (f64, f64), here: bool) -> Markup {
    let state = record.map_or(String::new(), |record| record.text("state"));
    let word = if state.is_empty() { "no record" } else { word(&state) };
    let class = format!("node {state}{}", if here { " here" } else { "" });
    let told = format!("{}, {word}", shown(id));
    html! {
        a class=(class) href=(address("/job", &[("b", board), ("id", id)])) aria-label=(told) {
            title { (told) }
            rect x=(at.0) y=(at.1) width=(BOX.0) height=(BOX.1) rx="5" {}
            text x=(at.0 + 10.0) y=(at.1 + 16.0) { (label(id, record)) }
            text.under x=(at.0 + 10.0) y=(at.1 + 32.0) {
                (word) @if record.is_some_and(|record| record.has("name")) { " · " (tail(id, 13)) }
            }
        }
    }
}

/// The name of a job, by which people know it; without one its id.
fn label(id: &[u8], record: Option<&Record>) -> String {
    match record.filter(|record| record.has("name")) {
        Some(record) => short(&record.bytes("name"), 18),
        None => tail(id, 18),
    }
}

/// The end of an id, which tells those apart that the server has made.
fn tail(id: &[u8], most: usize) -> String {
    let text = shown(id);
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    format!("…{}", text.chars().skip(count - most + 1).collect::<String>())
}

fn table(board: &[u8], net: &Net) -> Markup {
    let of = |at: usize| &net.nodes[at].0;
    html! {
        table {
            thead { tr { th scope="col" { "Job" } th scope="col" { "state" } th scope="col" { "waits for" } th scope="col" { "is a child of" } } }
            tbody {
                @for (at, (id, record)) in net.nodes.iter().enumerate() {
                    tr {
                        th scope="row" { (job_link(board, id)) }
                        td { (state(&record.as_ref().map_or("no record".into(), |record| record.text("state")))) }
                        td { @for (from, to, bond) in &net.edges { @if *to == at && *bond == Bond::Waits { (job_link(board, of(*from))) " " } } }
                        td { @for (from, to, bond) in &net.edges { @if *from == at && *bond == Bond::Part { (job_link(board, of(*to))) " " } } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_stands_to_the_right() {
        let edges = [(0, 1, Bond::Waits), (1, 2, Bond::Waits), (0, 2, Bond::Waits), (3, 2, Bond::Part)];
        assert_eq!(columns(4, &edges), [0, 1, 2, 0]);
    }

    #[test]
    fn ids_are_told_apart_by_their_ends() {
        assert_eq!(tail(b"0195f3aa-77bc-7c1e-9f20-5a1b2c3d4e5f", 9), "…2c3d4e5f");
        assert_eq!(tail(b"short", 9), "short");
    }

    #[test]
    fn a_circle_comes_to_an_end() {
        let columns = columns(3, &[(0, 1, Bond::Waits), (1, 2, Bond::Waits), (2, 0, Bond::Part)]);
        assert!(columns.iter().all(|at| *at < 3));
    }

    #[test]
    fn a_net_has_bounds() {
        let mut net = Net::default();
        for number in 0..MOST * 2 {
            net.join(b"first", format!("{number}").as_bytes(), Bond::Waits);
        }
        assert_eq!((net.nodes.len(), net.cut), (MOST, true));
    }
}
