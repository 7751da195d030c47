//! Owns: why a Corefile is left alone, each reason with how to mend it, in one line.
//! Never: finds one of them.

/// Why a Corefile was not changed. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The given zone is invalid.
    #[error(
        "`{name}` is no zone of a clusterset: give --zone a DNS name in lower case, without a dot at its end, such as \
         clusterset.local"
    )]
    NoZone {
        /// The given zone, on one line.
        name: String,
    },
    /// The text is larger than any Corefile that a person wrote.
    #[error(
        "the Corefile has {bytes} bytes, more than the {most} that are read: look whether it is one, and edit it by hand"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// A quotation mark without its end.
    #[error("line {line}: a quotation mark opens and nothing closes it: close it")]
    OpenQuote {
        /// Line of its opening.
        line: usize,
    },
    /// Readers differ on what such a word is.
    #[error(
        "line {line}: a # stands within a word: put a space before it where a comment begins, or quote the word"
    )]
    JoinedComment {
        /// Line of the problem.
        line: usize,
    },
    /// A brace closes what is not open.
    #[error("line {line}: a `}}` closes nothing: remove it, or open the brace that it should close")]
    StrayBrace {
        /// Line of the problem.
        line: usize,
    },
    /// A brace is never closed.
    #[error("line {line}: what begins there opens a `{{` that nothing closes: write the missing `}}`")]
    OpenBrace {
        /// Line on which the block or directive begins.
        line: usize,
    },
    /// A server block without braces.
    #[error(
        "line {line}: the server block has no braces: write `{{` behind its name and `}}` behind its last line"
    )]
    BlockWithoutBraces {
        /// Line on which the block begins.
        line: usize,
    },
    /// Nothing serves the cluster's zones.
    #[error(
        "there is no `kubernetes` directive: this is not what answers the cluster's names; --namespace, --configmap, \
         --key and --file say where that Corefile is"
    )]
    NoKubernetes,
    /// The directive that serves the cluster's zones may be in an imported file.
    #[error(
        "there is no `kubernetes` directive, but it may be in what is imported ({imports}): change that one, with \
         --key or --file"
    )]
    Imported {
        /// The imports.
        imports: String,
    },
    /// The directive for the cluster's zones is in a snippet, which any number of server blocks may import.
    #[error(
        "line {line}: the `kubernetes` directive stands in a snippet: write it into the server block that imports the \
         snippet"
    )]
    InSnippet {
        /// Line of the directive.
        line: usize,
    },
    /// Two directives could be meant.
    #[error(
        "lines {first} and {second} both have a `kubernetes` directive, and one only can be changed: edit the one that \
         serves the cluster's zone by hand"
    )]
    SeveralKubernetes {
        /// The first.
        first: usize,
        /// The next.
        second: usize,
    },
    /// Lines are changed as wholes.
    #[error("line {line}: the words before `kubernetes` belong on a line of their own: write them there")]
    NotOnItsOwnLine {
        /// Line of the problem.
        line: usize,
    },
    /// CoreDNS reads braces only where they are written as everybody does.
    #[error(
        "line {line}: the braces of `kubernetes` are not where CoreDNS expects them: write `{{` at the end of its line, \
         each option on a line, and `}}` on a line of its own"
    )]
    OddBraces {
        /// Line of the problem.
        line: usize,
    },
    /// Options come from elsewhere.
    #[error("line {line}: the braces of `kubernetes` import something: write the options there instead")]
    ImportedOptions {
        /// Line of the problem.
        line: usize,
    },
    /// Without a list it serves the zones of its server block; a list with one zone would take those away.
    #[error(
        "line {line}: `kubernetes` lists no zones: write those that it serves behind it, such as cluster.local"
    )]
    NoZones {
        /// Line of the problem.
        line: usize,
    },
    /// Words that only CoreDNS itself can read.
    #[error(
        "line {line}: a zone stands in quotation marks or comes from the environment: write the zone itself"
    )]
    UnreadZone {
        /// Line of the problem.
        line: usize,
    },
    /// Zones of addresses only.
    #[error(
        "line {line}: `kubernetes` lists no zone of the cluster: write it in front, such as cluster.local"
    )]
    NoClusterZone {
        /// Line of the problem.
        line: usize,
    },
    /// The zone is the cluster's.
    #[error(
        "line {line}: {zone} is the cluster's own zone: give --zone that of the clusterset, such as clusterset.local"
    )]
    OwnZone {
        /// Line that lists it.
        line: usize,
        /// The zone.
        zone: String,
    },
    /// One zone twice.
    #[error("line {line}: {zone} is listed twice: take one of them out")]
    ListedTwice {
        /// Line of the problem.
        line: usize,
        /// The zone.
        zone: String,
    },
    /// The clusterset has another zone.
    #[error(
        "line {line}: the clusterset's zone is {other} there, not {zone}: give --zone {other}, or take it out first"
    )]
    OtherZone {
        /// Line that says so.
        line: usize,
        /// The existing zone.
        other: String,
        /// The zone that was given.
        zone: String,
    },
    /// Several zones of clustersets.
    #[error(
        "line {line}: there is more than one zone of a clusterset ({zones}): leave one `multicluster` line with one zone"
    )]
    SeveralZones {
        /// The first line that names one.
        line: usize,
        /// All of them.
        zones: String,
    },
    /// A line without what it is for.
    #[error("line {line}: `multicluster` names no zone: write `multicluster {zone}`, or remove the line")]
    MulticlusterWithoutZone {
        /// Line of the problem.
        line: usize,
        /// The zone that was given.
        zone: String,
    },
    /// One half: the list.
    #[error(
        "line {line}: {zone} is listed, but the braces have no line `multicluster {zone}`: write that line, or take the \
         zone out of the list"
    )]
    OnlyListed {
        /// Line that lists it.
        line: usize,
        /// The zone.
        zone: String,
    },
    /// The other half: the option.
    #[error(
        "line {line}: `multicluster {zone}` is there, but line {kubernetes} does not list {zone}: add the zone to that \
         line, or remove this one"
    )]
    OnlyOption {
        /// Line of the option.
        line: usize,
        /// Line that lists the zones.
        kubernetes: usize,
        /// The zone.
        zone: String,
    },
    /// The plugin that was built into CoreDNS by hand, before CoreDNS had the option.
    #[error(
        "line {line}: the external plugin `multicluster` answers the clusterset here: remove its lines first, CoreDNS \
         1.12.2 and later do it in `kubernetes`"
    )]
    ExternalPlugin {
        /// Line of the problem.
        line: usize,
    },
    /// Queries for the zone do not reach the directive.
    #[error(
        "line {line}: the server block of `kubernetes` is not asked for {zone}: add {zone} to its names ({names})"
    )]
    NotAsked {
        /// Line on which the block begins.
        line: usize,
        /// The zone.
        zone: String,
        /// The names that it has.
        names: String,
    },
    /// Queries for the zone go elsewhere.
    #[error(
        "line {line}: the server block {name} answers {zone}, or a part of it, before `kubernetes` does: remove it first"
    )]
    AnsweredElsewhere {
        /// Line on which that block begins.
        line: usize,
        /// Its name.
        name: String,
        /// The zone.
        zone: String,
    },
    /// Names that only CoreDNS itself can read.
    #[error(
        "line {line}: the server block is called {name}, which comes from the environment: write its name itself"
    )]
    UnreadName {
        /// Line on which the block begins.
        line: usize,
        /// Its name.
        name: String,
    },
}
