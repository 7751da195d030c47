//! Owns: flags that are required, or allowed, only without `--clustersets`: the file says what they would.
//! Never: knows a flag by its name but that one.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The flag whose file takes the place of the others.
const FILE: &str = "clustersets";

/// The values of these flags; `None`: a file was named instead of them.
#[derive(Debug, Clone)]
pub struct UnlessClustersets<T>(pub Option<T>);

impl<T: Args> Args for UnlessClustersets<T> {
    fn augment_args(command: Command) -> Command {
        let own = T::augment_args(Command::new("flags of one clusterset"));
        own.get_arguments().fold(command, |command, argument| {
            let argument = argument.clone().conflicts_with(FILE);
            let required = argument.is_required_set();
            command.arg(if required {
                argument.required(false).required_unless_present(FILE)
            } else {
                argument
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for UnlessClustersets<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let named = matches.contains_id(FILE);
        let flags = (!named).then(|| T::from_arg_matches(matches));
        flags.transpose().map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Cli, Command, ServeArgs, TopologyMode};

    const ONE: [&str; 8] = [
        "--data",
        "data",
        "--tls-ca",
        "ca.crt",
        "--tls-cert",
        "hub.crt",
        "--tls-key",
        "hub.key",
    ];

    fn serve(flags: &[&str]) -> Result<ServeArgs, String> {
        let words = ["tributary-hub", "serve"].iter().chain(flags);
        match Cli::try_parse_from(words) {
            Ok(Cli {
                command: Command::Serve(args),
                ..
            }) => Ok(*args),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn flags_of_one_clusterset_or_a_file_with_several() {
        let one = serve(&ONE).expect("flags");
        let set = one.set.0.expect("flags of one");
        assert!(one.clustersets.is_none() && set.listen.port() == 8443);
        let several = serve(&["--clustersets", "sets.yaml", "--disk-reserve", "0%"]).expect("a file");
        assert!(several.set.0.is_none());
        for left_out in (0..ONE.len()).step_by(2) {
            let mut flags = ONE.to_vec();
            let flag = flags.drain(left_out..left_out + 2).next().expect("a flag");
            let missing = serve(&flags).expect_err("it is missing");
            assert!(missing.contains(&format!("{flag} <")), "{missing}");
        }
        assert!(serve(&[]).expect_err("nothing").contains("--data"));
    }

    #[test]
    fn topologies_are_observed_if_asked_for_and_nothing_else_is_known() {
        let set = |more: &[&str]| {
            let args = serve(&[&ONE, more].concat())?;
            Ok::<_, String>(args.set.0.expect("flags of one").topology)
        };
        assert_eq!(set(&[]), Ok(None));
        assert_eq!(set(&["--topology", "observe"]), Ok(Some(TopologyMode::Observe)));
        assert_eq!(set(&["--topology", "shadow"]), Ok(Some(TopologyMode::Shadow)));
        assert_eq!(set(&["--topology", "own"]), Ok(Some(TopologyMode::Own)));
        for mode in ["write", ""] {
            let refused = set(&["--topology", mode]).expect_err("it is no mode");
            assert!(
                refused.contains("[possible values: observe, shadow, own]"),
                "{refused}"
            );
        }
    }

    #[test]
    fn beside_the_file_every_flag_of_one_clusterset_is_refused() {
        let mut flags: Vec<Vec<&str>> = ONE.chunks(2).map(<[&str]>::to_vec).collect();
        flags.extend([
            vec!["--listen", "127.0.0.1:1"],
            vec!["--join-cert", "a", "--join-key", "b"],
            vec!["--member-cert-lifetime", "1d"],
            vec!["--member-keys", "pin"],
            vec!["--deny-keys", "keys"],
            vec!["--adopt-epoch"],
            vec!["--inventory-namespace", "profiles"],
            vec!["--access-providers", "file"],
            vec!["--topology", "observe"],
            vec!["--topology-rollouts", "2"],
        ]);
        for given in flags {
            let refused = serve(&[&["--clustersets", "sets.yaml"], &given[..]].concat());
            let refused = refused.expect_err("two truths");
            assert!(refused.contains("cannot be used with"), "{given:?}: {refused}");
            assert!(refused.contains("--clustersets"), "{given:?}: {refused}");
        }
    }
}
