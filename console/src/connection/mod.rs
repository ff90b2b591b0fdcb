//! A connection to the server or the cluster, with the rights of one user. Clones share it.

pub mod following;
pub mod place;
pub mod reply;
pub mod shared;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{
    cmd, AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ProtocolVersion, TlsCertificates, Value,
};

use crate::connection::following::{Following, Source};
use crate::connection::place::Place;
use crate::connection::reply::{bytes, int, list, Record};
use crate::failure::Failure;

/// How long a connection, or one answer, may take.
const PATIENCE: Duration = Duration::from_secs(10);

const BOARD_TYPE: &str = "jobboard1";

/// No more boards are listed.
pub const MOST_BOARDS: usize = 10_000;

/// A search for boards ends after this time, however many other keys there are.
const LONGEST_SEARCH: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub enum Link {
    /// To a server that stands alone.
    One(Arc<Following>),
    Cluster(ClusterConnection),
}

/// What a search has found; `whole` is false when it was given up before the end.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub boards: Vec<Vec<u8>>,
    pub whole: bool,
}

impl Link {
    /// Connects and signs in; without a user as the server's default user, without a password.
    /// A server that is a node of a cluster gives a link to the cluster.
    pub async fn open(place: &Place, user: Option<(&str, &str)>) -> Result<Self, Failure> {
        let (server, certs) = match place {
            Place::At(server, certs) => (server, certs),
            Place::Watched(sentinels) => {
                let source = Source::Named(Arc::clone(sentinels));
                return Ok(Self::One(Arc::new(Following::open(source, user).await?)));
            }
        };
        let client = Client::open(signed_in(server, user))?;
        let (_, hello) = connect(&client, AsyncConnectionConfig::new()).await?;
        if hello.text("mode") == "cluster" {
            return Self::open_cluster(server, certs.as_deref(), user).await;
        }
        Ok(Self::One(Arc::new(Following::open(Source::At(server.clone()), user).await?)))
    }

    /// The server that this link goes to now, when Sentinels have named it; else the place itself.
    pub async fn place(&self, place: &Place) -> Result<Place, Failure> {
        match (self, place) {
            (Self::One(link), Place::Watched(_)) => Ok(Place::At(link.server().await?.into(), None)),
            _ => Ok(place.clone()),
        }
    }

    /// Whether the server, and in a cluster each primary, still takes this user: only a new connection tells.
    pub async fn check(&self, place: &Place, user: Option<(&str, &str)>) -> Result<(), Failure> {
        let Place::At(server, _) = self.place(place).await? else { return Ok(()) };
        let named = check_at(&server, user).await;
        for (host, port) in self.primaries().await.unwrap_or_default() {
            let node = place::at_address(&server, host, port);
            if check_at(&node, user).await == Err(Failure::SignedOut) {
                return Err(Failure::SignedOut);
            }
        }
        named
    }

    async fn open_cluster(
        server: &ConnectionInfo,
        certs: Option<&TlsCertificates>,
        user: Option<(&str, &str)>,
    ) -> Result<Self, Failure> {
        let mut builder = ClusterClientBuilder::new([server.clone()])
            .use_protocol(ProtocolVersion::RESP3)
            .connection_timeout(PATIENCE)
            .response_timeout(PATIENCE)
            .retries(3);
        if let Some(certs) = certs {
            builder = builder.certs(certs.clone());
        }
        if let Some((name, password)) = user {
            builder = builder.username(name).password(password);
        }
        Ok(Self::Cluster(builder.build()?.get_async_connection().await?))
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
                let route = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route));
                Ok(link.clone().route_command(command, route).await?.extract_error()?)
            }
        }
    }

    /// The primaries of a cluster, sorted; none of a server that stands alone.
    pub async fn primaries(&self) -> Result<Vec<(String, u16)>, Failure> {
        let Self::Cluster(link) = self else { return Ok(Vec::new()) };
        let mut command = cmd("CLUSTER");
        command.arg("SLOTS");
        let route = RoutingInfo::SingleNode(SingleNodeRoutingInfo::RandomPrimary);
        let mut found = BTreeSet::new();
        for range in list(link.clone().route_command(command, route).await?.extract_error()?) {
            // begin, end, primary: [host, port, id, …]
            let primary = list(list(range).into_iter().nth(2).unwrap_or(Value::Nil));
            if let [host, port, ..] = primary.as_slice() {
                let port = int(port).and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
                found.insert((String::from_utf8_lossy(&bytes(host)).into_owned(), port));
            }
        }
        Ok(found.into_iter().collect())
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
                Ok(link
                    .clone()
                    .route_command(command, RoutingInfo::SingleNode(node))
                    .await?
                    .extract_error()?)
            }
        }
    }

    /// The boards of the database, or of all primaries of a cluster, sorted.
    pub async fn boards(&self) -> Result<Found, Failure> {
        let began = Instant::now();
        let nodes: Vec<Option<(String, u16)>> = match self {
            Self::Cluster(_) => self.primaries().await?.into_iter().map(Some).collect(),
            _ => vec![None],
        };
        let mut boards = BTreeSet::new();
        let mut whole = true;
        for node in nodes {
            let mut cursor = b"0".to_vec();
            loop {
                let mut scan = cmd("SCAN");
                scan.arg(&cursor).arg("COUNT").arg(1000).arg("TYPE").arg(BOARD_TYPE);
                let mut halves = list(self.ask_node(node.as_ref(), scan).await?).into_iter();
                cursor = halves.next().map(|cursor| bytes(&cursor)).unwrap_or_default();
                boards.extend(list(halves.next().unwrap_or(Value::Nil)).iter().map(bytes));
                if cursor == b"0" {
                    break;
                }
                if boards.len() >= MOST_BOARDS || began.elapsed() > LONGEST_SEARCH {
                    whole = false;
                    break;
                }
            }
        }
        Ok(Found { boards: boards.into_iter().collect(), whole })
    }
}

async fn check_at(server: &ConnectionInfo, user: Option<(&str, &str)>) -> Result<(), Failure> {
    connect(&Client::open(signed_in(server, user))?, AsyncConnectionConfig::new()).await.map(|_| ())
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
