//! Where the server is: at an address, or where Sentinels say.

use std::iter::once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{
    cmd, AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, TlsCertificates,
};

use crate::access::sessions::lock;
use crate::names::shown;
use crate::query::Query;

/// Schemes of Sentinels, with that of the servers behind them, as the Python package has them.
const SCHEMES: [(&str, &str); 3] =
    [("sentinel", "redis"), ("redis+sentinel", "redis"), ("rediss+sentinel", "rediss")];

const PORT: u16 = 26379;

/// A Sentinel that does not answer is passed over after this.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub enum Place {
    /// A server, or a node of a cluster.
    At(Arc<Server>),
    /// The primary of a service that Sentinels watch.
    Watched(Arc<Sentinels>),
}

/// A server, or a node of a cluster with what is known of the others.
pub struct Server {
    pub address: ConnectionInfo,
    /// For the nodes that it names.
    pub certs: Option<TlsCertificates>,
    /// The nodes of its cluster, as they were seen last.
    pub nodes: Mutex<Vec<(String, u16)>>,
}

impl Server {
    pub fn new(address: ConnectionInfo, certs: Option<TlsCertificates>) -> Arc<Self> {
        Arc::new(Self { address, certs, nodes: Mutex::default() })
    }

    /// Its own address and those of the other nodes that are known.
    pub fn all(&self) -> Vec<ConnectionInfo> {
        let nodes = lock(&self.nodes);
        let others = nodes.iter().map(|(host, port)| at_address(&self.address, host.clone(), *port));
        let others = others.filter(|node| node.addr() != self.address.addr());
        once(self.address.clone()).chain(others).collect()
    }
}

/// Name and password.
pub type User = (String, String);

impl Place {
    /// Reads an address, and takes user and password out of it; no error repeats these.
    pub fn read(url: &str, certs: Option<TlsCertificates>) -> Result<(Self, Option<User>), String> {
        let (place, user) = Self::parse(url)
            .map_err(|like| format!("--redis (or REDIS_URL) is not an address like {like}"))?;
        let Some(certs) = certs else { return Ok((place, user)) };
        Ok((place.with(certs).map_err(|error| format!("--cacert, --cert, --key: {error}"))?, user))
    }

    /// The same place, to which these certificates are shown, and whose own they sign.
    fn with(self, certs: TlsCertificates) -> Result<Self, String> {
        let with = |server: ConnectionInfo| match server.addr() {
            ConnectionAddr::TcpTls { .. } => match Client::build_with_tls(server, certs.clone()) {
                Ok(client) => Ok(client.get_connection_info().clone()),
                Err(error) => Err(shown(error.to_string().as_bytes())),
            },
            _ => Err("the address must begin with rediss://".to_owned()),
        };
        Ok(match self {
            Self::At(server) => Self::At(Server::new(with(server.address.clone())?, Some(certs))),
            Self::Watched(sentinels) => {
                let sentinels = Arc::into_inner(sentinels).ok_or("they are in use")?;
                Self::Watched(Arc::new(Sentinels {
                    hosts: sentinels.hosts.into_iter().map(with).collect::<Result<_, _>>()?,
                    server: with(sentinels.server)?,
                    ..sentinels
                }))
            }
        })
    }

    fn parse(url: &str) -> Result<(Self, Option<User>), &'static str> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        match SCHEMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(scheme)) {
            Some((_, scheme)) => Sentinels::read(scheme, rest)
                .map(|(sentinels, user)| (Self::Watched(Arc::new(sentinels)), user))
                .ok_or("redis+sentinel://[user:password@]host1:26379,host2:26379/service[/db]"),
            None => match url.into_connection_info() {
                Ok(server) => Ok((Self::At(Server::new(without_user(&server), None)), user_of(&server))),
                Err(_) => Err("redis://127.0.0.1:6379/0"),
            },
        }
    }
}

fn user_of(server: &ConnectionInfo) -> Option<User> {
    let settings = server.redis_settings();
    let password = settings.password()?;
    Some((settings.username().unwrap_or("default").to_owned(), password.to_owned()))
}

fn without_user(server: &ConnectionInfo) -> ConnectionInfo {
    server.clone().set_redis_settings(RedisConnectionInfo::default().set_db(server.redis_settings().db()))
}

pub struct Sentinels {
    /// The name under which they know the primary.
    pub service: String,
    hosts: Vec<ConnectionInfo>,
    /// How to speak to a server that they name, at an address that says nothing.
    server: ConnectionInfo,
    /// The one that has answered last is asked first.
    first: AtomicUsize,
}

impl Sentinels {
    /// Reads what follows the scheme. User, password and number of the database are those of the server, the
    /// options `sentinel_username` and `sentinel_password` those of the Sentinels; TLS is for both.
    fn read(scheme: &str, rest: &str) -> Option<(Self, Option<User>)> {
        let (rest, fragment) = rest
            .split_once('#')
            .map_or((rest, String::new()), |(rest, fragment)| (rest, format!("#{fragment}")));
        let (head, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, path) = head.split_once('/')?;
        let (user, hosts) = place.rsplit_once('@').map_or(("", place), |(user, hosts)| (user, hosts));
        let (service, db) = path.split_once('/').unwrap_or((path, ""));
        if service.is_empty() {
            return None;
        }
        let query = Query::read(query.as_bytes());
        let option = |name| query.bytes(name).and_then(|value| std::str::from_utf8(value).ok());
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(name) = option("sentinel_username") {
            settings = settings.set_username(name);
        }
        if let Some(password) = option("sentinel_password") {
            settings = settings.set_password(password);
        }
        let hosts = hosts.split(',').map(|host| {
            let has_port = host.rfind(':').is_some_and(|colon| !host[colon..].contains(']'));
            let port = if has_port { String::new() } else { format!(":{PORT}") };
            let sentinel = format!("{scheme}://{host}{port}{fragment}").into_connection_info().ok()?;
            Some(sentinel.set_redis_settings(settings.clone()))
        });
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        let server = format!("{scheme}://{user}server/{db}{fragment}").into_connection_info().ok()?;
        let sentinels = Self {
            service: service.to_owned(),
            hosts: hosts.collect::<Option<_>>()?,
            server: without_user(&server),
            first: AtomicUsize::new(0),
        };
        Some((sentinels, user_of(&server)))
    }

    /// All of them, the one that has answered last first.
    pub fn in_turn(&self) -> impl Iterator<Item = Sentinel<'_>> {
        let first = self.first.load(Ordering::Relaxed);
        (0..self.hosts.len())
            .map(move |number| Sentinel { of: self, number: (first + number) % self.hosts.len() })
    }
}

pub struct Sentinel<'a> {
    of: &'a Sentinels,
    number: usize,
}

impl Sentinel<'_> {
    /// Its address.
    pub fn name(&self) -> String {
        shown(self.of.hosts[self.number].addr().to_string().as_bytes())
    }

    /// The server that it takes for the primary, or why it names none.
    pub async fn ask(&self) -> Result<ConnectionInfo, String> {
        let (host, port) = match self.address().await {
            Ok(address) => address.ok_or("does not know the name")?,
            Err(error) => return Err(complaint(&error)),
        };
        self.of.first.store(self.number, Ordering::Relaxed);
        Ok(at_address(&self.of.server, host, port))
    }

    async fn address(&self) -> Result<Option<(String, u16)>, RedisError> {
        let client = Client::open(self.of.hosts[self.number].clone())?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let question = cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.of.service).to_owned();
        question.query_async(&mut connection).await
    }
}

/// The same server at another address.
pub fn at_address(server: &ConnectionInfo, host: String, port: u16) -> ConnectionInfo {
    let address = match server.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    server.clone().set_addr(address)
}

/// What is wrong with a Sentinel.
fn complaint(error: &RedisError) -> String {
    match error.code() {
        Some("NOAUTH" | "WRONGPASS") => WANTS_PASSWORD.into(),
        _ if error.kind() == ErrorKind::AuthenticationFailed => WANTS_PASSWORD.into(),
        _ if error.detail().is_some_and(|text| text.starts_with("unknown command")) => {
            "is no Sentinel".into()
        }
        _ => format!("does not answer: {}", shown(error.to_string().as_bytes())),
    }
}

const WANTS_PASSWORD: &str =
    "asks for another user or password: add ?sentinel_username=…&sentinel_password=… to the address";

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(url: &str) -> (Sentinels, Option<User>) {
        match Place::parse(url) {
            Ok((Place::Watched(sentinels), user)) => (Arc::into_inner(sentinels).unwrap(), user),
            _ => panic!("{url}"),
        }
    }

    #[test]
    fn addresses_of_sentinels() {
        let (found, user) = watched(
            "redis+sentinel://ann:a%2Fb@one,two:5,[::1]:7,[::2]/jobs/3?sentinel_username=s&sentinel_password=p%26q",
        );
        let names: Vec<String> = found.in_turn().map(|sentinel| sentinel.name()).collect();
        assert_eq!(names, ["one:26379", "two:5", "::1:7", "::2:26379"]);
        assert_eq!((found.service.as_str(), user), ("jobs", Some(("ann".into(), "a/b".into()))));
        assert!(matches!(found.server.addr(), ConnectionAddr::Tcp(..)));
        let server = found.server.redis_settings();
        assert_eq!((server.username(), server.password(), server.db()), (None, None, 3));
        let sentinel = found.hosts[1].redis_settings();
        assert_eq!((sentinel.username(), sentinel.password(), sentinel.db()), (Some("s"), Some("p&q"), 0));
        assert_eq!(watched("sentinel://:secret@one/jobs").1, Some(("default".into(), "secret".into())));
        assert_eq!(watched("SENTINEL://one/jobs?socket_timeout=1").1, None);
    }

    #[test]
    fn tls_is_for_sentinels_and_servers() {
        for (end, is_insecure) in [("", false), ("#insecure", true)] {
            let (found, _) = watched(&format!("rediss+sentinel://one/jobs{end}"));
            for address in [found.hosts[0].addr(), found.server.addr()] {
                assert!(
                    matches!(address, ConnectionAddr::TcpTls { insecure, .. } if *insecure == is_insecure)
                );
            }
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for bad in
            ["", "/", "/x", "one", "one/", "one,/x", ",/x", "one:x/x", "one/x/y", "ann:secret@/x", "::1/x"]
        {
            let told = Place::parse(&format!("redis+sentinel://{bad}")).err().unwrap();
            assert!(told.starts_with("redis+sentinel://["), "{bad}");
        }
    }
}
