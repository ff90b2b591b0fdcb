//! From choices to the words of a command: by its syntax, as the module tells it to the server,
//! so that most of what is sent is nearly right; or word by word.

use fake_server::{Arg, ArgKind, Command};

use crate::choices::Choices;
use crate::seen::{last, Held, Seen, Word};

/// Writes the words of one command.
pub struct Writer<'a, 'b> {
    pub choices: &'a mut Choices<'b>,
    pub seen: &'a Seen,
    pub now: i64,
    /// The syntax of filters.
    pub filters: &'a [Arg],
    pub words: Vec<Word>,
    /// The command's name.
    pub name: &'a str,
    /// A job that a worker holds, whom most of the words are about.
    pub held: Option<&'a Held>,
    /// A field is one of META's.
    pub of_meta: bool,
}

impl<'a> Writer<'a, '_> {
    /// A command by its syntax, and then maybe something that is not.
    pub fn command(&mut self, command: &'a Command) {
        self.words = command.words();
        self.name = &command.name;
        self.held = match self.choices.byte() {
            n @ 64.. => self.seen.held(usize::from(n)),
            _ => None,
        };
        match self.name {
            "job.flow" => self.flow(&command.args),
            _ => self.sequence(&command.args),
        }
        // Without a time a schedule can be changed alone.
        if self.name == "job.schedule|set" && self.choices.byte() < 0xc0 {
            self.words.extend([b"EVERY".to_vec(), text(self.choices.number().max(1))]);
        }
        if self.choices.byte() >= 0xc0 {
            self.mutate();
        }
    }

    /// Words one by one: texts, or what a reply told.
    pub fn plain(&mut self) {
        for _ in 0..self.choices.byte() {
            let word = match self.choices.byte() {
                n @ 200..=207 => last(&self.seen.ids, usize::from(n) - 200),
                n @ 208..=215 => last(&self.seen.texts, usize::from(n) - 208),
                n @ 216..=231 => last(&self.seen.tokens, usize::from(n) - 216).map(text),
                n @ 232..=239 => last(&self.seen.numbers, usize::from(n) - 232).map(text),
                n @ 240..=254 => Some(text(self.now + [0, 1, 10, 1_000, 60_000][usize::from(n) % 5])),
                n => {
                    let len = usize::from(n).min(self.choices.0.len());
                    Some((0..len).map(|_| self.choices.byte()).collect())
                }
            };
            self.words.extend(word);
        }
    }

    /// Nodes, each with some of the options.
    fn flow(&mut self, args: &[Arg]) {
        let [board, _, head @ .., _next] = args else { return };
        self.one(board);
        let n = 1 + self.choices.below(4);
        self.words.push(text(n as i64));
        for _ in 0..n {
            self.sequence(head);
        }
    }

    /// Arguments in their order; of options that follow each other some, in any order.
    fn sequence(&mut self, args: &[Arg]) {
        let mut rest = args;
        let mut count_at = None;
        while let Some((arg, after)) = rest.split_first() {
            if arg.optional && !arg.multiple {
                let len = rest.iter().position(|arg| !arg.optional || arg.multiple).unwrap_or(rest.len());
                let (options, after) = rest.split_at(len);
                self.some_of(options);
                rest = after;
                continue;
            }
            rest = after;
            if arg.multiple {
                let n = match self.choices.byte() {
                    255 => 0,
                    n if arg.optional => usize::from(n) % 3,
                    n => 1 + usize::from(n) % 3,
                };
                (0..n).for_each(|_| self.one(arg));
                if let Some(at) = count_at.take() {
                    let count: &mut Word = &mut self.words[at];
                    *count = text(n as i64);
                }
                continue;
            }
            if arg.name == "n"
                && arg.kind == ArgKind::Number
                && after.first().is_some_and(|next| next.multiple)
            {
                count_at = Some(self.words.len());
                self.words.push(Vec::new());
                continue;
            }
            self.one(arg);
        }
    }

    /// A few of them, rarely one twice.
    fn some_of(&mut self, options: &[Arg]) {
        let n = match self.choices.byte() {
            n @ 0..=63 => n % 2,
            n => n % 8,
        };
        let mut left: Vec<usize> = (0..options.len()).collect();
        for _ in 0..n {
            let choice = usize::from(self.choices.byte());
            let Some(at) = left.get(choice % left.len().max(1)).copied() else { return };
            if choice < 250 {
                left.retain(|other| *other != at);
            }
            self.one(&options[at]);
        }
    }

    fn one(&mut self, arg: &Arg) {
        if let Some(token) = &arg.token {
            self.words.push(token.clone().into_bytes());
            self.of_meta = token == "META";
        }
        match arg.kind {
            ArgKind::Token => {}
            ArgKind::Block => self.sequence(&arg.inside),
            ArgKind::OneOf => {
                let at = self.choices.below(arg.inside.len());
                let chosen = &arg.inside[at];
                // Of words to choose from each stands for itself.
                match chosen.kind == ArgKind::Word && chosen.token.is_none() && self.choices.byte() < 0xf0 {
                    true => self.words.push(chosen.name.clone().into_bytes()),
                    false => self.one(chosen),
                }
            }
            ArgKind::Key | ArgKind::Word | ArgKind::Number => self.value(arg),
        }
    }

    fn value(&mut self, arg: &Arg) {
        if arg.name == "filter" {
            return self.some_of(self.filters);
        }
        let choice = self.choices.byte();
        let n = usize::from(choice);
        let word = match choice {
            250..=252 => self.choices.raw(),
            253 => vec![b'x'; 300],
            254 => Vec::new(),
            255 => text(self.choices.number()),
            _ => self.likely(&arg.name, arg.kind, n),
        };
        self.words.push(word);
    }

    /// A value that such an argument may well have.
    fn likely(&mut self, name: &str, kind: ArgKind, n: usize) -> Word {
        let of = |all: &[&str]| all[n % all.len()].as_bytes().to_vec();
        let (held, of_settings) = (self.held, self.name.starts_with("job.settings"));
        match name {
            "board" if n < 200 => b"board".to_vec(),
            "board" => of(&["c", "s", "none"]),
            "id" if self.name.starts_with("job.schedule") => of(&["p", "p", "f"]),
            "worker" if n < 200 && held.is_some() => held.map_or_else(Word::new, |held| held.worker.clone()),
            "worker" if n < 240 => of(&["v", "w"]),
            "worker" => of(&["z", "*"]),
            "id" if n < 200 && held.is_some() => held.map_or_else(Word::new, |held| held.id.clone()),
            "token" if n < 200 && held.is_some() => text(held.map_or(0, |held| held.token)),
            "id" | "other" | "label" | "parent" | "key" if n < 128 => {
                of(&["a", "e", "i", "a", "e", "o", "@p@1"])
            }
            "id" | "other" | "label" | "parent" => last(&self.seen.ids, n).unwrap_or_else(|| b"a".to_vec()),
            "token" => text(last(&self.seen.tokens, n).unwrap_or(n as i64)),
            "version" | "count" if n >= 200 => text(last(&self.seen.numbers, n).unwrap_or(0)),
            "cursor" if n >= 100 => last(&self.seen.texts, n).unwrap_or_else(|| b"0".to_vec()),
            "cursor" => b"0".to_vec(),
            "unix-ms" => text(self.now + self.choices.number().clamp(-9_999_999, 99_999_999)),
            "queue" | "to" if n % 2 == 1 && !self.seen.queues.is_empty() => {
                last(&self.seen.queues, n / 2).unwrap_or_default()
            }
            "group" if n % 2 == 1 && !self.seen.groups.is_empty() => {
                last(&self.seen.groups, n / 2).unwrap_or_default()
            }
            "queue" | "to" => of(&["default", "q", "r", "default"]),
            "group" => of(&["g", "h", "*", "i"]),
            "limit" => of(&["l", "m"]),
            "user" | "role" => of(&["y", "admin"]),
            "tag" => of(&["t", "t2", "t3"]),
            "state" => of(&board::State::ALL.map(board::State::name)),
            "field" if self.of_meta => of(&["x", "y", "h", "k"]),
            "field" => {
                let fields = board::all_fields();
                let names: Vec<&str> =
                    fields.iter().flat_map(|f| f.iter_names()).map(|(name, _)| name).collect();
                names[n % names.len()].to_lowercase().into_bytes()
            }
            "name" if of_settings => board::SPECS[n % board::SPECS.len()].name.as_bytes().to_vec(),
            "value" if of_settings => match n {
                0..=9 => of(&["yes", "no", "l", "l m", "fixed"]),
                _ => text(self.choices.number()),
            },
            "expression" => {
                of(&["* * * * *", "*/5 * * * *", "0 30 2 * * *", "@daily", "0 0 29 2 *", "0 0 L * *", "x"])
            }
            "zone" => of(&["UTC", "Europe/Rome", "America/New_York", "+02:00", "None/Such"]),
            "percent" => of(&["0", "50", "99.99", "100", "101", "nan"]),
            "day" => of(&["2023-11-14", "0", "-1", "1", "today"]),
            _ if kind == ArgKind::Number => text(self.choices.number()),
            _ => of(&["x", "text", "{}", "a longer text, of some words", "\u{e9}\0\n"]),
        }
    }

    /// Something is done to the words that no syntax has.
    fn mutate(&mut self) {
        let len = self.words.len();
        if len < 2 {
            return self.words.push(self.choices.raw());
        }
        let at = 1 + self.choices.below(len - 1);
        match self.choices.below(6) {
            0 => drop(self.words.remove(at)),
            1 => {
                let twice = self.words[at].clone();
                self.words.push(twice);
            }
            2 => self.words[at] = self.choices.raw(),
            3 => {
                let other = 1 + self.choices.below(len - 1);
                self.words.swap(at, other);
            }
            4 => self.words[at] = text(self.choices.number()),
            _ => {
                self.words[at].make_ascii_lowercase();
                let half = self.words[at].len() / 2;
                self.words[at].truncate(half);
            }
        }
    }
}

fn text(n: i64) -> Word {
    n.to_string().into_bytes()
}
