//! Replies: what a command sends, put together, and checked for being a reply at all.

use redis_module::raw;
use std::ffi::CStr;
use std::os::raw::{c_char, c_double, c_int, c_long, c_longlong};

use crate::ctx::of;
use crate::strings::passed;

/// What a client has got.
#[derive(Clone, PartialEq)]
pub enum Value {
    Bytes(Vec<u8>),
    Simple(String),
    Int(i64),
    Double(f64),
    Null,
    NullArray,
    Error(String),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Value::Simple(text) => f.write_str(text),
            Value::Int(n) => write!(f, "{n}"),
            Value::Double(n) => write!(f, "{n:?}"),
            Value::Null => f.write_str("null"),
            Value::NullArray => f.write_str("no array"),
            Value::Error(text) => write!(f, "({text})"),
            Value::Array(values) => f.debug_list().entries(values).finish(),
            Value::Map(pairs) => {
                f.debug_map().entries(pairs.iter().map(|(name, value)| (name, value))).finish()
            }
        }
    }
}

impl Value {
    /// The text of an error.
    pub fn error(&self) -> Option<&str> {
        match self {
            Value::Error(text) => Some(text),
            _ => None,
        }
    }
}

/// An aggregate that is not complete.
struct Open {
    is_map: bool,
    left: usize,
    values: Vec<Value>,
}

/// A reply in the making.
#[derive(Default)]
pub struct Builder {
    open: Vec<Open>,
    done: Option<Value>,
}

impl Builder {
    fn put(&mut self, mut value: Value) {
        while let Some(top) = self.open.last_mut() {
            top.values.push(value);
            top.left -= 1;
            if top.left > 0 {
                return;
            }
            let Some(top) = self.open.pop() else { return };
            value = top.close();
        }
        let before = self.done.replace(value);
        assert!(before.is_none(), "two replies to one command: {before:?}, then {:?}", self.done);
    }

    fn begin(&mut self, is_map: bool, n: c_long) {
        let n = usize::try_from(n).expect("the length of an aggregate");
        let open = Open { is_map, left: n * (1 + usize::from(is_map)), values: Vec::new() };
        match n {
            0 => self.put(open.close()),
            _ => self.open.push(open),
        }
    }

    /// The reply, if there is one. It must be whole.
    pub fn finish(self) -> Option<Value> {
        if let Some(open) = self.open.last() {
            panic!("a reply lacks {} elements after {:?}", open.left, open.values);
        }
        self.done
    }
}

impl Open {
    fn close(self) -> Value {
        if !self.is_map {
            return Value::Array(self.values);
        }
        let mut pairs: Vec<(Value, Value)> = Vec::new();
        let mut values = self.values.into_iter();
        while let (Some(name), Some(value)) = (values.next(), values.next()) {
            assert!(matches!(name, Value::Bytes(_)), "a map has the key {name:?}");
            assert!(pairs.iter().all(|(other, _)| *other != name), "a map has {name:?} twice");
            pairs.push((name, value));
        }
        Value::Map(pairs)
    }
}

unsafe fn put(ctx: *mut raw::RedisModuleCtx, value: Value) -> c_int {
    of(ctx).reply(|builder| builder.put(value));
    0
}

pub unsafe extern "C" fn string(ctx: *mut raw::RedisModuleCtx, start: *const c_char, len: usize) -> c_int {
    put(ctx, Value::Bytes(passed(start, len).to_vec()))
}

pub unsafe extern "C" fn simple(ctx: *mut raw::RedisModuleCtx, text: *const c_char) -> c_int {
    put(ctx, Value::Simple(CStr::from_ptr(text).to_string_lossy().into_owned()))
}

pub unsafe extern "C" fn error(ctx: *mut raw::RedisModuleCtx, text: *const c_char) -> c_int {
    let text = CStr::from_ptr(text).to_string_lossy().into_owned();
    let code = text.split(' ').next().unwrap_or_default();
    let is_code = !code.is_empty() && code.bytes().all(|b| b.is_ascii_uppercase());
    assert!(is_code && !text.contains(['\r', '\n']), "no error line: {text:?}");
    put(ctx, Value::Error(text))
}

pub unsafe extern "C" fn int(ctx: *mut raw::RedisModuleCtx, n: c_longlong) -> c_int {
    put(ctx, Value::Int(n))
}

pub unsafe extern "C" fn double(ctx: *mut raw::RedisModuleCtx, n: c_double) -> c_int {
    assert!(n.is_finite(), "a reply has the number {n}");
    put(ctx, Value::Double(n))
}

pub unsafe extern "C" fn null(ctx: *mut raw::RedisModuleCtx) -> c_int {
    put(ctx, Value::Null)
}

pub unsafe extern "C" fn null_array(ctx: *mut raw::RedisModuleCtx) -> c_int {
    put(ctx, Value::NullArray)
}

pub unsafe extern "C" fn array(ctx: *mut raw::RedisModuleCtx, n: c_long) -> c_int {
    of(ctx).reply(|builder| builder.begin(false, n));
    0
}

pub unsafe extern "C" fn map(ctx: *mut raw::RedisModuleCtx, n: c_long) -> c_int {
    of(ctx).reply(|builder| builder.begin(true, n));
    0
}
