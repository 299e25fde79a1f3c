//! One client: its request, then the answer, then the end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

/// A longer request is refused.
const REQUEST_LEN_MAX: usize = 4096;
/// A client has so long for its request while others wait.
const REQUEST_TIME: Duration = Duration::from_millis(25);
/// What a client still sends after its request is read and dropped, up to this
/// many bytes: closing earlier would reset the connection and lose the answer.
const IGNORED_LEN_MAX: usize = 64 * 1024;

/// Whether there is more to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Again,
    Over,
}

#[derive(Debug)]
enum State {
    Reading(Vec<u8>),
    Writing { answer: Vec<u8>, written: usize },
    Closing { ignored: usize },
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    begun: Instant,
    pub(super) deadline: Instant,
    state: State,
}

impl Connection {
    /// `None` if the socket is already broken.
    pub(super) fn new(stream: TcpStream, begun: Instant, deadline: Instant) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, begun, deadline, state: State::Reading(Vec::new()) })
    }

    /// What it waits for.
    pub(super) fn interest(&self) -> PollFlags {
        match self.state {
            State::Reading(_) | State::Closing { .. } => PollFlags::IN,
            State::Writing { .. } => PollFlags::OUT,
        }
    }

    /// Whether all is sent that it will get.
    pub(super) fn has_answer(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    /// From when on it may be closed for the sake of another.
    pub(super) fn makes_way_at(&self) -> Option<Instant> {
        match self.state {
            State::Reading(_) => Some(self.begun + REQUEST_TIME),
            State::Writing { .. } => None,
            State::Closing { .. } => Some(self.begun),
        }
    }

    /// Goes on as far as possible without waiting.
    pub(super) fn step(&mut self, text: &dyn Fn() -> String) -> Step {
        match self.advance(text) {
            Ok(step) => step,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Step::Again,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Step::Again,
            Err(_) => Step::Over,
        }
    }

    fn advance(&mut self, text: &dyn Fn() -> String) -> io::Result<Step> {
        loop {
            match &mut self.state {
                State::Reading(request) => {
                    let mut piece = [0; 1024];
                    let len = self.stream.read(&mut piece)?;
                    if len == 0 {
                        return Ok(Step::Over);
                    }
                    request.extend_from_slice(&piece[..len]);
                    if let Some(answer) = answer(request, text) {
                        self.state = State::Writing { answer, written: 0 };
                    }
                }
                State::Writing { answer, written } => {
                    while let Some(rest) = answer.get(*written..).filter(|rest| !rest.is_empty()) {
                        *written += self.stream.write(rest)?;
                    }
                    self.stream.shutdown(Shutdown::Write)?;
                    self.state = State::Closing { ignored: 0 };
                }
                State::Closing { ignored } => {
                    let mut piece = [0; 1024];
                    let len = self.stream.read(&mut piece)?;
                    *ignored += len;
                    if len == 0 || *ignored > IGNORED_LEN_MAX {
                        return Ok(Step::Over);
                    }
                }
            }
        }
    }
}

/// The answer to a request, once it is whole or has gone wrong.
fn answer(request: &[u8], text: &dyn Fn() -> String) -> Option<Vec<u8>> {
    let is_whole = request.windows(4).any(|four| four == b"\r\n\r\n")
        || request.windows(2).any(|two| two == b"\n\n");
    if !is_whole {
        let too_long = request.len() > REQUEST_LEN_MAX;
        return too_long.then(|| response("431 Request Header Fields Too Large", "", ""));
    }
    let line = request.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    Some(match (method, path) {
        (b"GET", b"/metrics") => response(
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            &text(),
        ),
        (b"GET", b"/") => response("200 OK", "text/plain", "forebay: see /metrics\n"),
        (b"GET", _) => response("404 Not Found", "text/plain", "there is only /metrics\n"),
        _ => response("405 Method Not Allowed\r\nallow: GET", "text/plain", "only GET\n"),
    })
}

fn response(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    let content_type = match content_type {
        "" => String::new(),
        kind => format!("content-type: {kind}\r\n"),
    };
    let len = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{content_type}content-length: {len}\r\n");
    format!("{head}connection: close\r\n\r\n{body}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &[u8]) -> Option<String> {
        let answer = answer(request, &|| "text".into())?;
        let answer = String::from_utf8(answer).unwrap();
        Some(answer.split("\r\n").next().unwrap()["HTTP/1.1 ".len()..].into())
    }

    #[test]
    fn requests_and_their_answers() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n", Some("200 OK")),
            ("GET /metrics?x=1 HTTP/1.0\n\n", Some("200 OK")),
            ("GET /other HTTP/1.1\r\n\r\n", Some("404 Not Found")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Some("405 Method Not Allowed")),
            ("\r\n\r\n", Some("405 Method Not Allowed")),
            ("GET /metrics HTTP/1.1\r\n", None),
        ] {
            assert_eq!(status(request.as_bytes()).as_deref(), expected, "{request:?}");
        }
        assert_eq!(status(&[b'x'; 4095]), None);
        let too_large = "431 Request Header Fields Too Large";
        assert_eq!(status(&[b'x'; 5000]).as_deref(), Some(too_large));
    }
}
