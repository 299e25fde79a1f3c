//! An endpoint whose answers are known.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// Answers each request with the next of these texts, and the last one again and again.
pub(crate) fn serve(answers: &[String]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers = answers.to_owned();
    thread::spawn(move || {
        let mut left = answers.iter();
        let mut answer = left.next();
        while let (Ok((mut stream, _)), Some(text)) = (listener.accept(), answer) {
            let (mut asked, mut piece) = (Vec::new(), [0; 4096]);
            while !asked.ends_with(b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(count @ 1..) => asked.extend_from_slice(&piece[..count]),
                    _ => break,
                }
            }
            let _ = stream.write_all(text.as_bytes());
            answer = left.next().or(answer);
        }
    });
    address
}

/// An answer that is this text.
pub(crate) fn ok(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n{text}")
}
