//! Parses a line of syntax, as in commands.md, into the arguments that `COMMAND DOCS` shows and
//! redis-cli hints.
//!
//! The line consists of words: lower-case words are arguments, capitals are keywords, and what
//! follows a keyword up to the next is its value. `[ ]` is optional, `< >` is required, `|`
//! separates alternatives in either, `[x ...]` means that what is before it may be repeated.

use redis_module::raw;
use std::ffi::CString;
use std::os::raw::{c_char, c_int};

/// The arguments of one command, in the server's form. It owns everything to which the server's
/// structs point.
pub struct Arguments {
    list: Vec<raw::RedisModuleCommandArg>,
    _texts: Vec<CString>,
    _nested: Vec<Arguments>,
}

/// A part of a line of syntax.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    name: String,
    pub token: Option<String>,
    pub kind: Kind,
    pub optional: bool,
    multiple: bool,
    pub inside: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Word,
    Key,
    Number,
    Token,
    OneOf,
    Block,
}

/// Arguments that are whole numbers.
const NUMBERS: [&str; 11] =
    ["n", "ms", "token", "count", "priority", "percent", "base", "max", "unix-ms", "version", "number"];

impl Node {
    fn new(name: &str, kind: Kind) -> Node {
        Node {
            name: name.to_lowercase(),
            token: None,
            kind,
            optional: false,
            multiple: false,
            inside: Vec::new(),
        }
    }

    /// One node for several: the node itself if there is only one.
    fn group(kind: Kind, mut inside: Vec<Node>) -> Node {
        if inside.len() == 1 {
            return inside.remove(0);
        }
        let names: Vec<&str> = inside.iter().map(|node| &*node.name).collect();
        Node { inside: inside.clone(), ..Node::new(&names.join("-"), kind) }
    }
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    /// Parses up to the end of a group, alternative by alternative.
    fn alternatives(&mut self) -> Node {
        let mut all = vec![Node::group(Kind::Block, self.sequence(true))];
        while self.peek() == Some("|") {
            self.at += 1;
            all.push(Node::group(Kind::Block, self.sequence(true)));
        }
        self.at += 1;
        Node::group(Kind::OneOf, all)
    }

    /// Parses up to a `|` or the end of a group; values belong to the keyword before them.
    fn sequence(&mut self, values_join: bool) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        while let Some(word) = self.peek() {
            match word {
                "]" | ">" | "|" => break,
                "[" | "<" => {
                    self.at += 1;
                    if word == "[" && self.repeats(&mut nodes) {
                        continue;
                    }
                    let mut group = self.alternatives();
                    group.optional = word == "[";
                    nodes.push(group);
                }
                word if word.bytes().any(|b| b.is_ascii_lowercase()) => {
                    self.at += 1;
                    let kind = if NUMBERS.contains(&word) { Kind::Number } else { Kind::Word };
                    nodes.push(Node::new(word, kind));
                }
                word => {
                    self.at += 1;
                    let values = if values_join { self.values() } else { Vec::new() };
                    nodes.push(with_token(word, values));
                }
            }
        }
        nodes
    }

    /// Parses the values after a keyword, with what may be repeated.
    fn values(&mut self) -> Vec<Node> {
        let mut values: Vec<Node> = Vec::new();
        while let Some(word) = self.peek() {
            if word == "[" && self.words.get(self.at + 1..).is_some_and(is_repeat) {
                self.at += 1;
                self.repeats(&mut values);
            } else if word.bytes().any(|b| b.is_ascii_lowercase()) {
                self.at += 1;
                let kind = if NUMBERS.contains(&word) { Kind::Number } else { Kind::Word };
                values.push(Node::new(word, kind));
            } else {
                break;
            }
        }
        values
    }

    /// Takes a group that only means that as many nodes before it may be repeated.
    fn repeats(&mut self, nodes: &mut Vec<Node>) -> bool {
        let group = self.words.get(self.at..).filter(|words| is_repeat(words));
        let Some(len) = group.and_then(|words| words.iter().position(|word| *word == "]")) else {
            return false;
        };
        self.at += len + 1;
        let repeated = nodes.split_off(nodes.len().saturating_sub(len - 1));
        nodes.push(Node { multiple: true, ..Node::group(Kind::Block, repeated) });
        true
    }
}

fn is_repeat(words: &[&str]) -> bool {
    let end = words.iter().position(|word| *word == "]");
    let inside = end.and_then(|end| words.get(..end)).unwrap_or_default();
    inside.last() == Some(&"...") && !inside.contains(&"[")
}

fn with_token(word: &str, values: Vec<Node>) -> Node {
    if values.is_empty() {
        return Node { token: Some(word.to_string()), ..Node::new(word, Kind::Token) };
    }
    let group = Node::group(Kind::Block, values);
    let name = if group.kind == Kind::Block { word.to_lowercase() } else { group.name.clone() };
    Node { token: Some(word.to_string()), name, ..group }
}

/// The nodes of a line of syntax; its first word is the key if the command has one.
pub(crate) fn parse(syntax: &str, keyed: bool) -> Vec<Node> {
    let spaced: String = syntax
        .chars()
        .flat_map(|c| match c {
            '[' | ']' | '|' | '<' | '>' => vec![' ', c, ' '],
            c => vec![c],
        })
        .collect();
    let mut reader = Reader { words: spaced.split_whitespace().collect(), at: 0 };
    let mut nodes = reader.sequence(true);
    if let Some(first) = nodes.first_mut().filter(|_| keyed) {
        first.kind = Kind::Key;
    }
    nodes
}

impl Arguments {
    /// Parses a line of syntax; its first word is the key if the command has one.
    pub fn parse(syntax: &str, keyed: bool) -> Arguments {
        Arguments::of(&parse(syntax, keyed))
    }

    fn of(nodes: &[Node]) -> Arguments {
        let mut arguments = Arguments { list: Vec::new(), _texts: Vec::new(), _nested: Vec::new() };
        for node in nodes {
            // SAFETY: the struct is made of pointers and numbers; zeroes say nothing.
            let mut arg: raw::RedisModuleCommandArg = unsafe { std::mem::zeroed() };
            arg.name = arguments.keep(&node.name);
            arg.key_spec_index = if node.kind == Kind::Key { 0 } else { -1 };
            arg.type_ = match node.kind {
                Kind::Word => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
                Kind::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
                Kind::Number => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
                Kind::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
                Kind::OneOf => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
                Kind::Block => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK,
            };
            if let Some(token) = &node.token {
                arg.token = arguments.keep(token);
            }
            let flag = |set: bool, flag: u32| if set { flag as c_int } else { 0 };
            arg.flags = flag(node.optional, raw::REDISMODULE_CMD_ARG_OPTIONAL)
                | flag(node.multiple, raw::REDISMODULE_CMD_ARG_MULTIPLE);
            if !node.inside.is_empty() {
                let mut inside = Arguments::of(&node.inside);
                arg.subargs = inside.as_mut_ptr();
                arguments._nested.push(inside);
            }
            arguments.list.push(arg);
        }
        // SAFETY: likewise; a zeroed element ends the list.
        arguments.list.push(unsafe { std::mem::zeroed() });
        arguments
    }

    fn keep(&mut self, text: &str) -> *const c_char {
        let text = CString::new(text).unwrap_or_default();
        let start = text.as_ptr();
        self._texts.push(text);
        start
    }

    /// The list in the form that the server reads.
    pub fn as_mut_ptr(&mut self) -> *mut raw::RedisModuleCommandArg {
        self.list.as_mut_ptr()
    }
}
