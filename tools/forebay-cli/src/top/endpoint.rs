//! Asks an endpoint for its metrics. HTTP of one request and one answer, which is 100 lines less
//! than the smallest client brings dependencies.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The port of the documentation's examples.
const PORT: u16 = 9180;
/// An answer takes no longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// An answer is no larger: a thousand classes on ten disks are a third of it.
const ANSWER_MAX: usize = 64 << 20;

/// Where the metrics of a process are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    host: String,
    path: String,
}

impl Endpoint {
    /// Reads `host:port`, or the same with `http://` before it and a path behind it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str =
            "expected an address such as 127.0.0.1:9180 or http://host:9180/metrics";
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let (host, path) = match rest.split_once('/') {
            Some((host, path)) if !path.is_empty() => (host, format!("/{path}")),
            Some((host, _)) => (host, String::from("/metrics")),
            None => (rest, String::from("/metrics")),
        };
        let printable = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || host.contains('@') || !printable(host) || !printable(&path) {
            return Err(EXPECTED.into());
        }
        let host = if !host.contains(':') || host.ends_with(']') {
            format!("{host}:{PORT}")
        } else {
            host.to_owned()
        };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if has_port { Ok(Self { host, path }) } else { Err(EXPECTED.into()) }
    }

    /// The host with its port.
    pub(crate) fn name(&self) -> &str {
        &self.host
    }

    /// The text that is there now.
    pub(crate) fn get(&self) -> Result<String, String> {
        let deadline = Instant::now() + PATIENCE;
        let answer = self.exchange(deadline).map_err(|error| match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                format!("no answer from {} within {} s", self.host, PATIENCE.as_secs())
            }
            ErrorKind::ConnectionRefused => {
                format!(
                    "connection refused by {}: is the process running with metrics enabled?",
                    self.host
                )
            }
            _ => format!("cannot read metrics from {}: {error}", self.host),
        })?;
        body(&answer).map_err(|error| format!("{}{}: {error}", self.host, self.path))
    }

    fn exchange(&self, deadline: Instant) -> std::io::Result<Vec<u8>> {
        let mut stream = self.connect(deadline)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Self { host, path } = self;
        // in one piece, for an answer that comes before all is read may be lost
        let request = format!("GET {path} HTTP/1.0\r\nhost: {host}\r\naccept: */*\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let (mut answer, mut piece) = (Vec::new(), [0; 1 << 14]);
        loop {
            stream.set_read_timeout(Some(left(deadline)?))?;
            match stream.read(&mut piece) {
                Ok(0) => return Ok(answer),
                Ok(count) => answer.extend_from_slice(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if answer.len() > ANSWER_MAX {
                let text = format!("its answer is larger than {} MiB", ANSWER_MAX >> 20);
                return Err(std::io::Error::other(text));
            }
        }
    }

    fn connect(&self, deadline: Instant) -> std::io::Result<TcpStream> {
        let mut failure = std::io::Error::other("the name has no address");
        for address in self.host.to_socket_addrs()? {
            let address: SocketAddr = address;
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// Time until then; an error if there is none.
fn left(deadline: Instant) -> std::io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// What an HTTP answer holds, if it says that all is well.
fn body(answer: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(answer);
    let no_http = || String::from("its answer is not HTTP");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(no_http)?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.")).ok_or_else(no_http)?;
    let status = status.split_once(' ').map(|(_, status)| status).ok_or_else(no_http)?;
    if !status.starts_with("200") {
        let printable = |char: &char| !char.is_control();
        let status: String = status.chars().filter(printable).take(60).collect();
        return Err(format!("it answers {status}"));
    }
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_a_port_and_a_path() {
        for (text, host, path) in [
            ("127.0.0.1:9180", "127.0.0.1:9180", "/metrics"),
            ("db7", "db7:9180", "/metrics"),
            ("http://db7:80/", "db7:80", "/metrics"),
            ("http://[::1]/x/y", "[::1]:9180", "/x/y"),
            ("[::1]:7", "[::1]:7", "/metrics"),
        ] {
            let endpoint = Endpoint { host: host.into(), path: path.into() };
            assert_eq!(Endpoint::parse(text), Ok(endpoint), "{text}");
        }
        for text in
            ["", "http://", ":", "a:b", "a:70000", "https://a:1", "a b", "a:1/x\r\ny", "u@h"]
        {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_an_answer_that_says_all_is_well_has_a_body() {
        assert_eq!(body(b"HTTP/1.1 200 OK\r\na: b\r\n\r\ntext"), Ok("text".into()));
        let missing = body(b"HTTP/1.0 404 Not \x1b[2J\r\n\r\n").unwrap_err();
        assert_eq!(missing, "it answers 404 Not [2J");
        for answer in [&b""[..], b"HTTP/1.1 200 OK", b"SSH-2.0\r\n\r\n", b"\xff\xfe\r\n\r\n"] {
            assert!(body(answer).unwrap_err().contains("not HTTP"));
        }
    }
}
