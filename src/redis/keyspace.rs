//! Our values in the server's keyspace.

use redis_module::raw;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::redis::ctx::Ctx;
use crate::redis::strings::Key;
use crate::redis::{api, OK};

/// The key holds another type, or a value that is already open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongType;

/// The server's handle of a type.
pub struct TypeHandle(AtomicPtr<raw::RedisModuleType>);

impl TypeHandle {
    /// The handle of a type that is not registered yet.
    pub const fn unknown() -> TypeHandle {
        TypeHandle(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Sets the handle, when the type is registered.
    pub fn set(&self, handle: *mut raw::RedisModuleType) {
        self.0.store(handle, Ordering::Relaxed);
    }

    fn get(&self) -> *mut raw::RedisModuleType {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value under keys of one type. The server may free it on another thread.
pub trait Value: Default + Send + 'static {
    /// Its type.
    const TYPE: &'static TypeHandle;
}

/// A value, and who uses it: what is under a key.
pub struct Kept<V> {
    /// A combination of [`OPEN`] and [`GONE`].
    hold: AtomicU8,
    value: UnsafeCell<V>,
}

/// The value is open, and nobody else may open it.
const OPEN: u8 = 1;
/// The server has freed the value: whoever has it open must free it.
const GONE: u8 = 2;

impl<V> Kept<V> {
    /// Wraps a value, to be put under a key.
    pub fn new(value: V) -> Box<Kept<V>> {
        Box::new(Kept { hold: AtomicU8::new(0), value: UnsafeCell::new(value) })
    }

    /// Opens it, on the main thread; false when it is open already.
    fn enter(&self) -> bool {
        let free = self.hold.load(Ordering::Relaxed) == 0;
        if free {
            self.hold.store(OPEN, Ordering::Relaxed);
        }
        free
    }

    /// Whether the server has freed it while it is open.
    fn is_gone(&self) -> bool {
        self.hold.load(Ordering::Relaxed) & GONE != 0
    }

    /// The value, for the caller that opened it.
    pub fn value(&self) -> *mut V {
        self.value.get()
    }

    /// The value, before it is shared.
    pub fn value_mut(&mut self) -> &mut V {
        self.value.get_mut()
    }

    /// Closes an open value, and frees it if the server has freed it meanwhile.
    ///
    /// # Safety
    /// It came from a `Box`, is open, and is not used after this.
    unsafe fn leave(kept: *mut Kept<V>) {
        // SAFETY: as the caller promises; of the two that let go of it the later one frees it.
        unsafe {
            if (*kept).hold.swap(0, Ordering::AcqRel) & GONE != 0 {
                drop(Box::from_raw(kept));
            }
        }
    }

    /// Frees a value for the server. If it is open, whoever opened it frees it: for example,
    /// another module deleted the key in the notification of its creation.
    ///
    /// # Safety
    /// It came from a `Box`, is no longer under a key, and is given back once.
    pub unsafe fn give_back(kept: *mut Kept<V>) {
        // SAFETY: as the caller promises; of the two that let go of it the later one frees it.
        unsafe {
            if (*kept).hold.fetch_or(GONE, Ordering::AcqRel) & OPEN == 0 {
                drop(Box::from_raw(kept));
            }
        }
    }
}

/// An open key.
pub struct Opened<'c, V: Value> {
    handle: *mut raw::RedisModuleKey,
    /// The open value, or null.
    kept: *mut Kept<V>,
    /// A new value that is not in the keyspace yet.
    fresh: Option<Box<Kept<V>>>,
    _ctx: PhantomData<Ctx<'c>>,
}

fn open<'c, V: Value>(ctx: Ctx<'c>, key: &Key, mode: c_int) -> Result<Opened<'c, V>, WrongType> {
    // SAFETY: the context is that of a callback or command, and the string is valid; the handle is
    // closed when the value is dropped. What is under a key of our type was put there by us.
    unsafe {
        let handle = api!(RedisModule_OpenKey(ctx.0, key.raw(), mode));
        let mut open = Opened { handle, kept: std::ptr::null_mut(), fresh: None, _ctx: PhantomData };
        // Null for no key, no value, and a value that is not a module's.
        let found = api!(RedisModule_ModuleTypeGetType(handle));
        if found.is_null() || found != V::TYPE.get() {
            let empty = handle.is_null()
                || api!(RedisModule_KeyType(handle)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int;
            return if empty { Ok(open) } else { Err(WrongType) };
        }
        let kept = api!(RedisModule_ModuleTypeGetValue(handle)).cast::<Kept<V>>();
        match (*kept).enter() {
            true => open.kept = kept,
            false => return Err(WrongType),
        }
        Ok(open)
    }
}

impl<'c> Ctx<'c> {
    /// Opens a key to read the value under it.
    pub fn open_value<V: Value>(self, key: &Key) -> Result<Opened<'c, V>, WrongType> {
        open(self, key, raw::REDISMODULE_READ as c_int)
    }

    /// Opens a key to change the value under it.
    pub fn open_value_writable<V: Value>(self, key: &Key) -> Result<Opened<'c, V>, WrongType> {
        open(self, key, (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int)
    }

    /// Tells clients that watch or cache the key that it has changed.
    pub fn signal_modified(self, key: &Key) {
        // SAFETY: context and string are valid.
        unsafe { api!(RedisModule_SignalModifiedKey(self.0, key.raw())) };
    }
}

impl<V: Value> Opened<'_, V> {
    /// The value, if there is one.
    pub fn value(&mut self) -> Option<&mut V> {
        if let Some(fresh) = &mut self.fresh {
            return Some(fresh.value_mut());
        }
        // SAFETY: null, or a value that is open: it lives until it is closed, whatever becomes of
        // its key, and nobody opens it again. `&mut self` makes this the only reference.
        unsafe { Some(&mut *self.kept.as_ref()?.value()) }
    }

    /// The value, or a new one that is not in the keyspace yet.
    #[inline]
    pub fn value_or_new(&mut self) -> &mut V {
        if self.kept.is_null() {
            return self.new_value();
        }
        // SAFETY: as above, and it is not null.
        unsafe { &mut *(*self.kept).value() }
    }

    #[cold]
    fn new_value(&mut self) -> &mut V {
        self.fresh.get_or_insert_with(|| Kept::new(V::default())).value_mut()
    }

    /// Puts a new value into the keyspace.
    pub fn keep(&mut self) {
        if let Some(fresh) = self.fresh.take() {
            let kept = Box::into_raw(fresh);
            // SAFETY: the key is open for writing (who only reads keeps nothing) and empty; the
            // server owns the value from now on, and gives it back to our `free`.
            unsafe {
                // Opened first: a subscriber to its creation may open the key, or delete it.
                (*kept).enter();
                self.kept = kept;
                if api!(RedisModule_ModuleTypeSetValue(self.handle, V::TYPE.get(), kept.cast::<c_void>()))
                    != OK
                {
                    self.kept = std::ptr::null_mut();
                    Kept::leave(kept);
                    self.fresh = Some(Box::from_raw(kept));
                }
            }
        }
    }

    /// Deletes the key, with its value and its time to live.
    pub fn delete(self) {
        // SAFETY: the key is open for writing. The server gives the value back, which is freed when it is
        // closed, at the end of this function.
        unsafe { api!(RedisModule_DeleteKey(self.handle)) };
    }

    /// Whether the value was freed while it was open.
    pub fn is_gone(&self) -> bool {
        // SAFETY: what is not null is open.
        unsafe { self.kept.as_ref() }.is_some_and(Kept::is_gone)
    }
}

impl<V: Value> Drop for Opened<'_, V> {
    fn drop(&mut self) {
        if !self.kept.is_null() {
            // SAFETY: it is open, and this the last use of it.
            unsafe { Kept::leave(self.kept) };
        }
        if !self.handle.is_null() {
            // SAFETY: the handle is open, and closed here alone, before the end of the callback that
            // its context belongs to.
            unsafe { api!(RedisModule_CloseKey(self.handle)) };
        }
    }
}
