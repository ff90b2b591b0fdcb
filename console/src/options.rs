//! The command line.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Parser;
use redis::{ClientTlsConfig, TlsCertificates};

use crate::connection::place::{Place, User};

/// A console for the job boards of a Redis or Valkey server, in a browser.
#[derive(Debug, Parser)]
#[command(name = "jobboard-console", version)]
pub struct Options {
    /// The server, any node of a cluster, or the Sentinels of the server:
    /// redis+sentinel://host1:26379,host2:26379/service. Users sign in with a user and password of the server;
    /// those in this address are used for /metrics and --history alone.
    #[arg(long, env = "REDIS_URL", default_value = "redis://127.0.0.1:6379", hide_env_values = true)]
    pub redis: String,

    /// The address to listen on. Beyond loopback nobody is let in without a password.
    #[arg(long, default_value = "127.0.0.1")]
    pub bind: IpAddr,

    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8379)]
    pub port: u16,

    /// Lets users act on jobs, pause, and change settings, as far as the server lets them.
    #[arg(long)]
    pub write: bool,

    /// A host name under which browsers reach this console, such as that of a proxy. May be given again.
    #[arg(long)]
    pub host: Vec<String>,

    /// The path under which a proxy puts this console, such as /jobs.
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true, value_parser = base_path)]
    pub base_path: String,

    /// A proxy whose X-Forwarded-For is believed, by its address. May be given again.
    #[arg(long, value_name = "ADDRESS")]
    pub proxy: Vec<IpAddr>,

    /// The certificates, in PEM, of those who sign the server's certificate (rediss://); those of the system
    /// do not count then.
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,

    /// This console's own certificate, in PEM, where the server asks for one.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,

    /// The key of --cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,

    /// At most this many connections of browsers at once; more are turned away. Half of them may be pages that
    /// refresh by themselves. Each needs a file descriptor, and so does each user who is signed in.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(2..))]
    pub connections: u16,

    /// At most this many users are signed in at once; one user has at most a tenth of the sessions.
    #[arg(long, hide = true, default_value_t = 1000)]
    pub sessions: usize,

    /// Seconds after which the server is asked again whether it still takes those who are signed in.
    #[arg(long, hide = true, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub recheck: u64,

    /// Show these boards and look for no others (SCAN). May be given again.
    #[arg(long)]
    pub board: Vec<String>,

    /// Keep a day of samples of all boards in this folder, one a minute, asked for as the user in --redis; and
    /// what users did through this console, for 30 days.
    #[arg(long, value_name = "DIR")]
    pub history: Option<PathBuf>,

    /// Seconds from one sample to the next.
    #[arg(long, hide = true, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub history_pace: u64,

    /// Browsers reach this console by https only: its cookies are never sent without.
    #[arg(long)]
    pub secure: bool,

    /// What a scraper of /metrics has to send as `Authorization: Bearer <token>`. Beyond loopback there is
    /// no /metrics without it.
    #[arg(long, env = "JOBBOARD_METRICS_TOKEN", hide_env_values = true)]
    pub metrics_token: Option<String>,
}

impl Options {
    /// Where the server is, and the user and password in its address.
    pub fn place(&self) -> Result<(Place, Option<User>), String> {
        Place::read(&self.redis, self.certificates()?)
    }

    /// What --cacert, --cert and --key name.
    fn certificates(&self) -> Result<Option<TlsCertificates>, String> {
        let read = |option: &str, file: &PathBuf| {
            fs::read(file).map_err(|error| format!("{option} {}: {error}", file.display()))
        };
        let root_cert = self.cacert.as_ref().map(|file| read("--cacert", file)).transpose()?;
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                Some(ClientTlsConfig { client_cert: read("--cert", cert)?, client_key: read("--key", key)? })
            }
            _ => None,
        };
        let any = root_cert.is_some() || client_tls.is_some();
        Ok(any.then_some(TlsCertificates { client_tls, root_cert }))
    }

    /// Whether others than the users of this machine may come.
    pub fn is_exposed(&self) -> bool {
        !self.bind.is_loopback() || !self.host.is_empty()
    }
}

/// A path of plain letters, so that it needs no coding anywhere.
fn base_path(text: &str) -> Result<String, String> {
    let plain = |one: char| one.is_ascii_alphanumeric() || "/-_.~".contains(one);
    let odd = text.contains("//") || text.split('/').any(|part| part == "." || part == "..");
    match text.is_empty() || text.starts_with('/') && text.chars().all(plain) && !odd {
        true => Ok(text.to_owned()),
        false => Err("write it as /jobs: letters, digits and -_.~ behind a slash".into()),
    }
}
