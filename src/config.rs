//! The module's configuration: `jobboard.*` in that of the server, and the arguments of
//! `loadmodule`. The settings of boards and their ranges are in the board's own table; this file
//! has only what belongs to the module.

use board::{Rules, Setting, SPECS};

use crate::integers::whole;
use crate::redis::cell::MainCell;

/// All values of the configuration.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// Defaults for all boards.
    pub rules: Rules,
    /// How long after loading or promotion no claim ends by itself, ms.
    pub recovery_grace: i64,
    /// The longest payload or result, bytes.
    pub max_payload: i64,
    /// The longest text (stage, message, reason, log, value of a meta field), bytes.
    pub max_text: i64,
    /// The most items that one command may name or request.
    pub max_batch: i64,
    /// The most bytes, all copies together, of what one command gives to several jobs.
    pub max_shared: i64,
    /// A reply of several records ends at this many bytes.
    pub max_reply: i64,
    /// The most posts that wait for room.
    pub max_blocked_posts: i64,
    /// The most bytes that are kept for them.
    pub max_blocked_bytes: i64,
    /// Whether any client may send effects, for piping a log into a server.
    pub foreign_effects: bool,
}

/// One entry of the configuration.
#[derive(Clone, Copy)]
pub enum Entry {
    /// The default of a board's setting.
    Rule(Setting),
    /// See [`Config::recovery_grace`].
    RecoveryGrace,
    /// See [`Config::max_payload`].
    MaxPayload,
    /// See [`Config::max_text`].
    MaxText,
    /// See [`Config::max_batch`].
    MaxBatch,
    /// See [`Config::max_shared`].
    MaxShared,
    /// See [`Config::max_reply`].
    MaxReply,
    /// See [`Config::max_blocked_posts`].
    MaxBlockedPosts,
    /// See [`Config::max_blocked_bytes`].
    MaxBlockedBytes,
    /// See [`Config::foreign_effects`].
    ForeignEffects,
}

/// Name, default and range of an entry.
pub struct Shape {
    /// Its name without the module's prefix.
    pub name: &'static str,
    /// Its value when nobody has set it.
    pub default: i64,
    /// Its lowest value.
    pub min: i64,
    /// Its highest value.
    pub max: i64,
    /// Whether its values are yes and no.
    pub switch: bool,
}

impl Entry {
    /// All entries.
    pub fn all() -> impl Iterator<Item = Entry> {
        let rules = SPECS.iter().filter(|spec| spec.module).map(|spec| Entry::Rule(spec.setting));
        let own = [
            Entry::RecoveryGrace,
            Entry::MaxPayload,
            Entry::MaxText,
            Entry::MaxBatch,
            Entry::MaxShared,
            Entry::MaxReply,
            Entry::MaxBlockedPosts,
            Entry::MaxBlockedBytes,
            Entry::ForeignEffects,
        ];
        rules.chain(own)
    }

    /// Its name, default and range.
    pub fn shape(self) -> Shape {
        let own = |name, default, min, max| Shape { name, default, min, max, switch: false };
        match self {
            Entry::Rule(setting) => {
                let spec = setting.spec();
                own(spec.name, spec.default, spec.min, spec.max)
            }
            Entry::RecoveryGrace => own("recovery-grace", 5_000, 0, 3_600_000),
            Entry::MaxPayload => own("max-payload", 16 << 20, 1, 512 << 20),
            Entry::MaxText => own("max-text", 4_096, 1, 1 << 20),
            Entry::MaxBatch => own("max-batch", 10_000, 1, 1_000_000),
            Entry::MaxShared => own("max-shared", 8 << 20, 1 << 10, 1 << 40),
            Entry::MaxReply => own("max-reply", 64 << 20, 1 << 10, 1 << 40),
            Entry::MaxBlockedPosts => own("max-blocked-posts", 10_000, 0, 1_000_000),
            Entry::MaxBlockedBytes => own("max-blocked-bytes", 64 << 20, 0, 1 << 40),
            Entry::ForeignEffects => Shape { switch: true, ..own("foreign-effects", 0, 0, 1) },
        }
    }

    /// Its value in force.
    pub fn get(self) -> i64 {
        let config = config();
        match self {
            Entry::Rule(setting) => config.rules.get(setting),
            Entry::RecoveryGrace => config.recovery_grace,
            Entry::MaxPayload => config.max_payload,
            Entry::MaxText => config.max_text,
            Entry::MaxBatch => config.max_batch,
            Entry::MaxShared => config.max_shared,
            Entry::MaxReply => config.max_reply,
            Entry::MaxBlockedPosts => config.max_blocked_posts,
            Entry::MaxBlockedBytes => config.max_blocked_bytes,
            Entry::ForeignEffects => i64::from(config.foreign_effects),
        }
    }

    /// Sets its value; the caller has checked the range.
    pub fn set(self, value: i64) {
        let mut fresh = config().clone();
        match self {
            Entry::Rule(setting) => fresh.rules.set(setting, value),
            Entry::RecoveryGrace => fresh.recovery_grace = value,
            Entry::MaxPayload => fresh.max_payload = value,
            Entry::MaxText => fresh.max_text = value,
            Entry::MaxBatch => fresh.max_batch = value,
            Entry::MaxShared => fresh.max_shared = value,
            Entry::MaxReply => fresh.max_reply = value,
            Entry::MaxBlockedPosts => fresh.max_blocked_posts = value,
            Entry::MaxBlockedBytes => fresh.max_blocked_bytes = value,
            Entry::ForeignEffects => fresh.foreign_effects = value != 0,
        }
        CONFIG.with(|all| all.put(fresh));
    }
}

/// Every configuration that has been in force: an old one may still be in use. Returning to a
/// former one costs nothing; each new one costs a few hundred bytes for ever.
struct Configs {
    current: Option<&'static Config>,
    all: Vec<&'static Config>,
}

impl Configs {
    fn put(&mut self, fresh: Config) -> &'static Config {
        let known = self.all.iter().find(|config| ***config == fresh).copied();
        let config = known.unwrap_or_else(|| {
            let config = &*Box::leak(Box::new(fresh));
            self.all.push(config);
            config
        });
        self.current = Some(config);
        config
    }
}

static CONFIG: MainCell<Configs> = MainCell::new(Configs { current: None, all: Vec::new() });

/// The values in force.
pub fn config() -> &'static Config {
    CONFIG.with(|all| match all.current {
        Some(config) => config,
        None => all.put(Config::default()),
    })
}

impl Default for Config {
    fn default() -> Self {
        Config {
            rules: Rules::default(),
            recovery_grace: Entry::RecoveryGrace.shape().default,
            max_payload: Entry::MaxPayload.shape().default,
            max_text: Entry::MaxText.shape().default,
            max_batch: Entry::MaxBatch.shape().default,
            max_shared: Entry::MaxShared.shape().default,
            max_reply: Entry::MaxReply.shape().default,
            max_blocked_posts: Entry::MaxBlockedPosts.shape().default,
            max_blocked_bytes: Entry::MaxBlockedBytes.shape().default,
            foreign_effects: false,
        }
    }
}

/// Takes the arguments of `loadmodule`: names and values. Returns whether the clock is manual.
pub fn load_arguments(words: &[&[u8]]) -> Result<bool, String> {
    let mut manual = false;
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("load argument '{}' has no value", shown(pair)));
        };
        if seen.contains(&name.to_ascii_lowercase()) {
            return Err(format!("load argument '{}' is given twice", shown(pair)));
        }
        seen.push(name.to_ascii_lowercase());
        if name.eq_ignore_ascii_case(b"clock") {
            manual = match *value {
                b"manual" => true,
                b"system" => false,
                _ => return Err("clock must be system or manual".into()),
            };
            continue;
        }
        let known = Entry::all().find(|e| name.eq_ignore_ascii_case(e.shape().name.as_bytes()));
        let Some(entry) = known else {
            return Err(format!("unknown load argument '{}'", shown(&[*name])));
        };
        let shape = entry.shape();
        let number = match (*value, shape.switch) {
            (b"yes", true) => Some(1),
            (b"no", true) => Some(0),
            (_, true) => None,
            (word, false) => whole(word),
        };
        match number.filter(|n| (shape.min..=shape.max).contains(n)) {
            Some(n) => entry.set(n),
            None if shape.switch => return Err(format!("{} must be yes or no", shape.name)),
            None => {
                return Err(format!("{} must be an integer from {} to {}", shape.name, shape.min, shape.max));
            }
        }
    }
    Ok(manual)
}

fn shown(words: &[&[u8]]) -> String {
    words.first().map(|word| board::clean(word)).unwrap_or_default()
}
