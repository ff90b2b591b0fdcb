//! Ends the sessions of users whom the server no longer takes. It closes no connection of a user who is
//! disabled or has another password: only a new one tells.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{stream, StreamExt};

use crate::access::sessions::Credentials;
use crate::app::App;
use crate::connection::Link;
use crate::failure::Failure;

/// The console asks the server about at most this many users at once.
const AT_ONCE: usize = 16;

/// Asks again and again, once for all sessions of one user with one password.
pub async fn recheck(app: Arc<App>) {
    loop {
        tokio::time::sleep(Duration::from_secs(app.options.recheck)).await;
        let known = stream::iter(app.sessions.credentials());
        known.for_each_concurrent(AT_ONCE, |(credentials, link)| check(&app, credentials, link)).await;
    }
}

async fn check(app: &App, credentials: Credentials, link: Link) {
    let (user, password) = &credentials;
    let user = password.as_deref().map(|password| (user.as_str(), password));
    // A server that cannot be reached says nothing of its users.
    if link.check(&app.place, user).await == Err(Failure::SignedOut) {
        app.sign_out_all(&credentials);
    }
}
