//! A tiny HTTP server for scrapes.
//!
//! One thread, a bounded number of connections, each with a deadline and a
//! bounded request: whatever a client does, its host program is not hurt.
//!
//! Decision: `docs/decisions/0041-metrics-endpoint.md`.

mod connection;
mod page;
mod signals;

use std::cmp::Reverse;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use connection::{Connection, Step};
use page::{Page, Response};

/// Where and how the endpoint listens.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Address and port; loopback port 9180 unless set. Port 0 lets the system
    /// choose one.
    pub address: SocketAddr,
    /// Most connections at once, at least 1; 32 unless set. More wait in the
    /// system's queue, and one that has its answer, has not sent its request
    /// within 25 ms, or takes less than 64 KiB of its answer in 100 ms, makes
    /// way for them.
    pub connections_max: usize,
    /// How long a connection may take for its request, and for each 64 KiB of
    /// the answer; 2 s unless set, an hour at most.
    pub timeout: Duration,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 9180)),
            connections_max: 32,
            timeout: Duration::from_secs(2),
        }
    }
}

/// Serves `GET /metrics` from a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread.
    process: u32,
}

impl Endpoint {
    /// Starts to listen; `text` makes the answer to scrapes, on the endpoint's
    /// thread. Who asks within 250 ms of another gets the same text, and within
    /// up to 1 s where the text takes long to make. There are two texts at a
    /// time: who takes longer for one than others ask for the next two, and
    /// for more than 1 s, is cut off. Where it panics the answer is an error
    /// (500), and the next one is tried.
    ///
    /// ```
    /// use forebay_endpoint::{Endpoint, EndpointConfig};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let config = EndpointConfig { address: ([127, 0, 0, 1], 0).into(), ..Default::default() };
    /// let endpoint = Endpoint::start(&config, || "# EOF\n".to_owned())?;
    /// println!("http://{}/metrics", endpoint.address());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The address cannot be listened on, which the error names, or the system
    /// is out of descriptors or threads.
    pub fn start(
        config: &EndpointConfig,
        text: impl Fn() -> String + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(config.address).map_err(|error| {
            let message = format!(
                "cannot serve metrics at {}: {error}; name an address of this machine with a free \
                 port, or port 0 for any",
                config.address
            );
            io::Error::new(error.kind(), message)
        })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let server = Server {
            listener,
            stop: Arc::clone(&stop),
            connections: Vec::new(),
            connections_max: config.connections_max.max(1),
            timeout: config.timeout.min(TIMEOUT_MAX),
            listen_again_at: None,
        };
        let builder = std::thread::Builder::new().name("forebay-metrics".into());
        let thread = signals::blocked(|| builder.spawn(move || server.run(Page::new(text))))?;
        Ok(Self { address, stop, thread: Some(thread), process: std::process::id() })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    /// Stops listening and closes all connections. In a forked child it does
    /// nothing: the thread is the parent's.
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// No connection needs longer.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// After an error of the listener, such as being out of descriptors, it is
/// left alone for so long.
const LISTEN_PAUSE: Duration = Duration::from_millis(100);

/// This many connections are accepted before those there are have their turn.
const ACCEPTS_PER_TURN: usize = 32;

struct Server {
    listener: TcpListener,
    stop: Arc<OwnedFd>,
    connections: Vec<Connection>,
    connections_max: usize,
    timeout: Duration,
    listen_again_at: Option<Instant>,
}

impl Server {
    fn run(mut self, mut page: Page<impl Fn() -> String>) {
        let page = &mut || page.answer(Instant::now());
        loop {
            let now = Instant::now();
            self.connections
                .retain(|connection| now < connection.deadline() && !connection.is_cut_off());
            self.listen_again_at = self.listen_again_at.filter(|&at| now < at);
            let listens = self.listens(now);
            let Ok((stopped, ready)) = self.wait(now, listens) else {
                // Too many descriptors for a limit that was lowered, or no memory.
                self.connections.clear();
                std::thread::sleep(LISTEN_PAUSE);
                if rustix::io::read(&*self.stop, &mut [0; 8]).is_ok() {
                    return;
                }
                continue;
            };
            if stopped {
                return;
            }
            // what takes this thread long from here on is nobody's delay
            let now = Instant::now();
            // the listener comes last: new connections have no place in `ready`
            let mut place = 0;
            self.connections.retain_mut(|connection| {
                let is_ready = ready.get(place).copied().unwrap_or(false);
                place += 1;
                !is_ready || matches!(connection.step(page), Step::Again)
            });
            if ready.last().copied().unwrap_or(false) {
                self.accept(now, page);
            }
        }
    }

    /// Whether accepting another connection is possible now.
    fn listens(&self, now: Instant) -> bool {
        let is_full = self.connections.len() >= self.connections_max;
        let has_room = !is_full || self.makes_way_at().is_some_and(|at| at <= now);
        has_room && self.listen_again_at.is_none()
    }

    /// When the first of the connections makes way for another.
    fn makes_way_at(&self) -> Option<Instant> {
        self.connections.iter().map(Connection::makes_way_at).min()
    }

    /// Sleeps until something can be done: whether to stop, and which of the
    /// connections, and last the listener, are ready.
    fn wait(&self, now: Instant, listens: bool) -> io::Result<(bool, Vec<bool>)> {
        let mut fds = vec![PollFd::new(&*self.stop, PollFlags::IN)];
        for connection in &self.connections {
            fds.push(PollFd::from_borrowed_fd(connection.stream.as_fd(), connection.interest()));
        }
        let interest = if listens { PollFlags::IN } else { PollFlags::empty() };
        fds.push(PollFd::new(&self.listener, interest));
        let deadlines = self.connections.iter().map(Connection::deadline);
        let makes_way = self.makes_way_at().filter(|_| !listens);
        let next = deadlines.chain(self.listen_again_at).chain(makes_way).min();
        let timeout = next.map(|at| at.saturating_duration_since(now) + Duration::from_millis(1));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        Ok((ready.next().unwrap_or(true), ready.collect()))
    }

    /// Takes new connections, and lets old ones make way for them.
    fn accept(&mut self, now: Instant, page: &mut dyn FnMut() -> Arc<Response>) {
        for _ in 0..ACCEPTS_PER_TURN {
            if !self.listens(now) {
                return;
            }
            match self.listener.accept() {
                Ok((stream, _)) => self.begin(now, stream, page),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.listen_again_at = Some(now + LISTEN_PAUSE),
            }
        }
    }

    fn begin(&mut self, now: Instant, stream: TcpStream, page: &mut dyn FnMut() -> Arc<Response>) {
        let Some(mut connection) = Connection::new(stream, now, self.timeout) else { return };
        // the request is often there already
        if connection.step(page) == Step::Over {
            return;
        }
        if self.connections.len() >= self.connections_max {
            self.make_way(now);
        }
        self.connections.push(connection);
    }

    /// Closes a connection for the sake of another; first one that has its
    /// answer, which loses nothing by it.
    fn make_way(&mut self, now: Instant) {
        let may_go = |old: &Connection| old.makes_way_at() <= now;
        let places = self.connections.iter().enumerate().filter(|(_, old)| may_go(old));
        let first = places.max_by_key(|(place, old)| (old.has_answer(), Reverse(*place)));
        if let Some((place, _)) = first {
            self.connections.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_waiters_have_their_turn_however_many_come() {
        const COME: usize = 100;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = Server {
            listener,
            stop: Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap()),
            connections: Vec::new(),
            connections_max: 2 * COME,
            timeout: TIMEOUT_MAX,
            listen_again_at: None,
        };
        let come: Vec<_> = (0..COME).map(|_| TcpStream::connect(address).unwrap()).collect();
        for turn in 1..=4 {
            let before = server.connections.len();
            server.accept(Instant::now(), &mut || Response::new("200 OK", "", String::new()));
            let taken = server.connections.len() - before;
            assert!(taken <= 32, "{taken} in turn {turn}");
        }
        assert_eq!(server.connections.len(), come.len());
    }
}
