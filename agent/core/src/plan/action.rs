//! The steps of a plan: writes, deletions and reports for people, in the order in which to perform them. Values only;
//! `apply` performs them.

use std::net::IpAddr;

use model::Revision;

use super::content::{Condition, DerivedContent, ImportContent, ImportStatus, SliceContent};

/// A kind of object that the agent deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ServiceImport.
    Import,
    /// The derived Service.
    Derived,
    /// An imported EndpointSlice.
    Slice,
}

impl Kind {
    /// The kind in one word of Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Import => "ServiceImport",
            Self::Derived => "Service",
            Self::Slice => "EndpointSlice",
        }
    }
}

/// One step. A uid that is absent means that the object is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Writes a ServiceImport but for its status.
    ApplyImport {
        /// The object to change.
        uid: Option<Box<str>>,
        /// The import's content.
        content: ImportContent,
        /// The decision it follows from, if it is known.
        revision: Option<Revision>,
    },
    /// Writes the status of a ServiceImport.
    ApplyImportStatus {
        /// The object; absent when this plan creates it.
        uid: Option<Box<str>>,
        /// The import's status.
        status: ImportStatus,
    },
    /// Writes a derived Service.
    ApplyDerived {
        /// Its name.
        name: Box<str>,
        /// The object to change.
        uid: Option<Box<str>>,
        /// The derived Service's content.
        content: DerivedContent,
        /// The IPs that a new one asks for.
        cluster_ips: Vec<IpAddr>,
    },
    /// Writes an imported EndpointSlice.
    ApplySlice {
        /// Its name.
        name: Box<str>,
        /// The object to change.
        uid: Option<Box<str>>,
        /// The slice's content.
        content: SliceContent,
        /// The decision it follows from, if it is known.
        revision: Option<Revision>,
    },
    /// Deletes an object of the agent's.
    Delete {
        /// The object's kind.
        kind: Kind,
        /// Its name.
        name: Box<str>,
        /// The object that was seen, and no other of that name.
        uid: Box<str>,
    },
    /// Writes the conditions of a ServiceExport.
    ApplyExportStatus {
        /// The object.
        uid: Box<str>,
        /// All conditions that the agent states; one that is left out is withdrawn.
        conditions: Vec<Condition>,
    },
    /// Tells people, by an Event on the ServiceExport.
    ExportEvent {
        /// uid of the ServiceExport.
        export_uid: Box<str>,
        /// Why, in one word.
        reason: Box<str>,
        /// Problem and next step, as a message.
        message: Box<str>,
    },
}

/// Something that is wrong and that the agent cannot or may not put right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Report {
    /// An object that is not Tributary's has a name that Tributary needs.
    Stranger {
        /// The object's kind.
        kind: Kind,
        /// Its name.
        name: Box<str>,
    },
}

/// The plan for one service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Steps to perform in this order; a step that fails ends the list.
    pub actions: Vec<Action>,
    /// Problems found.
    pub reports: Vec<Report>,
    /// The export's conditions would say that the hub has not answered, or do in a moment.
    pub awaits_hub: bool,
}

impl Plan {
    /// The service's objects are as they should be.
    pub fn is_settled(&self) -> bool {
        self.actions.is_empty()
    }
}
