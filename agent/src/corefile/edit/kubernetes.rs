//! Owns: the one `kubernetes` directive of a Corefile: which it is, its zones, its options, and what it says of a zone.
//! Never: changes it.

use super::{
    blocks::{Block, Directive},
    refusal::Refusal,
    words::Word,
    zone::{Zone, is_reverse},
};

/// The option, and the external plugin that was there before it.
const MULTICLUSTER: &str = "multicluster";

/// The directive.
#[derive(Debug)]
pub(super) struct Kubernetes<'a> {
    /// Index of its server block in the Corefile.
    pub(super) block: usize,
    /// The word itself.
    pub(super) name: Word<'a>,
    /// The zones that it serves.
    pub(super) zones: &'a [Word<'a>],
    /// Its braces, if it has some.
    pub(super) braces: Option<Braces<'a>>,
}

/// Its braces.
#[derive(Debug)]
pub(super) struct Braces<'a> {
    /// The opening one.
    pub(super) open: Word<'a>,
    /// Its options, one a line.
    pub(super) options: Vec<&'a [Word<'a>]>,
    /// The closing one.
    pub(super) close: Word<'a>,
}

/// The place where a zone of the clusterset is configured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Configured<'a> {
    /// Its place in the list of zones.
    pub(super) zone: usize,
    /// The option that makes it one of the clusterset.
    pub(super) option: &'a [Word<'a>],
}

/// The directive of these blocks, if there is one only.
pub(super) fn find<'a>(blocks: &[Block<'a>]) -> Result<Kubernetes<'a>, Refusal> {
    let all = |name: &'static str| {
        let directives = |(number, block): (usize, &Block<'a>)| {
            let found = block.directives.iter().filter(|found| found.name.text == name);
            found.map(|found| (number, *found)).collect::<Vec<_>>()
        };
        blocks.iter().enumerate().flat_map(directives).collect::<Vec<_>>()
    };
    if let Some((_, plugin)) = all(MULTICLUSTER).first() {
        return Err(Refusal::ExternalPlugin {
            line: plugin.name.line,
        });
    }
    match all("kubernetes").as_slice() {
        [] => {
            let imports = imports(blocks);
            Err(if imports.is_empty() {
                Refusal::NoKubernetes
            } else {
                Refusal::Imported {
                    imports: imports.join(", "),
                }
            })
        }
        [(block, directive)] => {
            if blocks.get(*block).is_some_and(Block::is_snippet) {
                let line = directive.name.line;
                return Err(Refusal::InSnippet { line });
            }
            read(*block, directive)
        }
        [(_, first), (_, second), ..] => Err(Refusal::SeveralKubernetes {
            first: first.name.line,
            second: second.name.line,
        }),
    }
}

/// The imports of the blocks, as written.
pub(super) fn imports(blocks: &[Block<'_>]) -> Vec<String> {
    let directives = blocks.iter().flat_map(|block| &block.directives);
    let imports = directives.filter(|directive| directive.name.text == "import");
    let imported = imports.flat_map(|import| import.rest);
    imported
        .map(|word| word.text.escape_debug().to_string())
        .collect()
}

fn read<'a>(block: usize, directive: &Directive<'a>) -> Result<Kubernetes<'a>, Refusal> {
    let Directive { name, rest, .. } = *directive;
    let line = name.line;
    if !directive.begins_line {
        return Err(Refusal::NotOnItsOwnLine { line });
    }
    let open = rest.iter().position(|word| word.text == "{" && !word.quoted);
    let (zones, inside) = match open {
        Some(open) => rest.split_at(open),
        None => (rest, &[][..]),
    };
    if zones.iter().any(Word::is_unread) {
        return Err(Refusal::UnreadZone { line });
    }
    if zones.is_empty() {
        return Err(Refusal::NoZones { line });
    }
    Ok(Kubernetes {
        block,
        name,
        zones,
        braces: braces(inside, line)?,
    })
}

/// The braces that these words are: CoreDNS takes the opening one at the end of the directive's line only, reads one
/// option a line, and knows no further braces within.
fn braces<'a>(words: &'a [Word<'a>], line: usize) -> Result<Option<Braces<'a>>, Refusal> {
    let (open, between, close) = match words {
        [] => return Ok(None),
        [open, between @ .., close] => (*open, between, *close),
        [open] => return Err(Refusal::OddBraces { line: open.line }),
    };
    let odd = |line| Err(Refusal::OddBraces { line });
    if open.line != line {
        return odd(open.line);
    }
    let mut options = Vec::new();
    let mut begin = 0;
    let mut before = &open;
    for (at, word) in between.iter().enumerate() {
        if matches!(word.text, "{" | "}") {
            return odd(word.line);
        }
        if word.begins_line_after(before) {
            if at > begin {
                options.push(&between[begin..at]);
            }
            begin = at;
        } else if at == 0 {
            return odd(word.line);
        }
        before = word;
    }
    if begin < between.len() {
        options.push(&between[begin..]);
    }
    if !close.begins_line_after(before) {
        return odd(close.line);
    }
    match options.iter().find(|option| option[0].text == "import") {
        Some(import) => Err(Refusal::ImportedOptions { line: import[0].line }),
        None => Ok(Some(Braces { open, options, close })),
    }
}

impl<'a> Kubernetes<'a> {
    /// Finds the place where this zone is configured as the clusterset's; nothing if there is no zone of a clusterset
    /// at all.
    pub(super) fn configured(&self, zone: &Zone) -> Result<Option<Configured<'a>>, Refusal> {
        let line = self.name.line;
        let name = || zone.as_str().to_owned();
        let forward: Vec<&Word<'_>> = self.zones.iter().filter(|word| !is_reverse(word.text)).collect();
        let Some(first) = forward.first() else {
            return Err(Refusal::NoClusterZone { line });
        };
        let listed: Vec<usize> = self
            .zones
            .iter()
            .enumerate()
            .filter(|(_, word)| zone.is(word.text))
            .map(|(at, _)| at)
            .collect();
        // CoreDNS takes the first for the cluster's, unless a person has put the clusterset's in front of it.
        let options = self.multicluster();
        if forward.iter().all(|word| zone.is(word.text)) || (zone.is(first.text) && options.is_empty()) {
            return Err(Refusal::OwnZone { line, zone: name() });
        }
        let option = option_for(zone, &options)?;
        match (listed.as_slice(), option) {
            ([], None) => Ok(None),
            ([at], Some(option)) => Ok(Some(Configured { zone: *at, option })),
            ([_], None) => Err(Refusal::OnlyListed { line, zone: name() }),
            ([], Some(option)) => Err(Refusal::OnlyOption {
                line: option[0].line,
                kubernetes: line,
                zone: name(),
            }),
            _ => Err(Refusal::ListedTwice { line, zone: name() }),
        }
    }

    /// The lines `multicluster`.
    fn multicluster(&self) -> Vec<&'a [Word<'a>]> {
        let options = self.braces.iter().flat_map(|braces| &braces.options);
        let found = options.filter(|option| option[0].text == MULTICLUSTER);
        found.copied().collect()
    }
}

/// The option that names this zone, if there is any.
fn option_for<'a>(zone: &Zone, options: &[&'a [Word<'a>]]) -> Result<Option<&'a [Word<'a>]>, Refusal> {
    let Some(first) = options.first() else {
        return Ok(None);
    };
    let (line, given) = (first[0].line, zone.as_str().to_owned());
    let zones: Vec<&Word<'_>> = options.iter().flat_map(|option| &option[1..]).collect();
    if zones.iter().any(|word| word.is_unread()) {
        return Err(Refusal::UnreadZone { line });
    }
    match (options.len(), zones.as_slice()) {
        (_, []) => Err(Refusal::MulticlusterWithoutZone { line, zone: given }),
        (1, [word]) if zone.is(word.text) => Ok(Some(first)),
        (1, [word]) => Err(Refusal::OtherZone {
            line,
            other: word.text.to_owned(),
            zone: given,
        }),
        _ => {
            let zones: Vec<&str> = zones.iter().map(|word| word.text).collect();
            let zones = zones.join(", ");
            Err(Refusal::SeveralZones { line, zones })
        }
    }
}
