//! An event of a watch, as a store takes it.

/// An event of the watch of one kind. A listing begins with `Init`, shows each object, and ends with `InitDone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<K> {
    /// A listing begins.
    Init,
    /// The listing has this object.
    InitApply(K),
    /// The listing is complete.
    InitDone,
    /// An object was created or changed.
    Apply(K),
    /// An object was deleted.
    Delete(K),
}
