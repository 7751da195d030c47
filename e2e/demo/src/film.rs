//! Owns: a recording as an SVG that moves, for pages that show images and run no script. Pure.
//! Never: says anything that the recording does not.

use std::{fmt::Write, time::Duration};

use super::recording::{COLUMNS, ROWS, Recording, is_a_persons};
use advice::DEMO_RECORD;

/// Width of a character, height of a line, and room around, in pixels.
const CHARACTER: f64 = 7.2;
const LINE: usize = 17;
const MARGIN: usize = 14;
/// Descent of letters such as g below their line.
const TAIL: usize = 4;
/// Height of the bar above.
const BAR: usize = 26;
/// Time for which the last screen is shown before a new start.
const END: Duration = Duration::from_secs(8);

const STYLE: &str = "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;\
                     fill:#c9d1d9;white-space:pre}.p{fill:#7ee787}\
                     @media(prefers-reduced-motion:reduce){*{animation:none!important}}";

/// The film of a recording.
pub(super) fn film(recording: &Recording) -> String {
    let (width, height) = (
        (COLUMNS as f64 * CHARACTER) as usize + 2 * MARGIN,
        BAR + ROWS * LINE + 2 * MARGIN,
    );
    let length: Duration = recording.scenes.iter().map(|scene| scene.pause).sum::<Duration>() + END;
    let mut style = STYLE.to_owned();
    let mut text = String::new();
    let mut scroll = String::from("0%{transform:translateY(0)}");
    let (mut at, mut lines) = (Duration::ZERO, 0);
    for (number, scene) in recording.scenes.iter().enumerate() {
        at += scene.pause;
        let percent = 100.0 * at.as_secs_f64() / length.as_secs_f64();
        write_to(
            &mut style,
            format_args!(
                "@keyframes s{number}{{0%{{opacity:0}}{percent:.2}%,100%{{opacity:1}}}}.s{number}{{animation:s{number}}}"
            ),
        );
        write_to(&mut text, format_args!("<g class=\"s s{number}\">\n"));
        for line in scene.lines.iter().flat_map(|line| wrapped(line)) {
            lines += 1;
            let line = &line;
            let class = if is_a_persons(line) { " class=\"p\"" } else { "" };
            let y = lines * LINE - TAIL;
            write_to(
                &mut text,
                format_args!("<text{class} y=\"{y}\">{}</text>\n", escaped(line)),
            );
        }
        text.push_str("</g>\n");
        let up = up(lines);
        write_to(
            &mut scroll,
            format_args!("{percent:.2}%{{transform:translateY(-{up}px)}}"),
        );
    }
    let up = up(lines);
    write_to(&mut scroll, format_args!("100%{{transform:translateY(-{up}px)}}"));
    let seconds = length.as_secs_f64();
    write_to(
        &mut style,
        format_args!(
            "@keyframes f{{{scroll}}}.f{{transform:translateY(-{up}px);animation:f}}\
         .f,.s{{animation-duration:{seconds:.1}s!important;animation-timing-function:step-end!important;\
         animation-iteration-count:infinite!important}}"
        ),
    );
    let (inner_width, inner_height) = (width - 2 * MARGIN, ROWS * LINE);
    let top = BAR + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>What {DEMO_RECORD} typed, and what was printed</title>\n<style>{style}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <circle cx=\"18\" cy=\"15\" r=\"5\" fill=\"#f85149\"/><circle cx=\"36\" cy=\"15\" r=\"5\" fill=\"#d29922\"/>\
         <circle cx=\"54\" cy=\"15\" r=\"5\" fill=\"#3fb950\"/>\n\
         <svg x=\"{MARGIN}\" y=\"{top}\" width=\"{inner_width}\" height=\"{inner_height}\">\n<g class=\"f\">\n{text}</g>\n\
         </svg>\n</svg>\n"
    )
}

/// Offset by which lines are pushed up, so that the last of them are visible.
fn up(lines: usize) -> usize {
    lines.saturating_sub(ROWS) * LINE
}

fn write_to(text: &mut String, what: std::fmt::Arguments<'_>) {
    // A String takes everything.
    let _ = text.write_fmt(what);
}

/// As a terminal shows a line that is longer than it is wide.
fn wrapped(line: &str) -> Vec<String> {
    let signs: Vec<char> = line.chars().collect();
    if signs.is_empty() {
        return vec![String::new()];
    }
    signs.chunks(COLUMNS).map(|part| part.iter().collect()).collect()
}

fn escaped(line: &str) -> String {
    line.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{super::recording::Scene, *};

    #[test]
    fn a_line_that_is_too_long_goes_on_in_the_next() {
        let long = "x".repeat(COLUMNS + 1);
        assert_eq!(wrapped(&long), ["x".repeat(COLUMNS), "x".to_owned()]);
        assert_eq!(wrapped(""), [""]);
    }

    #[test]
    fn every_line_is_in_it_once_and_the_last_screen_stands_still() {
        let scenes = (0..ROWS + 3).map(|line| Scene {
            pause: Duration::from_secs(1),
            lines: vec![format!("line {line} <&>")],
        });
        let film = film(&Recording {
            scenes: scenes.collect(),
            blocks: Vec::new(),
        });
        assert_eq!(film.matches("<text").count(), ROWS + 3);
        assert_eq!(film.matches("line 7 &lt;&amp;&gt;").count(), 1);
        assert!(
            film.contains(&format!(".f{{transform:translateY(-{}px)", 3 * LINE)),
            "{film}"
        );
    }
}
