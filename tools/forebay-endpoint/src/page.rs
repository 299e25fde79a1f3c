//! The answer to scrapes, made once for all that come within a short time.
//!
//! The text of many classes is long and takes long to write. So there are two texts at most: the
//! present one, and the one before while a client still takes it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// An answer is reused for this time after it was made.
const AGE_MAX: Duration = Duration::from_millis(250);
/// The same for an answer that takes long to make: a fifth of the time goes into making them.
const AGES_OF_MAKING: u32 = 4;
/// While a client takes the text before the present one, that is given out for so long; then the
/// client is cut off.
const AGE_WHILE_TAKEN_MAX: Duration = Duration::from_secs(1);

/// A whole answer, for all who get it.
#[derive(Debug)]
pub(crate) struct Response {
    head: String,
    body: String,
    is_void: AtomicBool,
}

impl Response {
    pub(crate) fn new(status: &str, content_type: &str, body: String) -> Arc<Self> {
        let content_type = match content_type {
            "" => String::new(),
            kind => format!("content-type: {kind}\r\n"),
        };
        let len = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\n{content_type}content-length: {len}\r\nconnection: close\r\n\r\n"
        );
        Arc::new(Self { head, body, is_void: AtomicBool::new(false) })
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// What is to be sent next of it, after this many bytes.
    pub(crate) fn after(&self, sent: usize) -> &[u8] {
        let (head, body) = (self.head.as_bytes(), self.body.as_bytes());
        match head.get(sent..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => body.get(sent - head.len()..).unwrap_or_default(),
        }
    }

    /// Whether its memory is needed: the client that reads it is disconnected.
    pub(crate) fn is_void(&self) -> bool {
        self.is_void.load(Ordering::Relaxed)
    }
}

/// Makes the text, and keeps the last one as a whole answer.
pub(crate) struct Page<F> {
    text: F,
    made: Option<Made>,
    /// The one before.
    earlier: Weak<Response>,
}

struct Made {
    at: Instant,
    /// For how long it is given out.
    age_max: Duration,
    answer: Arc<Response>,
}

impl<F: Fn() -> String> Page<F> {
    pub(crate) const fn new(text: F) -> Self {
        Self { text, made: None, earlier: Weak::new() }
    }

    /// The answer to a scrape at `now`.
    pub(crate) fn answer(&mut self, now: Instant) -> Arc<Response> {
        if let Some(Made { at, age_max, answer }) = &self.made {
            let age = now.saturating_duration_since(*at);
            if age < *age_max {
                return Arc::clone(answer);
            }
            if let Some(earlier) = self.earlier.upgrade() {
                earlier.is_void.store(age >= AGE_WHILE_TAKEN_MAX, Ordering::Relaxed);
                return Arc::clone(answer);
            }
        }
        // Unless somebody takes it, it is gone before the next one takes its memory.
        self.earlier = self.made.take().map_or_else(Weak::new, |made| Arc::downgrade(&made.answer));
        let answer = self.make();
        let took = now.elapsed();
        let age_max = (took * AGES_OF_MAKING).clamp(AGE_MAX, AGE_WHILE_TAKEN_MAX);
        self.made = Some(Made { at: now + took, age_max, answer: Arc::clone(&answer) });
        answer
    }

    /// A panic is the program's, and no reason to serve no more.
    fn make(&self) -> Arc<Response> {
        match catch_unwind(AssertUnwindSafe(&self.text)) {
            Ok(text) => Response::new(
                "200 OK",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                text,
            ),
            Err(payload) => {
                // Dropping it may panic again.
                std::mem::forget(payload);
                let body = "the source of the metrics panicked: see the program's log\n";
                Response::new("500 Internal Server Error", "text/plain", body.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_answer_is_sent_head_and_body() {
        let answer = Response::new("200 OK", "", "text".into());
        let (mut sent, mut all) = (0, Vec::new());
        while sent < answer.len() {
            let piece = answer.after(sent);
            let taken = piece.len().min(7);
            all.extend_from_slice(&piece[..taken]);
            sent += taken;
        }
        assert!(answer.after(sent).is_empty());
        let all = String::from_utf8(all).unwrap();
        assert_eq!(all, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntext");
    }

    #[test]
    fn no_more_than_two_texts_are_there_however_slowly_they_are_taken() {
        let made = Cell::new(0);
        let mut page = Page::new(|| {
            made.set(made.get() + 1);
            made.get().to_string()
        });
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut ask = |ms| page.answer(at(ms));
        let first = ask(0);
        assert_eq!((ask(100).body.as_str(), ask(2000).body.as_str()), ("1", "2"));
        // the first is still taken
        assert_eq!(ask(2500).body, "2");
        assert!(!first.is_void(), "the second is not old yet");
        assert_eq!(ask(3900).body, "2");
        assert!(first.is_void());
        drop(first);
        let second = ask(4000);
        assert_eq!(second.body, "3", "nobody takes the first any more");
        drop(second);
        assert_eq!(ask(9000).body, "4");
        assert_eq!(ask(14_000).body, "5", "nobody takes an old one");
    }
}
