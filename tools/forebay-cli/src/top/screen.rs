//! The terminal while something live is shown on it. Its modes stay as they are, so that nothing
//! but the screen is to be restored.

use std::io::{self, IsTerminal, Write};

use rustix::termios::tcgetwinsize;

use super::columns::within;

/// Another screen, without a cursor.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
/// As it was.
const END: &str = "\x1b[?25h\x1b[?1049l";
/// Columns and rows of a terminal that does not say.
const SIZE: (usize, usize) = (80, 24);

/// A screen, until it is dropped.
#[derive(Debug)]
pub(super) struct Screen(());

impl Screen {
    /// `None` if stdout is no terminal.
    pub(super) fn begin() -> io::Result<Option<Self>> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        let screen = Self(());
        write(BEGIN)?;
        Ok(Some(screen))
    }

    /// Columns and rows, now.
    pub(super) fn size() -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => SIZE,
        }
    }

    /// Shows these lines, as many as there is room for, each as far as there is.
    pub(super) fn show(&self, lines: &[String]) -> io::Result<()> {
        let (columns, rows) = Self::size();
        write(&frame(lines, columns, rows))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(END);
    }
}

/// What draws the lines over what was there, without a flicker.
fn frame(lines: &[String], columns: usize, rows: usize) -> String {
    let line = |line: &String| format!("{}\x1b[K", within(line, columns));
    let shown: Vec<_> = lines.iter().take(rows).map(line).collect();
    format!("\x1b[H{}\x1b[J", shown.join("\r\n"))
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_no_more_than_the_screen_has_room_for() {
        let lines: Vec<_> = (0..50).map(|line| format!("{line} {}", "x".repeat(200))).collect();
        let text = frame(&lines, 10, 3);
        assert_eq!(text, "\x1b[H0 xxxxxxxx\x1b[K\r\n1 xxxxxxxx\x1b[K\r\n2 xxxxxxxx\x1b[K\x1b[J");
        assert_eq!(frame(&[], 10, 3), "\x1b[H\x1b[J");
    }
}
