//! Where metrics are served.

use std::net::SocketAddr;

/// Reads an address to serve at.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9180")
}
