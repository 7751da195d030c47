//! The probe: what it reports, and that a report fits into a termination message.

use std::net::{Ipv6Addr, SocketAddrV6};

use tokio::net::TcpListener;

use super::*;

/// Kubernetes cuts a longer termination message.
const MESSAGE_BYTES_MAX: usize = 4_096;

#[tokio::test]
async fn names_and_connections_are_reported_in_their_order() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let open = listener.local_addr().expect("an address");
    let closed = {
        let other = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        other.local_addr().expect("an address")
    };
    let request = Request {
        names: vec![
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
            "nothing.invalid.".to_owned(),
        ],
        dials: vec![closed, open],
        wait_millis: 3_000,
    };
    let report = carried_out(&request).await;
    assert_eq!(report.names[0], Ok(vec![open.ip()]));
    assert_eq!(report.names[1], Ok(vec![IpAddr::V6(Ipv6Addr::LOCALHOST)]));
    assert!(report.names[2].is_err(), "{report:?}");
    assert_eq!(report.dials[0], Err("Connection refused".to_owned()));
    assert!(report.dials[1].is_ok(), "{report:?}");
}

#[test]
fn the_longest_report_fits_into_a_termination_message() {
    let longest = Ipv6Addr::from([0xffff_u16; 8]);
    let reason = "x".repeat(200);
    let report = Report {
        names: vec![Ok(vec![longest.into(); ADDRESSES_MAX]); NAMES_MAX],
        dials: vec![Err(short(&reason)); DIALS_MAX],
    };
    let text = serde_json::to_string(&report).expect("JSON");
    assert!(text.len() <= MESSAGE_BYTES_MAX, "{} bytes", text.len());
    assert_eq!(serde_json::from_str::<Report>(&text).expect("read"), report);
}

#[test]
fn a_request_travels_as_one_argument() {
    let at = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 80, 0, 0));
    let asked = Request {
        names: vec!["cart.shop.svc.clusterset.local.".to_owned()],
        dials: vec![at],
        wait_millis: 5,
    };
    let text = serde_json::to_string(&asked).expect("JSON");
    assert_eq!(request(&text), Ok(asked));
    assert!(request("{").is_err());
}

#[test]
fn a_reason_is_short() {
    assert_eq!(short("Connection refused (os error 111)"), "Connection refused");
    let dns = "failed to lookup address information: Name does not resolve";
    assert_eq!(short(dns), "Name does not resolve");
}
