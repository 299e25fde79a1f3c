//! The program as a process: how it ends, and what it says.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

/// How the program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The results; the program must have succeeded.
    pub(crate) fn results(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The program must have ended with this code, and said all of this.
    pub(crate) fn complains(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        for words in words {
            assert!(self.stderr.contains(words), "`{words}` is not in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

/// Runs the command to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Starts the command, waits until it says `words`, does `act` to it, and waits for its end.
pub(crate) fn run_and_at(command: &mut Command, words: &str, act: impl FnOnce(&Child)) -> Ended {
    run_and(command, words, |child, _| act(child))
}

/// As [`run_and_at`]; `act` sees what the command has said so far.
pub(crate) fn run_and_at_text(command: &mut Command, words: &str, act: impl FnOnce(&str)) -> Ended {
    run_and(command, words, |_, said| act(said))
}

/// As [`run_and_at`]; `act` sees what the command has said so far too.
pub(crate) fn run_and(command: &mut Command, words: &str, act: impl FnOnce(&Child, &str)) -> Ended {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // both at once: a pipe holds 64 KiB, and results may be longer
    let mut results = child.stdout.take().unwrap();
    let results = thread::spawn(move || {
        let mut stdout = String::new();
        results.read_to_string(&mut stdout).map(|_| stdout)
    });
    let mut reader = BufReader::new(child.stderr.take().unwrap());
    let mut stderr = String::new();
    while !stderr.contains(words) {
        assert_ne!(reader.read_line(&mut stderr).unwrap(), 0, "`{words}` never came: {stderr}");
    }
    act(&child, &stderr);
    reader.read_to_string(&mut stderr).unwrap();
    let stdout = results.join().unwrap().unwrap();
    Ended { code: child.wait().unwrap().code(), stdout, stderr }
}
