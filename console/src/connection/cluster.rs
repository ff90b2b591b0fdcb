//! A link to a cluster. The library keeps to a node that went away without a word: it learns of another one only
//! when it is refused, or its connection is closed. So when an answer does not come in time, a new connection asks
//! the other nodes where the slots are now. Until there is one, the old one serves what other nodes hold.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{cmd, Cmd, ErrorKind, ProtocolVersion, RedisError, Value};
use tokio::time::timeout;

use crate::access::sessions::lock;
use crate::connection::place::{Server, User};
use crate::connection::{PASSED_OVER, PATIENCE};
use crate::failure::Failure;

/// So many times is any of the primaries asked what each of them knows.
const ASKED: usize = 4;

pub struct Cluster {
    server: Arc<Server>,
    user: Option<User>,
    connection: Mutex<ClusterConnection>,
    is_renewed: AtomicBool,
}

impl Cluster {
    pub async fn open(server: Arc<Server>, user: Option<(&str, &str)>) -> Result<Self, Failure> {
        let user = user.map(|(name, password)| (name.to_owned(), password.to_owned()));
        let connection = connect(&server, user.as_ref()).await?;
        Ok(Self { server, user, connection: Mutex::new(connection), is_renewed: AtomicBool::new(false) })
    }

    pub async fn ask(self: &Arc<Self>, node: SingleNodeRoutingInfo, command: Cmd) -> Result<Value, Failure> {
        let mut connection = lock(&self.connection).clone();
        let reply = connection.route_command(command, RoutingInfo::SingleNode(node)).await;
        reply.and_then(Value::extract_error).map_err(|error| {
            if is_away(&error) {
                self.renew();
            }
            error.into()
        })
    }

    /// Which nodes have which slots, as any primary tells: one that is silent is passed over.
    pub async fn slots(self: &Arc<Self>) -> Result<Value, Failure> {
        let slots = cmd("CLUSTER").arg("SLOTS").to_owned();
        let mut failure = Failure::Unreachable("No node of the cluster answers.".into());
        for _ in 0..ASKED {
            match timeout(PASSED_OVER, self.ask(SingleNodeRoutingInfo::RandomPrimary, slots.clone())).await {
                Ok(Err(found @ Failure::Unreachable(_))) => failure = found,
                Ok(reply) => return reply,
                Err(_) => self.renew(),
            }
        }
        Err(failure)
    }

    /// Keeps the addresses of its nodes, for when the one that was named is away.
    pub fn learn(&self, nodes: Vec<(String, u16)>) {
        *lock(&self.server.nodes) = nodes;
    }

    fn renew(self: &Arc<Self>) {
        if self.is_renewed.swap(true, Ordering::Relaxed) {
            return;
        }
        let link = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(connection) = connect(&link.server, link.user.as_ref()).await {
                *lock(&link.connection) = connection;
            }
            link.is_renewed.store(false, Ordering::Relaxed);
        });
    }
}

fn is_away(error: &RedisError) -> bool {
    error.is_timeout()
        || error.is_unrecoverable_error()
        || error.kind() == ErrorKind::ClusterConnectionNotFound
}

async fn connect(server: &Server, user: Option<&User>) -> Result<ClusterConnection, Failure> {
    let mut builder = ClusterClientBuilder::new(server.all())
        .use_protocol(ProtocolVersion::RESP3)
        .connection_timeout(PASSED_OVER)
        .response_timeout(PATIENCE)
        .retries(3);
    if let Some(certs) = &server.certs {
        builder = builder.certs(certs.clone());
    }
    if let Some((name, password)) = user {
        builder = builder.username(name.clone()).password(password.clone());
    }
    Ok(builder.build()?.get_async_connection().await?)
}
