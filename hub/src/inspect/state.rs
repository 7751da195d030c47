//! `State`: the present, and why an import looks as it does. All of an answer is of one revision.

use prost::Message as _;
use proto::v1::{self, state_server::State};
use shared::model::{ServiceKey, sync::MESSAGE_BYTES_MAX};
use tonic::{Request, Response, Status};

use super::{
    Inspection, Sight,
    access::Need,
    convert::{self, count},
    filter::{cluster_from, its_own, namespace_from},
    gone,
    query::{self, OBJECTS_MAX, Selection},
};

/// What the frames of the events behind an explanation take beside their bytes.
const EVENTS_SHOWN_ROOM: usize = 1024;

#[tonic::async_trait]
impl State for Inspection {
    async fn get(
        &self,
        request: Request<v1::GetStateRequest>,
    ) -> Result<Response<v1::GetStateResponse>, Status> {
        let got = async {
            let caller = self
                .admit(&request, &request.get_ref().clusterset, Need::Read)
                .await?;
            let at_least = request.get_ref().at_least_revision;
            let selection = selection(request.into_inner())?;
            let sight = caller.sight();
            if selection.members || selection.exports || selection.profiles {
                its_own(&sight, selection.cluster.as_ref())?;
            }
            self.at_least(at_least).await?;
            self.get_state(selection, sight).await
        };
        self.counted("State/Get", got).await
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let explained = async {
            let caller = self
                .admit(&request, &request.get_ref().clusterset, Need::Read)
                .await?;
            self.explain_import(request.into_inner(), caller.sight()).await
        };
        self.counted("State/Explain", explained).await
    }
}

impl Inspection {
    pub(super) async fn get_state(
        &self,
        selection: Selection,
        sight: Sight,
    ) -> Result<v1::GetStateResponse, Status> {
        let seen = self
            .writer
            .query(move |core| query::look(core, &selection, &sight))
            .await
            .map_err(gone)?;
        let mut seen =
            seen.map_err(|query::TooMany| too_large(format!("more than {OBJECTS_MAX} objects")))?;
        let answered_by = self.answered_by(seen.head.revision);
        let members = self.shown_members(std::mem::take(&mut seen.members));
        let response = convert::state(seen, members, self.clusterset.to_string(), answered_by);
        match response.encoded_len() {
            bytes if bytes <= MESSAGE_BYTES_MAX => Ok(response),
            bytes => Err(too_large(format!(
                "{bytes} bytes, and a message holds {MESSAGE_BYTES_MAX}"
            ))),
        }
    }

    async fn explain_import(
        &self,
        request: v1::ExplainRequest,
        sight: Sight,
    ) -> Result<v1::ExplainResponse, Status> {
        let service = ServiceKey::new(&request.namespace, &request.name);
        let service = service.map_err(|error| {
            Status::invalid_argument(format!("{error}: name the namespace and the name of a Service"))
        })?;
        self.at_least(request.at_least_revision).await?;
        let whose = sight.clone();
        let explained = self.writer.query(move |core| {
            let state = core.state();
            let own = match &whose {
                Sight::Of(own) => state.export_status(own, &service),
                Sight::Everything => None,
            };
            (
                core.head().epoch,
                whose.narrowed(state.explain(&service), own.map(|own| &**own)),
                query::import(state, &service),
            )
        });
        let (epoch, explanation, imported) = explained.await.map_err(gone)?;
        let (revision, behind_it) = (explanation.revision, explanation.recorded());
        let mut response = convert::explanation(epoch.to_string(), explanation, imported);
        response.answered_by = self.answered_by(revision);
        let bytes = response.encoded_len();
        let Some(room) = (MESSAGE_BYTES_MAX - EVENTS_SHOWN_ROOM).checked_sub(bytes) else {
            return Err(Status::resource_exhausted(format!(
                "the explanation has {bytes} bytes, and a message holds {MESSAGE_BYTES_MAX}: read the exports one \
                 cluster at a time with State/Get"
            )));
        };
        let evidence = self.evidence(epoch, &behind_it, room, &sight).await?;
        response.events = evidence.events;
        response.events_left_out = count(evidence.left_out);
        response.events_out_of_reach = count(evidence.out_of_reach);
        Ok(response)
    }
}

fn selection(request: v1::GetStateRequest) -> Result<Selection, Status> {
    let mut selection = Selection {
        cluster: cluster_from(&request.cluster)?,
        namespace: namespace_from(&request.namespace)?,
        ..Selection::default()
    };
    for &part in &request.parts {
        let wanted = match v1::StatePart::try_from(part) {
            Ok(v1::StatePart::Members) => &mut selection.members,
            Ok(v1::StatePart::StateExports) => &mut selection.exports,
            Ok(v1::StatePart::Imports) => &mut selection.imports,
            Ok(v1::StatePart::Profiles) => &mut selection.profiles,
            Ok(v1::StatePart::Unspecified) | Err(_) => {
                return Err(Status::invalid_argument(format!(
                    "there is no part {part}: the parts are MEMBERS, STATE_EXPORTS, IMPORTS, PROFILES; none means all"
                )));
            }
        };
        *wanted = true;
    }
    if request.parts.is_empty() {
        selection = Selection {
            members: true,
            exports: true,
            imports: true,
            profiles: true,
            ..selection
        };
    }
    Ok(selection)
}

fn too_large(what: String) -> Status {
    Status::resource_exhausted(format!(
        "the answer would have {what}: name a cluster, a namespace, or fewer parts"
    ))
}
