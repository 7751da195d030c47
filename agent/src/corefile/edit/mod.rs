//! The zone of a clusterset in a CoreDNS Corefile: what has to change, or why nothing can be.
//!
//! * [`zone`]: what a zone is; [`refusal`]: why a Corefile is left alone;
//! * [`words`] → [`blocks`] → [`kubernetes`]: reads a Corefile as CoreDNS does, as far as it must be understood;
//! * [`asked`]: whether queries come to the directive; [`change`]: the new text;
//! * [`difference`]: the changed lines, for people.
//!
//! Pure: text in, text out. It refuses a Corefile that it cannot read, and every byte that it does not change stays.

mod asked;
mod blocks;
mod change;
mod difference;
mod kubernetes;
mod refusal;
mod words;
mod zone;

pub use difference::difference;
pub use refusal::Refusal;
pub use zone::Zone;

/// The largest Corefile that is read: a hundred times what distributions ship, a sixteenth of what a ConfigMap holds.
pub const COREFILE_BYTES_MAX: usize = 64 * 1024;

/// The wanted change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The zone is answered.
    Zone,
    /// It is not.
    NoZone,
}

/// The decision about a Corefile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The new text; nothing if the Corefile is as wanted.
    pub text: Option<String>,
    /// True if CoreDNS notices by itself that its Corefile has changed.
    pub reloads: bool,
    /// Imports of the Corefile, whose content is not read.
    pub imports: Vec<String>,
}

/// Decides what is to be done with a Corefile.
pub fn decide(text: &str, wanted: Wanted, zone: &Zone) -> Result<Decision, Refusal> {
    if text.len() > COREFILE_BYTES_MAX {
        return Err(Refusal::TooLarge {
            bytes: text.len(),
            most: COREFILE_BYTES_MAX,
        });
    }
    let words = words::words(text)?;
    let blocks = blocks::blocks(&words)?;
    let kubernetes = kubernetes::find(&blocks)?;
    let configured = kubernetes.configured(zone)?;
    let text = match (wanted, configured, blocks.get(kubernetes.block)) {
        (Wanted::Zone, None, Some(block)) => {
            asked::check(&blocks, kubernetes.block, zone)?;
            Some(change::with(text, block, &kubernetes, zone))
        }
        (Wanted::NoZone, Some(configured), _) => Some(change::without(text, &kubernetes, &configured)),
        _ => None,
    };
    let mut directives = blocks.iter().flat_map(|block| &block.directives);
    Ok(Decision {
        text,
        reloads: directives.any(|directive| directive.name.text == "reload"),
        imports: kubernetes::imports(&blocks),
    })
}

#[cfg(test)]
mod tests;
