//! The answer to scrapes, made once for all that come within a short time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An answer is given to whoever asks within this time after it was made: the
/// text of many classes takes long to write, and nobody scrapes so often.
const AGE_MAX: Duration = Duration::from_millis(250);

/// Makes the text, and keeps the last one as a whole answer.
pub(super) struct Page<F> {
    text: F,
    made: Option<(Instant, Arc<[u8]>)>,
}

impl<F: Fn() -> String> Page<F> {
    pub(super) const fn new(text: F) -> Self {
        Self { text, made: None }
    }

    /// The answer to a scrape.
    pub(super) fn answer(&mut self) -> Arc<[u8]> {
        if let Some((at, answer)) = &self.made
            && at.elapsed() < AGE_MAX
        {
            return Arc::clone(answer);
        }
        // Before the next one takes its memory.
        self.made = None;
        let answer = self.make();
        self.made = Some((Instant::now(), Arc::clone(&answer)));
        answer
    }

    /// A panic is the program's, and no reason to serve no more.
    fn make(&self) -> Arc<[u8]> {
        match catch_unwind(AssertUnwindSafe(&self.text)) {
            Ok(text) => response(
                "200 OK",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                &text,
            ),
            Err(payload) => {
                // Dropping it may panic again.
                std::mem::forget(payload);
                let body = "what makes the text has panicked: see the program's log\n";
                response("500 Internal Server Error", "text/plain", body)
            }
        }
    }
}

/// A whole answer.
pub(super) fn response(status: &str, content_type: &str, body: &str) -> Arc<[u8]> {
    let content_type = match content_type {
        "" => String::new(),
        kind => format!("content-type: {kind}\r\n"),
    };
    let len = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{content_type}content-length: {len}\r\n");
    format!("{head}connection: close\r\n\r\n{body}").into_bytes().into()
}
