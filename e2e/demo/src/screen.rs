//! Shows the table: redrawn in place on a terminal, as lines of news elsewhere.
//! It prints; what is said comes from the picture.

use std::{
    collections::VecDeque,
    io::{IsTerminal, Write},
    time::Instant,
};

use super::{
    news::news,
    picture::{Picture, Row},
    table::{duration, table},
};

/// Lines of news that stay below the table on a terminal.
const NEWS_SHOWN: usize = 6;
/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";
/// A line longer than the terminal is wide is cut, so that a line is a line.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// A mode of display.
enum Mode {
    /// In place; this many lines stand there.
    Terminal { drawn: usize },
    /// News as they come.
    Lines,
    /// Nothing.
    Silent,
}

/// The screen with the demo's table.
pub(super) struct Screen {
    mode: Mode,
    began: Instant,
    rows: Vec<Row>,
    news: VecDeque<String>,
}

impl Screen {
    /// Shows on the standard output.
    pub(super) fn standard_output() -> Self {
        if std::io::stdout().is_terminal() {
            Self::new(Mode::Terminal { drawn: 0 })
        } else {
            Self::new(Mode::Lines)
        }
    }

    /// Shows nothing.
    pub(super) fn silent() -> Self {
        Self::new(Mode::Silent)
    }

    fn new(mode: Mode) -> Self {
        Self {
            mode,
            began: Instant::now(),
            rows: Vec::new(),
            news: VecDeque::new(),
        }
    }

    /// Shows what changed.
    pub(super) fn show(&mut self, picture: &Picture) -> std::io::Result<()> {
        let rows = picture.rows();
        let lines = news(&self.rows, &rows);
        self.rows = rows;
        self.tell(lines, picture)
    }

    /// Shows a sentence that is not about the clusters' objects.
    pub(super) fn say(&mut self, line: String, picture: &Picture) -> std::io::Result<()> {
        self.tell(vec![line], picture)
    }

    fn tell(&mut self, lines: Vec<String>, picture: &Picture) -> std::io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let at = format!("{:>8}", duration(self.began.elapsed()));
        let mut output = std::io::stdout().lock();
        match self.mode {
            Mode::Silent => {}
            Mode::Lines => {
                for line in lines {
                    writeln!(output, "[{at}] {line}")?;
                }
            }
            Mode::Terminal { .. } => {
                for line in lines {
                    if self.news.len() == NEWS_SHOWN {
                        self.news.pop_front();
                    }
                    self.news.push_back(format!("[{at}] {line}"));
                }
                drop(output);
                return self.draw(picture);
            }
        }
        output.flush()
    }

    /// Prints the table as it stands, where it is not on the screen anyway.
    pub(super) fn print_table(&mut self, picture: &Picture) -> std::io::Result<()> {
        match self.mode {
            Mode::Silent => Ok(()),
            Mode::Terminal { .. } => self.draw(picture),
            Mode::Lines => {
                let mut output = std::io::stdout().lock();
                writeln!(output)?;
                for line in table(picture) {
                    writeln!(output, "{line}")?;
                }
                writeln!(output)?;
                output.flush()
            }
        }
    }

    fn draw(&mut self, picture: &Picture) -> std::io::Result<()> {
        let Mode::Terminal { drawn } = &mut self.mode else {
            return Ok(());
        };
        let mut lines = table(picture);
        lines.push(String::new());
        lines.extend(self.news.iter().cloned());
        let up = match *drawn {
            0 => String::new(),
            drawn => format!("\x1b[{drawn}A"),
        };
        *drawn = lines.len();
        let text = format!("{WRAP_OFF}\r{up}{ERASE_BELOW}{}\n{WRAP_ON}", lines.join("\n"));
        let mut output = std::io::stdout().lock();
        output.write_all(text.as_bytes())?;
        output.flush()
    }
}
