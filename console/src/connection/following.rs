//! A link to a server at an address, or to the primary that Sentinels name. It connects anew when its connection
//! is lost, and when an answer did not come in time: a server that was away for long answers on no old connection
//! until this machine's TCP tries again, which may take two minutes. Sentinels are asked anew as well when the
//! server turns out to be no primary any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt, Shared};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, PushInfo, PushKind, RedisError, Value};

use crate::access::sessions::lock;
use crate::connection::place::{Sentinels, User};
use crate::connection::{connect, signed_in};
use crate::failure::Failure;
use crate::names::shown;

/// Where the server is found.
#[derive(Clone)]
pub enum Source {
    At(Box<ConnectionInfo>),
    Named(Arc<Sentinels>),
}

pub struct Following {
    source: Source,
    user: Option<User>,
    /// The last search, which whoever comes meanwhile waits for, with what it has found.
    search: Mutex<Search>,
}

type Search = Shared<BoxFuture<'static, Result<Line, Failure>>>;

/// A connection to a server.
#[derive(Clone)]
struct Line {
    server: ConnectionInfo,
    connection: MultiplexedConnection,
    is_lost: Arc<AtomicBool>,
}

impl Following {
    pub async fn open(source: Source, user: Option<(&str, &str)>) -> Result<Self, Failure> {
        let user = user.map(|(name, password)| (name.to_owned(), password.to_owned()));
        let search = search(&source, &user);
        search.clone().await?;
        Ok(Self { source, user, search: Mutex::new(search) })
    }

    /// The server that the link goes to.
    pub async fn server(&self) -> Result<ConnectionInfo, Failure> {
        Ok(self.search().await?.server)
    }

    pub async fn ask(&self, command: &Cmd) -> Result<Value, Failure> {
        let mut is_first = true;
        loop {
            let mut line = self.search().await?;
            let reply = line.connection.send_packed_command(command).await;
            let error = match reply.and_then(Value::extract_error) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let is_refused = matches!(self.source, Source::Named(_)) && is_refused(&error);
            if is_refused || error.is_unrecoverable_error() || error.is_timeout() {
                line.is_lost.store(true, Ordering::Relaxed);
            }
            // Only what the server has refused, and so has not done, is sent again.
            if !(is_refused && is_first) {
                return Err(error.into());
            }
            is_first = false;
        }
    }

    async fn search(&self) -> Result<Line, Failure> {
        let search = {
            let mut search = lock(&self.search);
            if search.peek().is_some_and(|found| found.as_ref().map_or(true, Line::is_lost)) {
                *search = self::search(&self.source, &self.user);
            }
            search.clone()
        };
        search.await
    }
}

impl Line {
    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// A connection to this server, and its role.
    async fn open(server: ConnectionInfo, user: Option<(&str, &str)>) -> Result<(Self, String), Failure> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&is_lost);
        let config = AsyncConnectionConfig::new().set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                lost.store(true, Ordering::Relaxed);
            }
            Ok::<_, ()>(())
        });
        let (connection, hello) = connect(&Client::open(signed_in(&server, user))?, config).await?;
        Ok((Self { server, connection, is_lost }, hello.text("role")))
    }

    /// The same, if the server is a primary.
    async fn to_primary(server: ConnectionInfo, user: Option<(&str, &str)>) -> Result<Self, Failure> {
        match Self::open(server, user).await? {
            (line, role) if role == "master" => Ok(line),
            _ => Err(Failure::Unreachable("It is a replica now.".into())),
        }
    }
}

fn search(source: &Source, user: &Option<User>) -> Search {
    let (source, user) = (source.clone(), user.clone());
    let search = async move {
        let user = user.as_ref().map(|(name, password)| (name.as_str(), password.as_str()));
        match source {
            Source::At(server) => Line::open(*server, user).await.map(|(line, _)| line),
            Source::Named(sentinels) => named(&sentinels, user).await,
        }
    };
    search.boxed().shared()
}

/// Asks one Sentinel after the other, until one names a primary that answers.
async fn named(sentinels: &Sentinels, user: Option<(&str, &str)>) -> Result<Line, Failure> {
    let mut tried = Vec::new();
    let mut told = Vec::new();
    for sentinel in sentinels.in_turn() {
        let server = match sentinel.ask().await {
            Ok(server) => server,
            Err(complaint) => {
                told.push(format!("{} {complaint}", sentinel.name()));
                continue;
            }
        };
        let address = server.addr().clone();
        if tried.contains(&address) {
            continue;
        }
        match Line::to_primary(server, user).await {
            Err(Failure::Unreachable(text)) => {
                let address = shown(address.to_string().as_bytes());
                told.push(format!("{} names {address}: {text}", sentinel.name()));
            }
            other => return other,
        }
        tried.push(address);
    }
    let service = shown(sentinels.service.as_bytes());
    Err(Failure::Unreachable(format!("The Sentinels name no primary of \"{service}\": {}.", told.join("; "))))
}

/// Whether this is what a server says that is no primary, or not yet: nothing was done.
fn is_refused(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "LOADING" | "MASTERDOWN"))
}
