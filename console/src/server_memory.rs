//! The memory of the servers: INFO memory, for the first page.

use futures_util::future::join_all;
use redis::{cmd, Value};

use crate::app::RequestContext;
use crate::connection::reply::bytes;
use crate::failure::Failure;
use crate::names::shown;

/// Of one server, in bytes; without `maxmemory` the most is 0.
#[derive(Debug, Default, PartialEq)]
pub struct Memory {
    pub used: i64,
    pub most: i64,
    pub policy: String,
    /// Its address, in a cluster.
    node: Option<String>,
}

impl Memory {
    fn read(info: &[u8], node: Option<String>) -> Self {
        let info = String::from_utf8_lossy(info);
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.split_once(':').filter(|(own, _)| *own == name))
                .map(|(_, text)| text.trim())
        };
        let number = |name: &str| field(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            used: number("used_memory"),
            most: number("maxmemory"),
            policy: field("maxmemory_policy").unwrap_or_default().to_owned(),
            node,
        }
    }

    /// Which server it is, when there are several.
    pub fn node(&self) -> String {
        self.node.as_ref().map(|node| format!(" {}", shown(node.as_bytes()))).unwrap_or_default()
    }
}

/// Of each server that holds boards; none of those that the user may not ask.
pub async fn look(cx: &RequestContext) -> Result<Vec<Memory>, Failure> {
    let command = || cmd("INFO").arg("memory").to_owned();
    let link = &cx.session.link;
    if !link.is_cluster() {
        return Ok(told(cx.ask_shared(b"", command()).await, None)?.into_iter().collect());
    }
    let nodes = link.primaries().await?;
    let replies = join_all(nodes.iter().map(|node| link.ask_node(Some(node), command()))).await;
    let mut found = Vec::new();
    for ((host, port), reply) in nodes.iter().zip(replies) {
        match told(reply, Some(format!("{host}:{port}"))) {
            // The page of boards says that this server is away.
            Err(Failure::Unreachable(_)) => {}
            memory => found.extend(memory?),
        }
    }
    Ok(found)
}

fn told(reply: Result<Value, Failure>, node: Option<String>) -> Result<Option<Memory>, Failure> {
    match reply {
        Ok(info) => Ok(Some(Memory::read(&bytes(&info), node))),
        Err(Failure::NotAllowed(_) | Failure::Server(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_info() {
        let info = b"# Memory\r\nused_memory:7\r\nused_memory_rss:9\r\nmaxmemory:10\r\nmaxmemory_policy:allkeys-lru\r\n";
        let read = Memory::read(info, Some("a:1".into()));
        assert_eq!(
            (read.used, read.most, read.policy.as_str(), read.node().as_str()),
            (7, 10, "allkeys-lru", " a:1")
        );
        assert_eq!(Memory::read(b"", None), Memory::default());
    }
}
