//! Owns: the guide to installing (deploy/README.md) as steps: what is typed where, and with which words in the place of
//! the reader's own. Pure.
//! Never: runs a line, or knows one that the guide does not have.

use std::{collections::BTreeSet, fmt};

use anyhow::{bail, ensure};
use regex::Regex;

/// Fence of a listing.
const FENCE: &str = "```";
/// The member that the guide takes as an example.
const MEMBER: &str = "east";

/// The place to type the lines of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On the reader's machine, once.
    Once,
    /// There, for each member.
    ForEachMember,
    /// With the kubeconfig of every cluster.
    EveryCluster,
    /// With that of the hub's cluster.
    HubCluster,
    /// With that of each member.
    EachMember,
    /// A place with a registry.
    Registry,
}

/// The listings, by heading and by how the sentence before each begins: so the guide itself says where a line is typed,
/// and a listing that is not here is an error.
const LISTINGS: [(&str, &str, Place); 12] = [
    ("Before", "No container engine is needed", Place::Registry),
    ("Before", "`alice` is a person", Place::Once),
    ("Before", "One for each member", Place::ForEachMember),
    ("Before", "In every cluster", Place::EveryCluster),
    ("Before", "In the hub's cluster", Place::HubCluster),
    ("Before", "In each member", Place::EachMember),
    ("With Helm", "The hub's cluster", Place::HubCluster),
    ("With Helm", "Each member", Place::EachMember),
    ("Afterwards", "The hub is ready", Place::HubCluster),
    ("Afterwards", "An agent, in each member", Place::EachMember),
    ("Afterwards", "Then the hub knows", Place::Once),
    ("Afterwards", "CoreDNS", Place::EachMember),
];
/// Alternatives that are not played.
const OTHERWISE: [&str; 2] = ["On OpenShift", "With kubectl"];

/// A listing of the guide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) heading: String,
    /// The sentence before it.
    pub(super) sentence: String,
    pub(super) place: Place,
    pub(super) lines: Vec<String>,
}

/// The listings of the guide that one way of installing needs, in order.
pub(super) fn listings(guide: &str) -> anyhow::Result<Vec<Listing>> {
    let mut found = Vec::new();
    let (mut heading, mut sentence, mut open) = ("", "", None);
    for line in guide.lines() {
        match (&mut open, line) {
            (None, line) if line.starts_with(FENCE) => open = Some(Vec::new()),
            (Some(lines), line) if line.starts_with(FENCE) => {
                let lines = std::mem::take(lines);
                open = None;
                if !OTHERWISE.contains(&heading) {
                    found.push(Listing {
                        heading: heading.to_owned(),
                        sentence: sentence.to_owned(),
                        place: place(heading, sentence)?,
                        lines,
                    });
                }
            }
            (Some(lines), line) => lines.push(line.to_owned()),
            (None, line) => match line.strip_prefix("## ") {
                Some(next) => heading = next,
                None if line.trim().is_empty() => {}
                None => sentence = line,
            },
        }
    }
    ensure!(open.is_none(), "the guide ends within a listing");
    ensure!(
        found.len() == LISTINGS.len(),
        "of the {} listings that are known, the guide has {}",
        LISTINGS.len(),
        found.len()
    );
    Ok(found)
}

fn place(heading: &str, sentence: &str) -> anyhow::Result<Place> {
    let mut known = LISTINGS.iter();
    let known = known.find(|(under, begins, _)| *under == heading && sentence.starts_with(begins));
    let Some((_, _, place)) = known else {
        bail!(
            "nobody knows where the listing under `{heading}` behind `{sentence}` is typed: add it to guide.rs"
        )
    };
    Ok(*place)
}

/// Replacements for a reader's own words.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) registry: String,
    /// An address, and no name.
    pub(super) host: String,
}

impl Words {
    /// A line as it is typed, by or for this member.
    pub(super) fn typed(&self, line: &str, member: &str) -> anyhow::Result<String> {
        let example = Regex::new(&format!(r"\b{MEMBER}\b"))?;
        let line = line
            .replace("--dns-name HOST", "--ip HOST")
            .replace("REGISTRY", &self.registry)
            .replace("HOST", &self.host);
        Ok(example.replace_all(&line, member).into_owned())
    }
}

/// A line that was carried out.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) line: String,
    pub(super) printed: String,
}

/// The page, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    heading: String,
    done: BTreeSet<(String, String)>,
}

impl Page {
    /// The part before the first listing.
    pub(super) fn new(title: &str) -> Self {
        Self {
            text: format!("{title}\n"),
            ..Self::default()
        }
    }

    /// A listing begins.
    pub(super) fn begin(&mut self, listing: &Listing) {
        if self.heading != listing.heading {
            self.heading.clone_from(&listing.heading);
            self.text.push_str(&format!("\n## {}\n", listing.heading));
        }
        self.say(&format!("> {}", listing.sentence));
    }

    /// A sentence of the writer's own.
    pub(super) fn say(&mut self, sentence: &str) {
        self.text.push_str(&format!("\n{sentence}\n"));
    }

    /// Returns true if this line was typed there already, as in a cluster that has hub and agent.
    pub(super) fn repeats(&mut self, cluster: &str, line: &str) -> bool {
        !self.done.insert((cluster.to_owned(), line.to_owned()))
    }

    /// Lines and what they printed.
    pub(super) fn listing(&mut self, said: &[Said]) {
        if said.is_empty() {
            return;
        }
        let said = said.iter().map(|Said { line, printed }| {
            let printed = printed.trim_end();
            let end = if printed.is_empty() { "" } else { "\n" };
            format!("$ {line}\n{printed}{end}")
        });
        self.text.push_str(&format!(
            "\n{FENCE}console\n{}{FENCE}\n",
            said.collect::<String>()
        ));
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::charts;

    /// The lines of a page's section, listings only.
    fn lines_of(page: &str, section: &str) -> Vec<String> {
        let (_, behind) = page.split_once(&format!("\n## {section}\n")).expect(section);
        let section = behind.split("\n## ").next().unwrap_or_default();
        let parts = section.split(FENCE).skip(1).step_by(2);
        let lines = parts.flat_map(|part| part.lines().skip(1));
        lines.map(str::to_owned).collect()
    }

    fn page(name: &str) -> String {
        std::fs::read_to_string(charts::root().join(name)).expect(name)
    }

    #[test]
    fn the_guide_is_understood_to_its_end() {
        let listings = listings(&page("deploy/README.md")).expect("every listing is known");
        let lines: usize = listings.iter().map(|listing| listing.lines.len()).sum();
        assert!(lines > 12, "{lines} lines");
        let helm = listings.iter().filter(|listing| listing.heading == "With Helm");
        assert!(
            helm.map(|listing| listing.place)
                .eq([Place::HubCluster, Place::EachMember])
        );
    }

    #[test]
    fn the_first_page_has_no_line_that_the_guides_lack() {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let by_hand = lines_of(&page("deploy/README.md"), "Before");
        let three = page("docs/guides/three-commands.md");
        let guides = by_hand.iter().map(String::as_str).chain(three.lines());
        let guides: BTreeSet<String> = guides.map(words).collect();
        let first = lines_of(&page("README.md"), "Install");
        // Behind them it shows what they printed.
        let first: Vec<_> = first.iter().take_while(|line| !line.starts_with("$ ")).collect();
        assert_eq!(first.len(), 7, "{first:?}");
        for line in first {
            assert!(guides.contains(&words(line)), "{line}");
        }
    }

    #[test]
    fn an_unknown_listing_is_an_error() {
        let guide = page("deploy/README.md").replace("In every cluster the", "In some clusters the");
        let error = listings(&guide).expect_err("nobody knows it").to_string();
        assert!(error.contains("In some clusters"), "{error}");
        let shorter = page("deploy/README.md").replace("## With Helm", "## With kubectl");
        assert!(listings(&shorter).is_err());
    }

    #[test]
    fn a_readers_words_are_put_in_and_nothing_else() {
        let words = Words {
            registry: "registry.local".to_owned(),
            host: "192.0.2.1".to_owned(),
        };
        for (line, typed) in [
            (
                "certs hub --ca certs --dns-name HOST",
                "certs hub --ca certs --ip 192.0.2.1",
            ),
            (
                "--set image.registry=REGISTRY",
                "--set image.registry=registry.local",
            ),
            (
                "--from-file=tls.crt=certs/east.crt at least",
                "--from-file=tls.crt=certs/c2.crt at least",
            ),
        ] {
            assert_eq!(words.typed(line, "c2").expect("a line"), typed);
        }
    }

    #[test]
    fn a_line_is_typed_once_in_a_cluster() {
        let mut page = Page::new("# A page");
        assert!(!page.repeats("c1", "a line"));
        assert!(page.repeats("c1", "a line"));
        assert!(!page.repeats("c2", "a line"));
    }
}
