//! A connection to the server or the cluster, with the rights of one user. Clones share it.

pub mod cluster;
pub mod following;
pub mod place;
pub mod reply;
pub mod shared;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::cluster_routing::{Route, SingleNodeRoutingInfo, SlotAddr};
use redis::{cmd, AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ProtocolVersion, Value};
use tokio::time::timeout;

use crate::connection::cluster::Cluster;
use crate::connection::following::{Following, Source};
use crate::connection::place::{Place, Server};
use crate::connection::reply::{bytes, int, list, Record};
use crate::failure::Failure;

/// How long a connection, or one answer, may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A node of a cluster that is silent for so long is passed over, where another one can be asked.
const PASSED_OVER: Duration = Duration::from_secs(2);

const BOARD_TYPE: &str = "jobboard1";

/// No more boards are listed.
pub const MOST_BOARDS: usize = 10_000;

/// A search for boards ends after this time, however many other keys there are.
const LONGEST_SEARCH: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub enum Link {
    /// To a server that stands alone.
    One(Arc<Following>),
    Cluster(Arc<Cluster>),
}

/// What a search has found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub boards: Vec<Vec<u8>>,
    /// Whether the search came to its end.
    pub whole: bool,
    /// Servers of a cluster that did not answer.
    pub away: Vec<String>,
}

impl Link {
    /// Connects and signs in; without a user as the server's default user, without a password.
    /// A server that is a node of a cluster gives a link to the cluster.
    pub async fn open(place: &Place, user: Option<(&str, &str)>) -> Result<Self, Failure> {
        let server = match place {
            Place::At(server) => server,
            Place::Watched(sentinels) => {
                let source = Source::Named(Arc::clone(sentinels));
                return Ok(Self::One(Arc::new(Following::open(source, user).await?)));
            }
        };
        if hello_of_any(server, user).await?.text("mode") == "cluster" {
            let link = Self::Cluster(Arc::new(Cluster::open(Arc::clone(server), user).await?));
            // For when the node that was named is away.
            let _ = link.primaries().await;
            return Ok(link);
        }
        let source = Source::At(server.address.clone().into());
        Ok(Self::One(Arc::new(Following::open(source, user).await?)))
    }

    /// The server that this link goes to now, when Sentinels have named it; else the place itself.
    pub async fn place(&self, place: &Place) -> Result<Place, Failure> {
        match (self, place) {
            (Self::One(link), Place::Watched(_)) => Ok(Place::At(Server::new(link.server().await?, None))),
            _ => Ok(place.clone()),
        }
    }

    /// Whether the server, and in a cluster each primary, still takes this user: only a new connection tells.
    pub async fn check(&self, place: &Place, user: Option<(&str, &str)>) -> Result<(), Failure> {
        let Place::At(server) = self.place(place).await? else { return Ok(()) };
        let named = hello(&server.address, user).await;
        for (host, port) in self.primaries().await.unwrap_or_default() {
            let node = place::at_address(&server.address, host, port);
            if hello(&node, user).await.is_err_and(|failure| failure == Failure::SignedOut) {
                return Err(Failure::SignedOut);
            }
        }
        named.map(|_| ())
    }

    pub fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Sends a command about one board to the server that holds it.
    pub async fn ask(&self, board: &[u8], command: Cmd) -> Result<Value, Failure> {
        match self {
            Self::One(link) => link.ask(&command).await,
            Self::Cluster(link) => {
                let route = Route::with_key(board, SlotAddr::Master);
                link.ask(SingleNodeRoutingInfo::SpecificNode(route), command).await
            }
        }
    }

    /// The primaries of a cluster, sorted; none of a server that stands alone.
    pub async fn primaries(&self) -> Result<Vec<(String, u16)>, Failure> {
        let Self::Cluster(link) = self else { return Ok(Vec::new()) };
        let (mut primaries, mut all) = (BTreeSet::new(), BTreeSet::new());
        for range in list(link.slots().await?) {
            // begin, end, the primary, its replicas: each [host, port, id, …]
            for (number, node) in list(range).into_iter().skip(2).enumerate() {
                let node = list(node);
                let [host, port, ..] = node.as_slice() else { continue };
                let port = int(port).and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
                let node = (String::from_utf8_lossy(&bytes(host)).into_owned(), port);
                if number == 0 {
                    primaries.insert(node.clone());
                }
                all.insert(node);
            }
        }
        link.learn(all.into_iter().collect());
        Ok(primaries.into_iter().collect())
    }

    /// Sends a command to one primary of a cluster, or to the server that stands alone.
    pub async fn ask_node(&self, node: Option<&(String, u16)>, command: Cmd) -> Result<Value, Failure> {
        match (self, node) {
            (Self::One(link), _) => link.ask(&command).await,
            (Self::Cluster(link), node) => {
                let node = match node {
                    Some((host, port)) => {
                        SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port }
                    }
                    None => SingleNodeRoutingInfo::RandomPrimary,
                };
                link.ask(node, command).await
            }
        }
    }

    /// The boards of the database, or of all primaries of a cluster that answer, sorted.
    pub async fn boards(&self) -> Result<Found, Failure> {
        let nodes: Vec<Option<(String, u16)>> = match self {
            Self::Cluster(_) => self.primaries().await?.into_iter().map(Some).collect(),
            _ => vec![None],
        };
        let mut found = Found { whole: true, ..Found::default() };
        let mut silent = Err(Failure::Unreachable("The cluster has no nodes.".into()));
        let searches = join_all(nodes.iter().map(|node| self.boards_of(node.as_ref()))).await;
        for (node, search) in nodes.iter().zip(searches) {
            match (search, node) {
                (Ok((boards, whole)), _) => {
                    found.boards.extend(boards);
                    found.whole &= whole;
                    silent = Ok(());
                }
                (Err(failure @ Failure::Unreachable(_)), Some((host, port))) => {
                    found.away.push(format!("{host}:{port}"));
                    silent = silent.map_err(|_| failure);
                }
                (Err(failure), _) => return Err(failure),
            }
        }
        found.boards.sort();
        found.boards.dedup();
        found.whole &= found.boards.len() <= MOST_BOARDS;
        found.boards.truncate(MOST_BOARDS);
        silent.map(|()| found)
    }

    /// Those of one primary, and whether it was searched to the end.
    async fn boards_of(&self, node: Option<&(String, u16)>) -> Result<(BTreeSet<Vec<u8>>, bool), Failure> {
        let began = Instant::now();
        let mut boards = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(&cursor).arg("COUNT").arg(1000).arg("TYPE").arg(BOARD_TYPE);
            let mut halves = list(self.ask_node(node, scan).await?).into_iter();
            cursor = halves.next().map(|cursor| bytes(&cursor)).unwrap_or_default();
            boards.extend(list(halves.next().unwrap_or(Value::Nil)).iter().map(bytes));
            if cursor == b"0" {
                return Ok((boards, true));
            }
            if boards.len() >= MOST_BOARDS || began.elapsed() > LONGEST_SEARCH {
                return Ok((boards, false));
            }
        }
    }
}

/// Signs in to the server that was named; where that is silent, to another node of its cluster.
async fn hello_of_any(server: &Server, user: Option<(&str, &str)>) -> Result<Record, Failure> {
    let nodes = server.all();
    if let [one] = nodes.as_slice() {
        return hello(one, user).await;
    }
    let mut silence = Failure::Unreachable("No node of the cluster answers.".into());
    for node in &nodes {
        match timeout(PASSED_OVER, hello(node, user)).await {
            Ok(Err(failure @ Failure::Unreachable(_))) => silence = failure,
            Ok(reply) => return reply,
            Err(_) => {}
        }
    }
    Err(silence)
}

/// Signs in on a connection of its own; what the server says of itself.
async fn hello(server: &ConnectionInfo, user: Option<(&str, &str)>) -> Result<Record, Failure> {
    let client = Client::open(signed_in(server, user))?;
    connect(&client, AsyncConnectionConfig::new()).await.map(|(_, hello)| hello)
}

/// A server with the user who signs in to it.
pub fn signed_in(server: &ConnectionInfo, user: Option<(&str, &str)>) -> ConnectionInfo {
    // Without CLIENT SETINFO: few users may send it, and the server would log each as denied.
    let settings =
        server.redis_settings().clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
    server.clone().set_redis_settings(match user {
        Some((name, password)) => settings.set_username(name).set_password(password),
        None => settings,
    })
}

/// A connection, and what the server says of itself.
pub async fn connect(
    client: &Client,
    config: AsyncConnectionConfig,
) -> Result<(MultiplexedConnection, Record), Failure> {
    let config = config.set_connection_timeout(Some(PATIENCE)).set_response_timeout(Some(PATIENCE));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    let hello = connection.send_packed_command(cmd("HELLO").arg(3)).await?.extract_error()?;
    Ok((connection, Record::read(hello).unwrap_or_default()))
}

/// `JOB.<words> <board>`: a command about a board, to which options are added. The words are the command's
/// name without `JOB.`, and for families their verb: `board_command("SCHEDULE LIST", board)`.
pub fn board_command(words: &str, board: &[u8]) -> Cmd {
    let mut parts = words.split(' ');
    let mut command = cmd(&format!("JOB.{}", parts.next().unwrap_or_default()));
    for part in parts {
        command.arg(part);
    }
    command.arg(board);
    command
}
