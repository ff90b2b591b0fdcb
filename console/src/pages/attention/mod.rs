//! What needs a person: pauses, queues that nobody serves, dead jobs, signals that jobs wait for, failures that grow,
//! bounds that come near, copies that are broken.

mod growing;
mod queues;

use std::collections::BTreeMap;

use futures_util::future::join3;
use maud::{html, Markup};

pub use self::growing::pace_now;
pub use self::queues::{is_unserved, rows as queue_rows, Looked, Only};
use super::board::ROWS;
use crate::app::RequestContext;
use crate::connection::board_command;
use crate::connection::reply::{bytes, int, page, Record};
use crate::failure::Failure;
use crate::format::{at, board_address, jobs_address, name, number, size, span};
use crate::names::address;
use crate::server_memory::Memory;

/// Blocked jobs that are looked at for signals: so many pages of so many.
const WAITING_PAGES: usize = 10;
const WAITING: usize = 1000;

/// The timer is late from here on, ms.
const LATE: i64 = 1000;

/// A bound is near from this share on, percent.
const NEAR: i64 = 80;

/// Entries of one board among those of several; also idle queues that are tried for dead jobs.
pub const MOST: usize = 8;

type Found = Result<Vec<Need>, Failure>;

/// One thing, the worst first by `weight`.
pub struct Need {
    pub weight: i64,
    pub text: Markup,
    pub to: String,
    pub link: &'static str,
    pub acts: Vec<Act>,
}

/// What a reader who may act can do about it: an action that is shown before it is done.
pub struct Act {
    pub to: String,
    pub text: &'static str,
    /// What it is about, for those who hear the page.
    pub about: Vec<u8>,
}

impl Need {
    /// With an action: fields of the address that asks about it.
    fn with_act(self, text: &'static str, about: &[u8], fields: &[(&str, &[u8])]) -> Self {
        let mut acts = self.acts;
        acts.push(Act { to: address("/confirm", fields), text, about: about.to_vec() });
        Self { acts, ..self }
    }
}

/// What a board needs a person for.
pub async fn of(cx: &RequestContext, board: &[u8], info: &Record) -> Result<Vec<Need>, Failure> {
    let mut needs = of_the_board(board, info);
    let ((queues, failures), signals, bounds) =
        join3(of_queues(cx, board, info), awaited(cx, board, info), near(cx, board, info)).await;
    let mut refused = false;
    for found in [queues, failures, signals, bounds] {
        match found {
            Ok(found) => needs.extend(found),
            Err(Failure::NotAllowed(_) | Failure::Server(_)) => refused = true,
            Err(failure) => return Err(failure),
        }
    }
    if refused {
        needs.push(Need {
            weight: 0,
            text: html! { "The server refused a part of what this list needs: something may be missing here" },
            to: board_address("/board", board),
            link: "Board",
            acts: Vec::new(),
        });
    }
    needs.sort_by_key(|need| std::cmp::Reverse(need.weight));
    Ok(needs)
}

/// What their queues need, and the kinds of failure, for which dead queues count as well. The second is there
/// also when the server refuses to list the queues.
async fn of_queues(cx: &RequestContext, board: &[u8], info: &Record) -> (Found, Found) {
    let looked = queues::rows(cx, board).await;
    let dead = match &looked {
        Ok(looked) => queues::dead(cx, board, &looked.rows).await,
        Err(_) => Vec::new(),
    };
    let failures = growing::needs(cx, board, info, &dead).await;
    (looked.map(|looked| queues::needs(board, info, &looked, &dead)), failures)
}

fn of_the_board(board: &[u8], info: &Record) -> Vec<Need> {
    let mut needs = Vec::new();
    if info.int("broken") == 1 {
        needs.push(Need {
            weight: i64::MAX,
            text: html! { "This copy of the board is broken: a change of the replication stream was missing" },
            to: board_address("/board", board),
            link: "Board",
            acts: Vec::new(),
        });
    }
    if info.int("paused") != 0 {
        let need = Need {
            weight: 1 << 50,
            text: html! { "The board is paused" (until(info.int("paused"))) },
            to: board_address("/board", board),
            link: "Board",
            acts: Vec::new(),
        };
        needs.push(need.with_act("Resume", board, &[("b", board), ("verb", b"resume")]));
    }
    let late = ["lease-lateness-p99", "due-lateness-p99", "fire-lateness-p99"];
    let lag = late.iter().map(|field| info.int(field)).max().unwrap_or(0);
    if lag > LATE {
        needs.push(Need {
            weight: lag,
            text: html! { "Timer lag: today the server handled 1 % of deadlines " (span(lag)) " late or later" },
            to: board_address("/stats", board),
            link: "Statistics",
            acts: Vec::new(),
        });
    }
    needs
}

fn until(moment: i64) -> Markup {
    html! { @if moment > 0 { " until " (at(moment)) } }
}

/// Signals that jobs wait for.
async fn awaited(cx: &RequestContext, board: &[u8], info: &Record) -> Found {
    if info.int("blocked") == 0 {
        return Ok(Vec::new());
    }
    // How many jobs, the oldest wait, and the first of the jobs.
    let mut found: BTreeMap<Vec<u8>, (i64, i64, Vec<u8>)> = BTreeMap::new();
    let (mut cursor, mut looked) = (Some(b"0".to_vec()), 0);
    for _ in 0..WAITING_PAGES {
        let Some(from) = cursor.take() else { break };
        let mut command = board_command("LIST", board);
        command.arg("STATE").arg("blocked").arg("CURSOR").arg(&from).arg("COUNT").arg(WAITING);
        command.arg("FIELDS").arg(2).arg("id").arg("awaits");
        let (next, rows) = page(cx.ask_shared(board, command).await?);
        looked += rows.len() as i64;
        for row in rows.iter().filter(|row| row.has("awaits")) {
            let wait = row.record("awaits");
            let since = wait.int("since");
            for signal in wait.list("missing").iter().map(bytes) {
                let (count, oldest, _) = found.entry(signal).or_insert_with(|| (0, since, row.bytes("id")));
                (*count, *oldest) = (*count + 1, since.min(*oldest));
            }
        }
        cursor = next;
    }
    let whole = cursor.is_none();
    let need = |(signal, (count, oldest, first)): (Vec<u8>, (i64, i64, Vec<u8>))| Need {
        weight: (1 << 22) + count,
        text: html! {
            @if !whole { "At least " } (number(count)) @if count == 1 { " job waits" } @else { " jobs wait" }
            " for the signal " (name(&signal)) ", the oldest since " (at(oldest))
        },
        to: match count == 1 && whole {
            true => address("/job", &[("b", board), ("id", &first)]),
            false => jobs_address(board, &[("awaits", &signal)]),
        },
        link: if count == 1 && whole { "Job" } else { "Jobs" },
        acts: Vec::new(),
    };
    let mut needs: Vec<Need> = found.into_iter().map(need).collect();
    if cursor.is_some() {
        needs.push(Need {
            weight: 1 << 21,
            text: html! {
                "Signals were looked for in the first " (number(looked)) " of " (number(info.int("blocked")))
                " blocked jobs: others may wait for an answer. Find them with awaits: and the name of the signal"
            },
            to: jobs_address(board, &[("state", b"blocked")]),
            link: "Jobs",
            acts: Vec::new(),
        });
    }
    Ok(needs)
}

/// Bounds of the board that are nearly reached.
async fn near(cx: &RequestContext, board: &[u8], info: &Record) -> Found {
    let mut command = board_command("SETTINGS GET", board);
    command.arg("max-jobs").arg("max-bytes");
    let settings = Record::read(cx.ask_shared(board, command).await?).unwrap_or_default();
    let bound = |setting: &str| settings.list(setting).first().and_then(int).filter(|bound| *bound > 0);
    let live = ["scheduled", "blocked", "ready", "claimed"].iter().map(|state| info.int(state)).sum();
    let mut needs = Vec::new();
    for (setting, used, shown) in
        [("max-jobs", live, number as fn(i64) -> String), ("max-bytes", info.int("record-bytes"), size)]
    {
        if let Some(bound) = bound(setting).filter(|bound| is_near(used, *bound)) {
            needs.push(Need {
                weight: 1 << 35,
                text: html! { (shown(used)) " of " (shown(bound)) " that " (setting) " allows: the server refuses posts above it" },
                to: board_address("/settings", board),
                link: "Settings",
                acts: Vec::new(),
            });
        }
    }
    Ok(needs)
}

fn is_near(used: i64, bound: i64) -> bool {
    i128::from(used) * 100 > i128::from(bound) * i128::from(NEAR)
}

/// What a server needs a person for, whichever boards it has.
pub fn of_server(memory: &Memory) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut add =
        |weight, text| needs.push(Need { weight, text, to: String::new(), link: "", acts: Vec::new() });
    if memory.most > 0 && is_near(memory.used, memory.most) {
        let text = html! {
            "The server" (memory.node()) " uses " (size(memory.used)) " of " (size(memory.most))
            " that maxmemory allows: the server refuses posts above it"
        };
        add(1 << 45, text);
    }
    if memory.most > 0 && memory.policy.starts_with("allkeys") {
        let text = html! {
            "The server" (memory.node()) " deletes boards when its memory is full: maxmemory-policy is "
            (memory.policy) ", set it to noeviction"
        };
        add(1 << 46, text);
    }
    needs
}

/// The list: of one board, or with `names` the first of several boards. Who may act finds the actions in it.
pub fn draw(cx: &RequestContext, needs: &[(&[u8], Vec<Need>)], names: bool) -> Markup {
    let most = if names { MOST } else { ROWS };
    let more = needs.iter().map(|(_, needs)| needs.len().saturating_sub(most)).sum::<usize>();
    html! {
        @if needs.iter().all(|(_, needs)| needs.is_empty()) { p.calm { "Nothing needs you." } } @else {
            ul.needs {
                @for (board, needs) in needs {
                    @for need in needs.iter().take(most) {
                        li {
                            @if names && board.is_empty() { span.where { "Server" } " " }
                            @else if names { a.where href=(address("/board", &[("b", board)])) { (name(board)) } " " }
                            span { (need.text) } " "
                            @if !need.to.is_empty() { a href=(need.to) { (need.link) } }
                            @for act in need.acts.iter().filter(|_| cx.may_write()) {
                                " " a.button href=(act.to) { (act.text) span.unseen { " " (name(&act.about)) } }
                            }
                        }
                    }
                }
            }
            @if more > 0 { p.note { (number(more as i64)) " more" @if names { ", on the pages of their boards" } "." } }
        }
    }
}
