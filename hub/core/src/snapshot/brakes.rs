//! Rows of a snapshot for mass-withdrawal holds, and for members' withdrawals.

use model::{ClusterId, EncodedFact, Revision, UnixMillis};
use proto::v1;

use super::{Decoded, cluster, wrong};
use fold::{EngagedBrake, SnapshotRow};

pub(super) fn brake_to_proto(cluster: &ClusterId, brake: EngagedBrake) -> v1::SnapshotBrake {
    v1::SnapshotBrake {
        cluster: cluster.to_string(),
        since_unix_millis: brake.since.0,
        removed: brake.removed,
        exports: brake.exports,
    }
}

pub(super) fn brake_from_proto(brake: &v1::SnapshotBrake) -> Decoded<SnapshotRow> {
    Ok(SnapshotRow::Brake(
        cluster(&brake.cluster)?,
        EngagedBrake {
            since: UnixMillis(brake.since_unix_millis),
            removed: brake.removed,
            exports: brake.exports,
        },
    ))
}

pub(super) fn taken_back_to_proto(
    cluster: &ClusterId,
    revision: Revision,
    at: UnixMillis,
    fact: &EncodedFact,
) -> v1::SnapshotTakenBack {
    v1::SnapshotTakenBack {
        cluster: cluster.to_string(),
        revision: revision.0,
        removed_at_unix_millis: at.0,
        fact: fact.bytes.clone(),
    }
}

pub(super) fn taken_back_from_proto(removed: v1::SnapshotTakenBack) -> Decoded<SnapshotRow> {
    Ok(SnapshotRow::TakenBack {
        cluster: cluster(&removed.cluster)?,
        revision: Revision(removed.revision),
        at: UnixMillis(removed.removed_at_unix_millis),
        fact: wire::decode_recorded_fact(removed.fact).map_err(wrong)?,
    })
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use model::Fact;
    use wire::encode_fact;

    use super::*;
    use crate::snapshot::{decode_row, encode_row};

    /// In the order of the rows below.
    const FROZEN_ROWS: [&str; 2] = [
        "92030d0a046561737410ac0218052008",
        "9a031a0a0465617374100718ad02220d3a0b0a0776312e33362e331001",
    ];

    #[test]
    fn the_bytes_of_rows_are_frozen_and_give_the_rows_back() {
        let east = || ClusterId::new("east").unwrap();
        let brake = EngagedBrake {
            since: UnixMillis(300),
            removed: 5,
            exports: 8,
        };
        let health = encode_fact(&Fact::HealthReported(
            model::Health {
                kubernetes_version: "v1.36.3".into(),
                control_plane: model::ControlPlane::Ready,
                failed_checks: Vec::new(),
                verdict: None,
                nodes: None,
            }
            .into(),
        ));
        let rows = [
            SnapshotRow::Brake(east(), brake),
            SnapshotRow::TakenBack {
                cluster: east(),
                revision: Revision(7),
                at: UnixMillis(301),
                fact: health,
            },
        ];
        let encoded = rows.each_ref().map(|row| HEXLOWER.encode(&encode_row(row)));
        assert_eq!(encoded, FROZEN_ROWS);
        for row in rows {
            assert_eq!(decode_row(&encode_row(&row)), Ok(row));
        }
    }
}
