//! Messages to members while the disk's reserve is touched, and the requests afterwards
//! (docs/runbooks/disk-nearly-full.md). A cluster with a report held back does not count as listed.

use model::{
    ClusterId, EncodedFact, Fact, ListingGroup, SessionId,
    sync::{RefusalReason, Refused},
};

use super::{
    core::{Core, Open},
    disk_room::{DiskRoom, only_shrinks},
    request::Reply,
};

/// Message to members while nothing may grow.
const NO_ROOM: &str = "the hub's disk is nearly full, and it records only removals for now. It keeps what it has of this, \
    and asks again by itself when there is room. Give its volume more room";

/// Message to a member whose listing was not taken completely.
const ROOM_AGAIN: &str = "the hub's disk has room again: connect again, and list what it did not take";

impl Core {
    /// The disk has so much room now. Members that were refused for lack of room are asked once there is room.
    pub fn set_room(&mut self, room: DiskRoom) {
        let before = std::mem::replace(&mut self.room, room);
        if before != DiskRoom::Reserve || room == DiskRoom::Reserve {
            return;
        }
        let (mut asked, mut listing) = (Vec::new(), Vec::new());
        for (cluster, open) in &mut self.sessions {
            if open.lists_anew {
                listing.push(cluster.clone());
            } else if std::mem::take(&mut open.held_back) {
                asked.push(Reply::ReportAgain(open.session));
            }
        }
        self.batch.replies.extend(asked);
        for cluster in listing {
            self.end_session(&cluster, ROOM_AGAIN);
        }
    }

    /// Ends a session because of the room on the disk; the agent comes again by itself.
    fn end_session(&mut self, cluster: &ClusterId, why: &str) {
        if let Some(open) = self.sessions.remove(cluster) {
            self.sessions_changed = true;
            self.batch
                .replies
                .push(Reply::Close(open.session, why.to_owned()));
        }
    }

    /// A group was listed, and a part was held back: a cluster with an incomplete record must not count as listed,
    /// because the missing part would be deleted elsewhere. It lists again in a new session, once there is room.
    pub(super) fn lacks(&mut self, cluster: &ClusterId, group: ListingGroup) -> bool {
        let Some(open) = self.sessions.get_mut(cluster) else {
            return false;
        };
        if !open.lacking.contains(&group) {
            return false;
        }
        open.lists_anew = true;
        if self.room != DiskRoom::Reserve {
            self.end_session(cluster, ROOM_AGAIN);
        }
        true
    }

    /// Room on the disk at the last look.
    pub fn room(&self) -> DiskRoom {
        self.room
    }

    /// Returns true if a fact differs from what is recorded, and does more than take endpoints away from it: where those stay that are
    /// gone, the whole clusterset asks them.
    pub(super) fn grows(&self, cluster: &ClusterId, fact: &EncodedFact) -> bool {
        let member = self.state.current_member(cluster);
        let known = member
            .zip(fact.fact.key())
            .and_then(|(member, key)| member.facts().get(&key));
        let Some(known) = known else { return true };
        let shrinks = match (known.endpoint_slice(), &fact.fact) {
            (Some(known), Fact::EndpointSliceUpserted(now)) => only_shrinks(known, now),
            _ => false,
        };
        known.hash != fact.hash && !shrinks
    }

    /// The disk has no room for an item; false: as [`Core::refuse_for_now`] says.
    pub(super) fn hold_back(
        &mut self,
        session: SessionId,
        cluster: &ClusterId,
        sequence: u64,
        group: Option<ListingGroup>,
    ) -> bool {
        let open = self.refuse_for_now((session, cluster, sequence), RefusalReason::NoRoom, NO_ROOM);
        let Some(open) = open else {
            return false;
        };
        open.held_back = true;
        open.lacking.extend(group);
        true
    }

    /// An item is not taken for now. An agent that does not know this message would take its facts for refused and
    /// withdraw them: its session ends instead, and nothing is returned.
    pub(super) fn refuse_for_now(
        &mut self,
        (session, cluster, sequence): (SessionId, &ClusterId, u64),
        reason: RefusalReason,
        why: &str,
    ) -> Option<&mut Open> {
        if !self.sessions.get(cluster)?.reports_again {
            self.end_session(cluster, why);
            return None;
        }
        let refused = Refused {
            sequence,
            reason,
            message: why.into(),
        };
        self.batch.replies.push(Reply::Refused(session, refused));
        self.sessions.get_mut(cluster)
    }
}
