//! One input as what happens to a server.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use fake_server::{server, Command, Place, Setting, Value, DATABASES};
use jobboard::{module::load::RedisModule_OnLoad, runtime::world};

use crate::choices::Choices;
use crate::judge::{self, Sight};
use crate::numbers::{numbers, with_number};
use crate::seen::{Seen, Word};
use crate::words::Writer;

/// When the clock begins.
pub const BEGIN: i64 = 1_700_000_000_000;
/// Clients: the second speaks RESP3, the last works on the other database.
const CLIENTS: u64 = 4;
/// So many things happen at most.
const LONGEST: usize = 200;
/// How far the clock goes.
const END: i64 = BEGIN + 20 * 365 * 86_400_000;
/// How far it goes while the traffic is stopped, when the timer asks again and again.
const STOPPED_END: i64 = 5_000;
/// Where boards go that come from elsewhere, and one on which nothing has happened yet.
const FIRST: (i32, &[u8]) = (0, b"board");
const OTHER: (i32, &[u8]) = (0, b"other");

/// See the module's comment.
pub struct Play<'a> {
    choices: Choices<'a>,
    commands: &'static [Command],
    seen: Seen,
    sight: Sight,
    /// What clients have sent that wait.
    asked: BTreeMap<u64, Vec<Word>>,
    traced: bool,
}

impl<'a> Play<'a> {
    /// On a server without keys.
    pub fn new(choices: Choices<'a>) -> Self {
        static COMMANDS: OnceLock<Vec<Command>> = OnceLock::new();
        let commands = COMMANDS.get_or_init(|| {
            server().now.set(BEGIN);
            server().load(RedisModule_OnLoad);
            server().commands().into_iter().filter(|command| !command.is_parent()).collect()
        });
        server().reset(BEGIN);
        world::start();
        world::seed(1);
        world::hold_claims(0);
        let traced = std::env::var_os("JOBBOARD_TRACE").is_some();
        Play { choices, commands, seen: Seen::default(), sight: Sight::new(), asked: BTreeMap::new(), traced }
    }

    /// A client restores a board from parts that are one.
    pub fn restore(&mut self, parts: &[&[u8]]) {
        let strings: Vec<Vec<u8>> = parts.iter().chain(&[&b""[..]]).map(|part| part.to_vec()).collect();
        let place = (FIRST.0, FIRST.1.to_vec());
        assert!(server().restore(&place, &strings, judge::is_whole), "a board is not restored");
        self.meet(&place);
    }

    /// The server follows another with these batches, which a copy takes, until it is promoted.
    pub fn follow(&mut self, batches: &[&[u8]]) {
        let place = (FIRST.0, FIRST.1.to_vec());
        batches.iter().for_each(|batch| server().follow(&place, batch));
        server().promote();
        self.meet(&place);
    }

    fn meet(&mut self, place: &Place) {
        if let Some(value) = judge::value(place) {
            self.seen.meet(&value.board);
        }
    }

    /// Plays it to its end.
    pub fn run(mut self) {
        self.sight = judge::look(&self.sight);
        for _ in 0..LONGEST {
            if self.choices.is_done() || judge::is_large() {
                break;
            }
            let choice = self.choices.byte();
            match choice {
                0..=159 => self.command(false),
                160..=179 => self.command(true),
                180..=207 => self.time(),
                _ => {
                    self.event(choice % 24);
                    // Under keys may be something else now.
                    if matches!(choice % 24, 8..=14 | 17 | 20 | 21) {
                        self.sight.clear();
                    }
                }
            }
            if !server().in_transaction.get() && !server().is_stopped.get() {
                server().advance(0);
            }
            for (client, reply) in server().told() {
                let words = self.asked.remove(&client).unwrap_or_default();
                self.trace(|| format!("   told client {client}: {reply:?}"));
                self.seen.learn(&words, &reply);
            }
            self.sight = judge::look(&self.sight);
        }
        self.finish();
    }

    /// Whatever has come of the boards loads again, goes on, and loads then; others beside them go on.
    fn finish(&mut self) {
        let server = server();
        (1..=CLIENTS).for_each(|client| server.disconnect(client));
        server.end_transaction();
        server.is_stopped.set(false);
        server.listen(true);
        server.turn();
        server.settings().iter().for_each(Setting::reset);
        judge::load_again();
        for (db, board) in judge::look(&Sight::new()).into_keys() {
            for words in [&["JOB.POST", "", "x"][..], &["JOB.CLAIM", "", "w"]] {
                self.say(db, &board, words);
            }
        }
        server.delete(&(OTHER.0, OTHER.1.to_vec()));
        self.works(&["JOB.POST", "", "x", "ID", "j"]);
        let mut claimed = Seen::default();
        claimed.learn(&[], &self.works(&["JOB.CLAIM", "", "w"]));
        self.works(&["JOB.CONSUME", "", "w", "j", "TOKEN", &claimed.tokens[0].to_string()]);
        judge::load_again();
    }

    /// Whatever has become of other boards, this is done on one that is whole.
    fn works(&mut self, words: &[&str]) -> Value {
        let reply = self.say(OTHER.0, OTHER.1, words);
        assert!(reply.error().is_none() && reply != Value::NullArray, "{words:?}: {reply:?}");
        reply
    }

    /// A new client says something to a board, and is answered at once.
    fn say(&mut self, db: i32, board: &[u8], words: &[&str]) -> Value {
        let client = CLIENTS + 1 + db as u64;
        server().connect(client, db, false);
        let mut words: Vec<Word> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        words[1] = board.to_vec();
        let reply = server().call(client, &words).expect("an answer at once");
        self.trace(|| {
            format!("client {client}: {} {}: {reply:?}", words[0].escape_ascii(), board.escape_ascii())
        });
        self.seen.learn(&words, &reply);
        reply
    }

    /// `RESTORE` of what a board was dumped to, with another number in it, or other bytes.
    fn forge(&mut self) {
        let (from, to) = (self.place(), self.place());
        let Some(mut strings) = server().dump(&from) else { return };
        let part = self.choices.below(strings.len() - 1);
        let bytes = &mut strings[part];
        let found = numbers(bytes);
        match (self.choices.byte(), found.get(self.choices.among(found.len()))) {
            (0..=223, Some(at)) => *bytes = with_number(bytes, at.clone(), self.choices.number()),
            _ => {
                let (at, raw) = (self.choices.among(bytes.len()), self.choices.raw());
                let end = (at + raw.len()).min(bytes.len());
                bytes.splice(at..end, raw);
            }
        }
        if server().restore(&to, &strings, judge::is_whole) {
            self.trace(|| format!("   {to:?} is another"));
        }
    }

    fn trace(&self, what: impl FnOnce() -> String) {
        if self.traced {
            eprintln!("{} {}", server().now.get() - BEGIN, what());
        }
    }

    fn command(&mut self, plain: bool) {
        let asked = self.choices.below(CLIENTS as usize) as u64;
        let Some(client) = (0..CLIENTS).map(|n| 1 + (asked + n) % CLIENTS).find(|n| {
            server().connect(*n, i32::from(*n == CLIENTS), *n == 2);
            server().client(*n).is_some()
        }) else {
            return;
        };
        let at = self.choices.below(self.commands.len());
        let filters = self.commands.iter().find(|command| command.name == "job.count");
        let filters = filters.and_then(|count| count.args.get(1..)).unwrap_or_default();
        let now = server().now.get();
        let mut writer = Writer {
            choices: &mut self.choices,
            seen: &self.seen,
            now,
            filters,
            words: Vec::new(),
            name: "",
            held: None,
            of_meta: false,
        };
        match plain {
            true => writer.plain(),
            false => writer.command(&self.commands[at]),
        }
        let words = writer.words;
        self.trace(|| {
            let words: Vec<_> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
            format!("client {client}: {}", words.join(" "))
        });
        let Some(only_reads) = self.only_reads(&words) else { return };
        if server().is_stopped.get() && !only_reads {
            return;
        }
        let settled = !server().in_transaction.get() && !server().is_stopped.get() && !server().is_due();
        let reply = server().call(client, &words);
        self.trace(|| format!("   {reply:?}"));
        let refusal = reply.as_ref().and_then(|reply| reply.error());
        if settled && (only_reads || refusal.is_some()) {
            let after = judge::look(&self.sight);
            assert_eq!(after, self.sight, "what reads or is refused changes something: {words:?}");
        }
        match &reply {
            Some(reply) => self.seen.learn(&words, reply),
            None => drop(self.asked.insert(client, words)),
        }
    }

    /// Whether a command only reads; `None` for what is no command.
    fn only_reads(&self, words: &[Vec<u8>]) -> Option<bool> {
        let word = |n: usize| words.get(n).map(|word| String::from_utf8_lossy(word).to_lowercase());
        let (name, sub) = (word(0)?, word(1).unwrap_or_default());
        let full = format!("{name}|{sub}");
        let command = self.commands.iter().find(|command| command.name == name || command.name == full)?;
        Some(command.flags.split(' ').any(|flag| flag == "readonly"))
    }

    fn time(&mut self) {
        const SCALE: [i64; 9] = [1, 10, 100, 1_000, 10_000, 60_000, 3_600_000, 86_400_000, 40 * 86_400_000];
        let ms = SCALE[self.choices.below(SCALE.len())] * (1 + self.choices.below(16) as i64);
        let most = if server().is_stopped.get() { STOPPED_END } else { END - server().now.get() };
        let ms = ms.min(most).max(0);
        self.trace(|| format!("{ms} ms pass"));
        server().advance(ms);
    }

    fn place(&mut self) -> Place {
        (
            self.choices.below(DATABASES as usize) as i32,
            self.choices.one(&[&b"board"[..], b"c", b"s"]).to_vec(),
        )
    }

    fn event(&mut self, choice: u8) {
        let server = server();
        // What clients do by writing, they do not while that is stopped, or between two commands
        // of a transaction.
        let free = !server.is_stopped.get() && !server.in_transaction.get();
        self.trace(|| format!("event {choice}"));
        match choice {
            0 if !server.is_stopped.get() => match server.in_transaction.get() {
                true => server.end_transaction(),
                false => server.in_transaction.set(true),
            },
            1 if !server.in_transaction.get() => {
                server.is_stopped.set(!server.is_stopped.get());
                server.turn();
            }
            2 => server.tells_later.set(!server.tells_later.get()),
            3 | 4 if !server.in_transaction.get() => {
                server.disconnect(1 + self.choices.below(CLIENTS as usize) as u64)
            }
            5 if !server.in_transaction.get() => {
                server.unblock(1 + self.choices.below(CLIENTS as usize) as u64)
            }
            6 if !server.in_transaction.get() => {
                server.unblock_with_error(1 + self.choices.below(CLIENTS as usize) as u64)
            }
            7 if !server.in_transaction.get() => server.promote(),
            8 if free => {
                let from_file = self.choices.byte() % 2 == 0;
                let place = self.place();
                match from_file {
                    true => server.reload(&place),
                    false => judge::restore(server, &place),
                }
            }
            9 if free => {
                let ((db, from), (_, to)) = (self.place(), self.place());
                server.copy(db, &from, &to);
            }
            10 if free => {
                let ((db, from), (_, to)) = (self.place(), self.place());
                server.rename(db, &from, &to);
            }
            11 if free => server.flush(self.choices.below(DATABASES as usize) as i32),
            12 if free => server.swap(),
            13 if free => server.delete(&self.place()),
            14 if free => server.set_text(&self.place()),
            15 | 16 => {
                let settings = server.settings();
                settings.iter().for_each(Setting::reset);
                let setting = &settings[self.choices.below(settings.len())];
                let small = |n: i64| n.clamp(setting.min, setting.max);
                let values = [setting.min, small(1), small(3), small(100), small(-1)];
                // One that lets clients send effects is not what is looked at here.
                if !["foreign-effects", "max-payload"].contains(&setting.name.as_str()) {
                    setting.set(values[self.choices.below(values.len())]);
                }
            }
            17 => {
                let (place, patience) = (self.place(), 1 + u32::from(self.choices.byte()));
                server.defragment(&place, patience);
            }
            18 => judge::rewrite(server, &self.place()),
            19 => {
                server.measure(&self.place());
                assert!(server.info().iter().any(|(name, n)| name == "broken_boards" && *n == 0));
            }
            20 if free => self.forge(),
            21 if free => server.resync(&self.place()),
            22 if free => server.listen(server.is_unheard.get()),
            _ => self.time(),
        }
    }
}
