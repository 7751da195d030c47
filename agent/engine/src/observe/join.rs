//! One service's facts from its objects: what is exported.
//! Pure: it is given the objects and answers with values. A bad object stops itself only.

use std::collections::BTreeMap;

use api::convert::{NamespaceDenyList, export_from};
use model::{ChangedBy, EncodedFact, Fact, FactKey, ServiceKey};
use std::sync::Arc;
use wire::encode_fact;

use crate::{
    convert::changed_by::later,
    watch::{Kept, KeptExport, KeptService, KeptSlice},
};

/// The objects of one service in this cluster.
pub struct Objects<'a> {
    /// Its ServiceExport.
    pub export: Option<&'a KeptExport>,
    /// The Service.
    pub service: Option<&'a KeptService>,
    /// EndpointSlices that may be its own, imported ones among them.
    pub slices: Vec<&'a KeptSlice>,
}

/// The facts reported for one service.
#[derive(Debug, Default)]
pub struct Joined {
    /// Its facts, by key.
    pub facts: BTreeMap<FactKey, EncodedFact>,
    /// The last writers of the objects that they were read from, where known.
    pub changed_by: BTreeMap<FactKey, ChangedBy>,
    /// Slices that cannot be reported, and why.
    pub bad_slices: Vec<(String, String)>,
}

impl Joined {
    fn state(&mut self, key: FactKey, fact: EncodedFact, changed_by: Option<ChangedBy>) {
        if let Some(changed_by) = changed_by {
            self.changed_by.insert(key.clone(), changed_by);
        }
        self.facts.insert(key, fact);
    }
}

/// Joins the objects of `key`.
pub fn join(key: &ServiceKey, objects: &Objects<'_>, deny: &NamespaceDenyList) -> Joined {
    let mut joined = Joined::default();
    let Some(export) = objects.export.filter(|export| !export.head().deleting) else {
        return joined;
    };
    // The plan writes into an export's status why it is not valid.
    let Ok(exported) = export_from(
        export.exported(),
        objects.service.map(KeptService::exported),
        deny,
    ) else {
        return joined;
    };
    let fact = encode_fact(&Fact::ExportUpserted(Arc::new(exported.export)));
    let service_changed_by = objects.service.and_then(KeptService::changed_by);
    let changed_by = later(export.changed_by(), service_changed_by);
    joined.state(FactKey::Export(key.clone()), fact, changed_by);
    for slice in &objects.slices {
        match slice.exported(key) {
            Ok(exported) => {
                let fact_key = FactKey::EndpointSlice(exported.key.clone());
                let fact = encode_fact(&Fact::EndpointSliceUpserted(exported));
                joined.state(fact_key, fact, slice.changed_by().cloned());
            }
            Err(problem) if problem.is_foreign() => {}
            Err(problem) => {
                let name = slice.head().name.to_string();
                joined.bad_slices.push((name, problem.to_string()));
            }
        }
    }
    joined
}
