//! What the server has, and the calls by which it does something to the module.

use redis_module::raw;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};

use crate::clients::{Client, Parked};
use crate::commands::{Command, Setting};
use crate::ctx::Ctx;
use crate::keys::{Entry, Open};
use crate::reply::Value;
use crate::strings::{bytes, passed, Count, Owned};
use crate::time::Timer;

/// So many databases there are.
pub const DATABASES: i32 = 2;
/// The copy of database n is n + this.
pub const REPLICA: i32 = 100;

/// A database and a key.
pub type Place = (i32, Vec<u8>);

/// What the module sends to replicas.
pub struct Sent {
    pub place: Place,
    pub batch: Vec<u8>,
}

/// See the module's comment. One for the program: the functions find it by [`server`].
#[derive(Default)]
pub struct Server {
    pub now: Cell<i64>,
    /// Commands are those of a transaction.
    pub in_transaction: Cell<bool>,
    /// The traffic to replicas is stopped.
    pub is_stopped: Cell<bool>,
    /// Nobody listens to effects: there is no replica, no backlog and no append-only file.
    pub is_unheard: Cell<bool>,
    /// Whether those who are unblocked hear it later, as with Redis 8, or at once.
    pub tells_later: Cell<bool>,
    pub(crate) keys: RefCell<BTreeMap<Place, Entry>>,
    pub(crate) open: RefCell<Vec<Open>>,
    /// Keys that have come since clients parked on them were asked.
    pub(crate) arrived: RefCell<Vec<Place>>,
    pub(crate) commands: RefCell<Vec<Command>>,
    pub(crate) settings: RefCell<Vec<Setting>>,
    pub(crate) methods: Cell<Option<raw::RedisModuleTypeMethods>>,
    pub(crate) events: RefCell<Vec<(u64, raw::RedisModuleEventCallback)>>,
    pub(crate) key_event: Cell<raw::RedisModuleNotificationFunc>,
    pub(crate) info: Cell<raw::RedisModuleInfoFunc>,
    pub(crate) info_fields: RefCell<Vec<(String, i64)>>,
    pub(crate) timers: RefCell<BTreeMap<(i64, u64), Timer>>,
    pub(crate) clients: RefCell<BTreeMap<u64, Client>>,
    pub(crate) parked: RefCell<BTreeMap<u64, Parked>>,
    /// Parked clients that the server is done with, but for their last callback.
    pub(crate) done: RefCell<VecDeque<u64>>,
    pub(crate) told: RefCell<Vec<(u64, Value)>>,
    pub(crate) last_number: Cell<u64>,
    pub(crate) sent: RefCell<Vec<Sent>>,
    pub(crate) strings: Count,
    warnings: RefCell<Vec<String>>,
}

struct Global(Server);

// SAFETY: a fuzz target has one thread.
unsafe impl Send for Global {}
// SAFETY: as above.
unsafe impl Sync for Global {}

static SERVER: std::sync::OnceLock<Global> = std::sync::OnceLock::new();

/// The server of this program.
pub fn server() -> &'static Server {
    &SERVER.get_or_init(|| Global(Server::default())).0
}

type OnLoad = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, i32) -> i32;

impl Server {
    /// Loads the module, once.
    pub fn load(&self, on_load: OnLoad) {
        let ctx = Ctx::silent(0);
        // SAFETY: the context lives during the call; there are no arguments.
        let loaded = unsafe { on_load(ctx.raw(), std::ptr::null_mut(), 0) };
        assert_eq!(loaded, 0, "the module does not load: {:?}", self.warnings.borrow());
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.last_number.set(self.last_number.get() + 1);
        self.last_number.get()
    }

    /// What the module has warned of since this was last asked.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// What clients that waited have been answered since this was last asked.
    pub fn told(&self) -> Vec<(u64, Value)> {
        self.told.take()
    }

    /// The server has become a primary, or goes on as one after a failover.
    pub fn promote(&self) {
        self.event(raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, 0, std::ptr::null_mut());
        self.turn();
    }

    /// The last listener goes, or the first comes, who begins with a copy of all that a forked
    /// process writes. The server tells of the fork, and of nothing else.
    pub fn listen(&self, listens: bool) {
        self.is_unheard.set(!listens);
        if listens {
            self.copy_unheard();
            self.event(raw::REDISMODULE_EVENT_FORK_CHILD, 0, std::ptr::null_mut());
        }
    }

    /// Sends a command as a client's. `None`: the client waits. What the server itself refuses,
    /// as it does not know the command or its arity is another, is an error here as well.
    pub fn call(&self, client: u64, words: &[Vec<u8>]) -> Option<Value> {
        let (db, resp3) = self.client(client).expect("a client that waits for nothing");
        let handler = match self.find(words) {
            Ok(handler) => handler,
            Err(refusal) => return Some(Value::Error(refusal)),
        };
        let ctx = Ctx::of_client(client, db, resp3);
        let reply = self.run(ctx, handler, words);
        let waits = self.parked_of(client).is_some();
        assert!(reply.is_some() != waits, "{} replies, waits: {waits}", reply.iter().len());
        self.after_call();
        reply
    }

    fn run(&self, ctx: Ctx, handler: raw::RedisModuleCmdFunc, words: &[Vec<u8>]) -> Option<Value> {
        let texts: Vec<Owned> = words.iter().map(|word| Owned::new(word)).collect();
        let mut argv: Vec<*mut raw::RedisModuleString> = texts.iter().map(Owned::raw).collect();
        let before = self.strings.0.get();
        // SAFETY: the strings and the context live during the call.
        unsafe { handler.expect("a handler")(ctx.raw(), argv.as_mut_ptr(), argv.len() as i32) };
        assert_eq!(self.strings.0.get(), before, "strings were made and not freed");
        self.nothing_open("a command's end");
        ctx.into_reply()
    }

    /// What follows each call of the module: replicas get what was sent, parked clients hear of
    /// keys that have come, and the event loop's turn ends, unless a transaction goes on.
    pub(crate) fn after_call(&self) {
        self.propagate();
        if !self.in_transaction.get() {
            self.tell_arrivals();
            self.turn();
        }
    }

    /// Ends turns of the event loop until nothing follows from it.
    pub fn turn(&self) {
        for _ in 0..100 {
            self.event(raw::REDISMODULE_EVENT_EVENTLOOP, 0, std::ptr::null_mut());
            self.propagate();
            self.tell_arrivals();
            if !self.finish_parked() {
                return;
            }
        }
        panic!("the event loop does not come to rest");
    }

    /// `EXEC`: others go on.
    pub fn end_transaction(&self) {
        self.in_transaction.set(false);
        self.after_call();
    }

    pub(crate) fn event(&self, id: u64, sub: u64, data: *mut c_void) {
        let callbacks: Vec<_> =
            self.events.borrow().iter().filter(|(of, _)| *of == id).map(|(_, callback)| *callback).collect();
        for callback in callbacks {
            let ctx = Ctx::silent(0);
            let event = raw::RedisModuleEvent { id, dataver: 1 };
            let before = self.strings.0.get();
            // SAFETY: the context lives during the call; the data is what the event has.
            unsafe { callback.expect("a callback")(ctx.raw(), event, sub, data) };
            assert_eq!(self.strings.0.get(), before, "strings were made and not freed");
            self.nothing_open("an event's end");
        }
    }

    /// Lets the copy take what was sent. Where nobody listens there is no copy: the one here is
    /// made anew each time, so that it may be compared.
    pub(crate) fn propagate(&self) {
        let sent = self.sent.take();
        if self.is_unheard.get() {
            return self.copy_unheard();
        }
        for sent in sent {
            let (db, key) = sent.place;
            self.replay(db + REPLICA, &[b"JOB.APPLY".to_vec(), key, sent.batch], false);
        }
    }

    fn copy_unheard(&self) {
        self.places().iter().filter(|(db, _)| *db < DATABASES).for_each(|place| self.resync(place));
    }

    /// Runs a command as a replica, or a server that loads its file.
    pub(crate) fn replay(&self, db: i32, words: &[Vec<u8>], loading: bool) {
        let handler = self.find(words).expect("a command for replicas");
        let reply = self.run(Ctx::of_replay(db, loading), handler, words);
        assert_eq!(reply, Some(Value::Simple("OK".into())), "the copy answers otherwise");
        // Nobody hears of it, and nobody waits there.
        self.sent.take();
        self.arrived.borrow_mut().retain(|(db, _)| *db < DATABASES);
    }

    /// What the module tells of itself.
    pub fn info(&self) -> Vec<(String, i64)> {
        self.info_fields.take();
        if let Some(info) = self.info.get() {
            // SAFETY: the module only passes the pointer back.
            unsafe { info(std::ptr::null_mut(), 0) };
        }
        self.info_fields.take()
    }

    /// Everything as it was when the module had been loaded, but for what the module itself
    /// keeps beside its boards: nobody is connected, there are no keys, and no timer is set.
    pub fn reset(&self, now: i64) {
        self.in_transaction.set(false);
        self.is_stopped.set(false);
        self.tells_later.set(false);
        self.listen(true);
        let clients: Vec<u64> = self.clients.borrow().keys().copied().collect();
        clients.into_iter().for_each(|client| self.disconnect(client));
        self.turn();
        (0..DATABASES).for_each(|db| self.flush(db));
        self.turn();
        self.run_dry();
        self.settings.borrow().iter().for_each(Setting::reset);
        self.warnings.take();
        self.told.take();
        self.last_number.set(0);
        self.now.set(now);
        assert!(self.parked.borrow().is_empty(), "somebody is parked who has gone");
        assert_eq!(self.strings.0.get(), 0, "strings are left");
    }
}

/// A line of the module's log.
///
/// # Safety
/// Called by the module, with strings that end with NUL.
#[no_mangle]
unsafe extern "C" fn fake_logged(level: *const c_char, text: *const c_char) {
    if CStr::from_ptr(level) == c"warning" {
        let text = CStr::from_ptr(text).to_string_lossy().into_owned();
        eprintln!("{text}");
        if let Ok(mut warnings) = server().warnings.try_borrow_mut() {
            warnings.push(text);
        }
    }
}

/// Effects go to replicas once the call is over.
///
/// # Safety
/// Called by the module, with what [`raw::RedisModule_Replicate`] takes.
#[no_mangle]
unsafe extern "C" fn fake_replicated(
    ctx: *mut raw::RedisModuleCtx,
    command: *const c_char,
    key: *mut raw::RedisModuleString,
    start: *const c_char,
    len: usize,
) {
    assert_eq!(CStr::from_ptr(command), c"JOB.APPLY");
    let db = crate::ctx::of(ctx).db.get();
    assert!(db < DATABASES, "the copy sends effects");
    assert!(!server().is_stopped.get(), "effects are sent while the traffic is stopped");
    let batch = passed(start, len).to_vec();
    server().sent.borrow_mut().push(Sent { place: (db, bytes(key).to_vec()), batch });
}
