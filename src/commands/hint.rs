//! Which options are allowed at a place of a call, by the syntax of its command.

use std::collections::BTreeSet;

use crate::commands::args::Args;
use crate::redis::command_docs::{parse, Kind, Node};

/// The option that takes all words behind it.
const LAST: &str = "CLAIM";

/// The words of a call that may be options.
type Given = BTreeSet<String>;

/// The options that are allowed in place of a word that is none of them.
pub fn options_at(syntax: &str, args: &Args<'_>) -> Vec<String> {
    let given = args.before().filter_map(|word| std::str::from_utf8(word).ok());
    let given: Given = given.filter(|word| word.len() <= 16).map(str::to_ascii_uppercase).collect();
    let mut options = Vec::new();
    sequence(&parse(syntax, true), &given, &mut options);
    options
}

fn is_given(node: &Node, given: &Given) -> bool {
    node.token.as_ref().is_some_and(|token| given.contains(token))
}

/// A required word separates the options before it from those after it.
fn sequence(nodes: &[Node], given: &Given, options: &mut Vec<String>) {
    let last = nodes.last().filter(|node| node.inside.first().is_some_and(|first| is_last(first, given)));
    if let Some(last) = last {
        return sequence(&last.inside, given, options);
    }
    let needed = |node: &Node| node.token.is_some() && !node.optional;
    let from = nodes.iter().rposition(|node| needed(node) && is_given(node, given)).map_or(0, |at| at + 1);
    for node in nodes.iter().skip(from) {
        one(node, given, options);
        if needed(node) {
            return;
        }
    }
}

fn is_last(node: &Node, given: &Given) -> bool {
    node.token.as_deref() == Some(LAST) && is_given(node, given)
}

fn one(node: &Node, given: &Given, options: &mut Vec<String>) {
    match (&node.token, node.kind) {
        (Some(token), _) => options.push(token.clone()),
        (None, Kind::OneOf) => {
            // An option that only one alternative has selects this alternative.
            let own = |of: &Node| {
                let mut others = BTreeSet::new();
                node.inside.iter().filter(|other| *other != of).for_each(|other| tokens(other, &mut others));
                let mut own = BTreeSet::new();
                tokens(of, &mut own);
                own.difference(&others).any(|token| given.contains(*token))
            };
            let chosen: Vec<&Node> = node.inside.iter().filter(|of| own(of)).collect();
            let all: Vec<&Node> = node.inside.iter().collect();
            let open = if chosen.is_empty() { all } else { chosen };
            // The first word of a required choice says which one was made.
            let said = |of: &&Node| node.optional || lead(of).is_none_or(|lead| given.contains(lead));
            open.into_iter().filter(said).for_each(|of| match of.token {
                Some(_) if !node.optional => {}
                _ => one(of, given, options),
            });
        }
        (None, _) => sequence(&node.inside, given, options),
    }
}

/// The word with which an alternative begins, if one always does.
fn lead(node: &Node) -> Option<&String> {
    node.token.as_ref().or_else(|| node.inside.first().filter(|first| !first.optional)?.token.as_ref())
}

fn tokens<'n>(node: &'n Node, to: &mut BTreeSet<&'n String>) {
    to.extend(&node.token);
    node.inside.iter().for_each(|inner| tokens(inner, to));
}
