//! Owns: by whose definition a command of this workspace is parsed. It lies with the tests, for it knows every program:
//! in the library it would make a circle of all rooms that print a command.
//! Never: runs one.

use clap::Parser;
use cluster::real;

/// Parses a command, given as words, by its program's own definition. `None`: it is of no program of ours.
pub(super) fn read(words: &[String]) -> Option<Result<(), clap::Error>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (program, arguments) = match words.split_first()? {
        (&"cargo", rest) => (*rest.first()?, rest),
        (program, _) => (*program, &words[..]),
    };
    Some(match (words[0], program) {
        ("cargo", "control-plane") => by::<real::args::Arguments>(arguments),
        ("cargo", "crash") => by::<crash::args::Arguments>(arguments),
        ("cargo", "demo") => demo::command_line().try_get_matches_from(arguments).map(drop),
        ("cargo", "image") => by::<tributary_image::command::Arguments>(arguments),
        ("cargo", "load") => by::<bench::args::Arguments>(arguments),
        ("cargo", "nodes") => by::<nodes::args::Arguments>(arguments),
        ("cargo", "netsim") => by::<netsim::NetsimArgs>(arguments),
        ("cargo", "sim") => by::<swarm::args::Arguments>(arguments),
        ("tributary", _) => by::<cli::command::Cli>(arguments),
        ("tributary-hub", _) => by::<hub::args::Cli>(arguments),
        ("clusterclass", _) => by::<clusterclass_program::command::Cli>(arguments),
        ("tributary-agent", _) => by::<agent::args::Cli>(arguments),
        _ => return None,
    })
}

fn by<P: Parser>(words: &[&str]) -> Result<(), clap::Error> {
    P::try_parse_from(words).map(drop)
}
