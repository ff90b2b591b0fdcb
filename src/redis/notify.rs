//! Messages and keyspace notifications.

use redis_module::raw;
use std::ffi::CString;
use std::os::raw::c_int;

use crate::redis::api;
use crate::redis::ctx::Ctx;
use crate::redis::strings::{Key, ServerString};

/// The class of notifications for modules.
const CLASS: c_int = raw::REDISMODULE_NOTIFY_MODULE;

/// Whether the server's configuration enables notifications of modules.
pub fn is_notified() -> bool {
    const WAYS: c_int = raw::REDISMODULE_NOTIFY_KEYSPACE | raw::REDISMODULE_NOTIFY_KEYEVENT;
    // SAFETY: takes nothing.
    let asked = unsafe { api!(RedisModule_GetNotifyKeyspaceEvents()) };
    asked & CLASS != 0 && asked & WAYS != 0
}

impl Ctx<'_> {
    /// Notifies clients that are subscribed to a key, or to this event of any key.
    pub fn notify(self, event: &str, key: &Key) {
        let name = CString::new(event).unwrap_or_default();
        // SAFETY: context and key are valid; the server copies the name.
        unsafe { api!(RedisModule_NotifyKeyspaceEvent(self.0, CLASS, name.as_ptr(), key.raw())) };
    }

    /// Publishes a text to the subscribers of a channel.
    pub fn publish(self, channel: &ServerString, text: &ServerString) {
        // SAFETY: context and strings are valid.
        unsafe { api!(RedisModule_PublishMessage(self.0, channel.raw(), text.raw())) };
    }
}
