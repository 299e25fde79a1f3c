//! One client: its request, then the answer, then the end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::page::Response;

/// A longer request is refused.
const REQUEST_LEN_MAX: usize = 4096;
/// A client has so long for its request while others wait.
const REQUEST_TIME: Duration = Duration::from_millis(25);
/// While others wait, a client has to take [`PROGRESS_LEN`] bytes of its answer
/// in each such time.
const PROGRESS_TIME: Duration = Duration::from_millis(100);
const PROGRESS_LEN: usize = 64 * 1024;
/// A client gets this many bytes before it is the turn of the next one.
const TURN_LEN: usize = 1024 * 1024;
/// What a client still sends after its request is read and dropped, up to this
/// many bytes: closing earlier would reset the connection and lose the answer.
const IGNORED_LEN_MAX: usize = 64 * 1024;

/// Whether there is more to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Again,
    Over,
}

#[derive(Debug)]
enum State {
    Reading(Vec<u8>),
    Writing(Answering),
    Closing { ignored: usize },
}

/// An answer on its way.
#[derive(Debug)]
struct Answering {
    answer: Arc<Response>,
    written: usize,
    /// As much was written when it last made progress.
    written_before: usize,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    /// When it last made progress: its begin, that of its answer, this many more
    /// bytes of it, its end.
    since: Instant,
    timeout: Duration,
    state: State,
}

impl Connection {
    /// `None` if the socket is already broken.
    pub(crate) fn new(stream: TcpStream, since: Instant, timeout: Duration) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, since, timeout, state: State::Reading(Vec::new()) })
    }

    /// What it waits for.
    pub(crate) fn interest(&self) -> PollFlags {
        match self.state {
            State::Reading(_) | State::Closing { .. } => PollFlags::IN,
            State::Writing(_) => PollFlags::OUT,
        }
    }

    /// Whether all is sent that it will get.
    pub(crate) fn has_answer(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    /// From when on it may be closed for the sake of another.
    pub(crate) fn makes_way_at(&self) -> Instant {
        match self.state {
            State::Reading(_) => self.since + REQUEST_TIME,
            State::Writing(_) => self.since + PROGRESS_TIME,
            State::Closing { .. } => self.since,
        }
    }

    /// Whether it takes an answer whose memory is needed.
    pub(crate) fn is_cut_off(&self) -> bool {
        matches!(&self.state, State::Writing(answering) if answering.answer.is_void())
    }

    /// From when on it is closed in any case.
    pub(crate) fn deadline(&self) -> Instant {
        self.since + self.timeout
    }

    /// Goes on as far as possible without waiting, for one turn. `page` makes
    /// the answer to a scrape.
    pub(crate) fn step(&mut self, page: &mut dyn FnMut() -> Arc<Response>) -> Step {
        match self.advance(page) {
            Ok(step) => step,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Step::Again,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Step::Again,
            Err(_) => Step::Over,
        }
    }

    fn advance(&mut self, page: &mut dyn FnMut() -> Arc<Response>) -> io::Result<Step> {
        loop {
            match &mut self.state {
                State::Reading(request) => {
                    let mut piece = [0; 1024];
                    let len = self.stream.read(&mut piece)?;
                    if len == 0 {
                        return Ok(Step::Over);
                    }
                    request.extend_from_slice(&piece[..len]);
                    if let Some(answer) = answer(request, page) {
                        self.state =
                            State::Writing(Answering { answer, written: 0, written_before: 0 });
                        self.since = Instant::now();
                    }
                }
                State::Writing(answering) => {
                    let advanced = answering.advance(&mut self.stream);
                    if answering.has_progressed() {
                        self.since = Instant::now();
                    }
                    if !advanced? {
                        return Ok(Step::Again);
                    }
                    self.stream.shutdown(Shutdown::Write)?;
                    self.state = State::Closing { ignored: 0 };
                    self.since = Instant::now();
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

impl Answering {
    /// Writes what is due in a turn. Whether all of it is written now.
    fn advance(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        let turn_end = self.answer.len().min(self.written + TURN_LEN);
        while self.written < turn_end {
            let rest = self.answer.after(self.written);
            self.written += stream.write(&rest[..rest.len().min(turn_end - self.written)])?;
        }
        Ok(self.written == self.answer.len())
    }

    /// Whether enough was written since the last progress.
    fn has_progressed(&mut self) -> bool {
        let progressed = self.written >= self.written_before + PROGRESS_LEN;
        if progressed {
            self.written_before = self.written;
        }
        progressed
    }
}

/// The answer to a request, once it is whole or has gone wrong.
fn answer(request: &[u8], page: &mut dyn FnMut() -> Arc<Response>) -> Option<Arc<Response>> {
    let is_whole = request.windows(4).any(|four| four == b"\r\n\r\n")
        || request.windows(2).any(|two| two == b"\n\n");
    if !is_whole {
        let too_long = request.len() > REQUEST_LEN_MAX;
        return too_long
            .then(|| Response::new("431 Request Header Fields Too Large", "", String::new()));
    }
    let line = request.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    Some(match (method, path) {
        (b"GET", b"/metrics") => page(),
        (b"GET", b"/") => Response::new("200 OK", "text/plain", "forebay: see /metrics\n".into()),
        (b"GET", _) => Response::new(
            "404 Not Found",
            "text/plain",
            "not found; the metrics are at \
                                                          /metrics\n"
                .into(),
        ),
        _ => {
            Response::new("405 Method Not Allowed\r\nallow: GET", "text/plain", "only GET\n".into())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &[u8]) -> Option<String> {
        let answer = answer(request, &mut || Response::new("200 OK", "", "text".into()))?;
        let answer = String::from_utf8(answer.after(0).to_vec()).unwrap();
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
