//! Tests of calls to extensions, over real sockets: paths, TLS, and what is refused.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, mpsc},
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use serde_json::json;

use super::*;

/// Reads a request: its head, and its body.
fn request(from: &mut impl Read) -> Option<(String, Value)> {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(b"\r\n\r\n") {
        from.read_exact(&mut byte).ok()?;
        read.push(byte[0]);
    }
    let head = String::from_utf8(read).ok()?;
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length?];
    from.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}

fn response(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Serves an extension that answers each request as `script` says, or not at all; gives its address.
fn serve<S: Read + Write + Send + 'static>(
    wrap: impl Fn(TcpStream) -> S + Send + 'static,
    script: impl Fn(&str, &Value) -> Option<Vec<u8>> + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let mut silent = Vec::new();
        for socket in listener.incoming() {
            let mut socket = wrap(socket.expect("a connection"));
            let Some((head, body)) = request(&mut socket) else {
                continue;
            };
            match script(&head, &body) {
                // The caller may have gone.
                Some(answer) => drop(socket.write_all(&answer).and_then(|()| socket.flush())),
                None => silent.push(socket),
            }
        }
    });
    port
}

fn args(addresses: &[&str]) -> ExtensionArgs {
    ExtensionArgs {
        addresses: addresses.iter().map(|one| (*one).to_owned()).collect(),
        ca: None,
        tls_name: None,
    }
}

fn asked(args: &ExtensionArgs) -> Result<Value, String> {
    let asker = Asker {
        limit: Duration::from_secs(2),
        ..args.asker().expect("an address")
    };
    asker
        .ask(Hook::GeneratePatches, "Gen-Patches.ext", &json!({"kind": "x"}))
        .expect("its address is known")
}

#[test]
fn a_call_is_the_one_of_cluster_api() {
    let (told, heard) = mpsc::channel();
    let port = serve(
        |socket| socket,
        move |head, body| {
            told.send((head.to_owned(), body.clone())).expect("heard");
            Some(response("200 OK", "{\"status\": \"Success\"}"))
        },
    );
    let args = args(&[&format!("ext=http://127.0.0.1:{port}/below")]);
    assert_eq!(asked(&args), Ok(json!({"status": "Success"})));
    let (head, body) = heard.recv().expect("asked");
    let line = "POST /below/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/gen-patches?timeout=10s HTTP/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    assert_eq!(body, json!({"kind": "x"}));
    let asker = args.asker().expect("an address");
    let other = asker.ask(Hook::ValidateTopology, "val.other", &json!({}));
    assert_eq!(other, None, "an extension without an address is not asked");
}

#[test]
fn what_is_no_answer_is_told() {
    for (answer, why) in [
        (
            Some(response("500 Internal Server Error", "a\nb")),
            "it answered with HTTP 500: a b",
        ),
        (Some(response("200 OK", "{")), "its answer is no JSON"),
        (
            Some(response("200 OK", &"x".repeat(ANSWER_MAX + 1))),
            "its answer has more than 16777216 bytes",
        ),
        (
            Some(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec()),
            "its answer ends early",
        ),
        (Some(b"SSH-2.0\r\n".to_vec()), "it cannot be called"),
        (None, "no answer within 2 s"),
    ] {
        let port = serve(|socket| socket, move |_, _| answer.clone());
        let error = asked(&args(&[&format!("ext=http://localhost:{port}")])).expect_err(why);
        assert!(error.starts_with(why), "{error}");
    }
    let nobody = TcpListener::bind("127.0.0.1:0")
        .expect("bound")
        .local_addr()
        .expect("an address");
    let error = asked(&args(&[&format!("ext=http://{nobody}")])).expect_err("nobody listens");
    assert!(error.starts_with("it cannot be called"), "{error}");
}

#[test]
fn certificates_are_checked() {
    api_client::install_crypto_provider().expect("installed");
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["ext.ns.svc".to_owned()]).expect("made");
    let key = PrivateKeyDer::from_pem_slice(signing_key.serialize_pem().as_bytes()).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key);
    let config = Arc::new(config.expect("a certificate with its key"));
    let port = serve(
        move |socket| StreamOwned::new(ServerConnection::new(config.clone()).expect("configured"), socket),
        |_, _| Some(response("200 OK", "{}")),
    );
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("ca.crt");
    std::fs::write(&ca, cert.pem()).expect("written");
    let address = format!("ext=https://localhost:{port}");
    let with = |ca: Option<&PathBuf>, name: Option<&str>| {
        asked(&ExtensionArgs {
            ca: ca.cloned(),
            tls_name: name.map(str::to_owned),
            ..args(&[&address])
        })
    };
    assert_eq!(with(Some(&ca), Some("ext.ns.svc")), Ok(json!({})));
    for (ca, name) in [
        (Some(&ca), None),
        (None, Some("ext.ns.svc")),
        (Some(&ca), Some("other.ns.svc")),
    ] {
        let error = with(ca, name).expect_err("not to be trusted");
        assert!(error.starts_with("it cannot be called"), "{error}");
    }
}

#[test]
fn addresses_are_checked_before_anything_is_planned() {
    for (addresses, why) in [
        (&["ext"][..], "give NAME=URL"),
        (&["=https://a.example"], "give a name before ="),
        (
            &["ext=http://a.example"],
            "use https; http is for extensions on this machine alone",
        ),
        (
            &["ext=http://127.0.0.1.a.example"],
            "use https; http is for extensions on this machine alone",
        ),
        (
            &["ext=ftp://127.0.0.1"],
            "use https; http is for extensions on this machine alone",
        ),
        (&["ext=/a"], "the URL has no host"),
        (&["ext=https://a.example?b=c"], "the URL has a query"),
        (
            &["ext=https://a.example", "ext=https://b.example"],
            "--extension names ext twice",
        ),
    ] {
        let error = format!("{:#}", args(addresses).asker().expect_err(why));
        assert!(error.contains(why), "{error}");
    }
    assert!(
        args(&["ext=http://[::1]:9443/a", "other=https://a.example"])
            .asker()
            .is_ok()
    );
}
