//! `State`: the present, and why an import looks as it does. All of an answer is of one revision, in all of its pages.

use prost::Message as _;
use proto::v1::{self, state_server::State};
use shared::{
    doctor::look,
    model::{Revision, ServiceKey, sync::MESSAGE_BYTES_MAX},
};
use tonic::{Request, Response, Status};

use super::{
    Inspection, Sight,
    access::Need,
    convert::{self, count},
    filter::{cluster_from, its_own, namespace_from},
    paging::Asked,
    query::{self, Selection},
};
use crate::writer::Published;

/// Bytes of the frames of the events behind an explanation.
const EVENTS_SHOWN_ROOM: usize = 1024;

#[tonic::async_trait]
impl State for Inspection {
    async fn get(
        &self,
        request: Request<v1::GetStateRequest>,
    ) -> Result<Response<v1::GetStateResponse>, Status> {
        let got = async {
            let caller = self.admit(&request, &request.get_ref().clusterset, Need::Read)?;
            let selection = selection(request.get_ref(), caller.sight())?;
            if selection.members || selection.exports || selection.profiles {
                its_own(&selection.sight, selection.cluster.as_ref())?;
            }
            self.first_page_at(&request.get_ref().page_token, request.get_ref().at_least_revision)
                .await?;
            let _turn = self.turns.of(&caller).await;
            self.get_state(request.get_ref(), selection).await
        };
        let mut answer = self.counted("State/Get", got).await?;
        // The clock that a doctor compares its own with.
        let time = look::time_header(self.clock.wall()).and_then(|time| time.parse().ok());
        if let Some(time) = time {
            answer.metadata_mut().insert(look::TIME_HEADER, time);
        }
        Ok(answer)
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let explained = async {
            if request.get_ref().subject == i32::from(v1::ExplainSubject::ClusterTopology) {
                return self.explain_topology(&request).await;
            }
            let caller = self.admit(&request, &request.get_ref().clusterset, Need::Read)?;
            self.at_least(request.get_ref().at_least_revision).await?;
            let _turn = self.turns.of(&caller).await;
            self.explain_import(request.into_inner(), caller.sight()).await
        };
        self.counted("State/Explain", explained).await
    }
}

impl Inspection {
    pub(super) async fn get_state(
        &self,
        request: &v1::GetStateRequest,
        selection: Selection,
    ) -> Result<v1::GetStateResponse, Status> {
        let asked = Asked {
            method: "State/Get",
            selection,
            size: request.page_size,
            token: &request.page_token,
        };
        let shown = self.page(asked).await?;
        Ok(v1::GetStateResponse {
            answered_by: self.answered_by_page(&shown),
            clusterset: self.clusterset.to_string(),
            epoch: shown.head.epoch.to_string(),
            revision: shown.head.revision.0,
            members: shown.members,
            exports: shown.exports,
            imports: shown.imports,
            profiles: shown.profiles,
            next_page_token: shown.next,
        })
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
        let present = self.present()?;
        let epoch = present.head.epoch;
        let explain = {
            let sight = sight.clone();
            move || explained(&present, &service, &sight)
        };
        let (mut response, revision, behind_it) = self.beside.done(explain).await?;
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

/// The explanation of a service, its revision, and the events behind it.
fn explained(
    present: &Published,
    service: &ServiceKey,
    sight: &Sight,
) -> (v1::ExplainResponse, Revision, Vec<Revision>) {
    let own = match sight {
        Sight::Of(own) => present.state.export_status(own, service),
        Sight::Everything => None,
    };
    let explanation = present.state.explain(service);
    let explanation = sight.narrowed(explanation, own.map(|own| &**own));
    let imported = query::import(&present.state, service);
    let withheld = present.state.withheld(service, sight.cluster());
    let (revision, behind_it) = (explanation.revision, explanation.recorded());
    let epoch = present.head.epoch.to_string();
    let response = convert::explanation(epoch, explanation, imported, withheld);
    (response, revision, behind_it)
}

fn selection(request: &v1::GetStateRequest, sight: Sight) -> Result<Selection, Status> {
    let mut selection = Selection {
        cluster: cluster_from(&request.cluster)?,
        namespace: namespace_from(&request.namespace)?,
        sight,
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
