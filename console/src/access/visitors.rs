//! Where a request comes from, and whether it may be anybody's.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::Request;
use axum::http::{header, HeaderMap, Version};

/// The other end of a connection.
#[derive(Clone, Copy)]
pub struct Peer(pub SocketAddr);

#[derive(Clone, Debug, PartialEq)]
pub struct Visitor {
    /// As far as we know; of IPv6 the network.
    pub address: IpAddr,
    /// Others than users of this machine may have sent it: they need a password.
    pub is_exposed: bool,
}

impl Visitor {
    /// `is_exposed` is what the command line says of all requests.
    pub fn of(request: &Request, is_exposed: bool, proxies: &[IpAddr]) -> Self {
        let headers = request.headers();
        let peer = request.extensions().get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
        let is_exposed = is_exposed || is_forwarded(request.version(), headers);
        Self { address: network(sender(headers, peer, proxies)), is_exposed }
    }
}

/// Whether a request was passed on by a proxy. One that writes a `Host` of its own and names itself nowhere
/// cannot be told from a browser here, unless it speaks HTTP/1.0, as no browser does.
fn is_forwarded(version: Version, headers: &HeaderMap) -> bool {
    let signs = ["forwarded", "via", "x-real-ip"];
    let name_is_sign = |name: &str| signs.contains(&name) || name.starts_with("x-forwarded-");
    version < Version::HTTP_11
        || headers.keys().any(|name| name_is_sign(name.as_str()))
        || headers.get(header::HOST).and_then(|host| host.to_str().ok()).is_some_and(|host| !is_local(host))
}

/// Whether a `Host` is this machine's name for itself.
fn is_local(host: &str) -> bool {
    let name = without_port(host);
    let digits = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || digits.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A `Host` without its port.
pub fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon)
            if !host[colon..].contains(']') && host.matches(':').count() == 1 || host.contains("]:") =>
        {
            &host[..colon]
        }
        _ => host,
    }
}

/// Whom a proxy has passed on that was named: the last address is the one that it has seen itself. The word
/// of others does not count.
fn sender(headers: &HeaderMap, peer: IpAddr, proxies: &[IpAddr]) -> IpAddr {
    let last = headers.get_all("x-forwarded-for").iter().next_back();
    let last = last.and_then(|line| line.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
    let is_named = proxies.iter().any(|proxy| proxy.to_canonical() == peer.to_canonical());
    last.filter(|_| is_named).unwrap_or(peer)
}

/// Whoever has one IPv6 address has all of its network.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(peer: &str, version: Version, pairs: &[(&'static str, &str)]) -> Request {
        let mut request = Request::default();
        *request.version_mut() = version;
        request
            .headers_mut()
            .extend(pairs.iter().map(|(name, value)| (Some(name.parse().unwrap()), value.parse().unwrap())));
        request.extensions_mut().insert(Peer(SocketAddr::new(peer.parse().unwrap(), 1)));
        request
    }

    fn exposed(version: Version, pairs: &[(&'static str, &str)]) -> bool {
        Visitor::of(&request("127.0.0.1", version, pairs), false, &[]).is_exposed
    }

    #[test]
    fn what_a_proxy_has_passed_on_may_be_anybodys() {
        for host in ["localhost:8379", "127.0.0.1:8379", "[::1]:8379", "127.0.0.2", "LOCALHOST"] {
            assert!(!exposed(Version::HTTP_11, &[("host", host)]), "{host}");
        }
        for host in ["10.0.0.9", "jobs.example", "[fe80::1]:80", "127.0.0.1.evil"] {
            assert!(exposed(Version::HTTP_11, &[("host", host)]), "{host}");
        }
        for name in
            ["forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"]
        {
            assert!(exposed(Version::HTTP_11, &[("host", "127.0.0.1"), (name, "x")]), "{name}");
        }
        assert!(exposed(Version::HTTP_10, &[("host", "127.0.0.1")]));
        assert!(Visitor::of(&request("127.0.0.1", Version::HTTP_11, &[]), true, &[]).is_exposed);
    }

    #[test]
    fn a_proxy_that_is_named_tells_whom_it_serves_and_others_are_not_believed() {
        let proxies = ["127.0.0.1", "::1"].map(|proxy| proxy.parse().unwrap());
        let address = |peer, told| {
            Visitor::of(&request(peer, Version::HTTP_11, &[("x-forwarded-for", told)]), true, &proxies)
                .address
                .to_string()
        };
        assert_eq!(address("127.0.0.1", "10.0.0.1, 10.0.0.2"), "10.0.0.2");
        assert_eq!(address("10.0.0.3", "10.0.0.1"), "10.0.0.3");
        assert_eq!(address("::1", "2001:db8::1:2:3:4"), "2001:db8::");
        assert_eq!(address("::ffff:10.0.0.4", "?"), "10.0.0.4");
        assert_eq!(address("127.0.0.1", "nonsense"), "127.0.0.1");
        assert_eq!(address("127.0.0.2", "10.0.0.1"), "127.0.0.2");
    }
}
