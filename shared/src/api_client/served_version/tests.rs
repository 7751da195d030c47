//! The version that is served, found by asking an API server that answers as a real one does.

use std::sync::Mutex;

use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::*;
use crate::{
    api::{
        ClusterProperty, ServiceExport, ServiceImport, cluster_profile::ClusterProfile,
        names::MULTICLUSTER_API_VERSION,
    },
    api_client::in_served_version,
};

/// An API server that serves the kinds in one version, which can be changed, and notes what it was asked.
#[derive(Clone)]
struct Server {
    version: Arc<Mutex<&'static str>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn serving(version: &'static str) -> Self {
        Self {
            version: Arc::new(Mutex::new(version)),
            asked: Arc::default(),
        }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let version = *self.version.lock().expect("whole");
        let path = parts.uri.path();
        let stated = body["apiVersion"].as_str().unwrap_or("-").to_owned();
        let asked = format!("{} {path} {stated}", parts.method);
        self.asked.lock().expect("whole").push(asked);
        let (code, form, text) = if !path.contains(&format!("/{version}/")) {
            (
                404,
                "text/plain; charset=utf-8",
                "404 page not found\n".to_owned(),
            )
        } else if path.ends_with("/absent") {
            let status = json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "absent",
                "status": "Failure"});
            (404, "application/json", status.to_string())
        } else {
            let object = json!({"apiVersion": format!("{MULTICLUSTER_GROUP}/{version}"), "kind": "ServiceExport",
                "metadata": {"name": "cart", "resourceVersion": "5"}, "items": []});
            (200, "application/json", object.to_string())
        };
        let answer = Response::builder()
            .status(code)
            .header(header::CONTENT_TYPE, form);
        Ok(answer.body(Body::from(text.into_bytes())).expect("an answer"))
    }

    fn taken(&self) -> Vec<String> {
        let mut asked = self.asked.lock().expect("whole");
        let short = |line: String| line.replace("/apis/multicluster.x-k8s.io/", "");
        asked.drain(..).map(short).collect()
    }
}

fn place() -> (Server, ServedVersions, Client) {
    let (server, versions) = (Server::serving("v1alpha1"), ServedVersions::default());
    let client = in_served_version(server.client(), versions.clone());
    (server, versions, client)
}

#[tokio::test]
async fn an_older_version_is_found_and_kept_to() {
    let (server, versions, client) = place();
    let exports: Api<ServiceExport> = Api::namespaced(client, "shop");
    exports.list(&ListParams::default()).await.expect("a list");
    assert_eq!(
        server.taken(),
        [
            "GET v1beta1/namespaces/shop/serviceexports -",
            "GET v1alpha1/namespaces/shop/serviceexports -"
        ]
    );
    let body = json!({"apiVersion": MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
        "metadata": {"name": "cart", "annotations": {"note": MULTICLUSTER_API_VERSION}}});
    let params = PatchParams::apply("test").force();
    let patch = Patch::Apply(&body);
    exports
        .patch_status("cart", &params, &patch)
        .await
        .expect("taken");
    let [asked] = &server.taken()[..] else {
        panic!("one request is enough once the version is known")
    };
    assert_eq!(
        asked,
        "PATCH v1alpha1/namespaces/shop/serviceexports/cart/status multicluster.x-k8s.io/v1alpha1"
    );
    let labels = |version| KindVersion {
        kind: "ServiceExport",
        version,
    };
    assert_eq!(versions.shown.get_or_create(&labels("v1alpha1")).get(), 1);
    assert_eq!(versions.shown.get_or_create(&labels("v1beta1")).get(), 0);
}

#[tokio::test]
async fn a_newer_version_is_taken_with_the_next_listing_and_an_older_one_at_once() {
    let (server, _, client) = place();
    let exports: Api<ServiceExport> = Api::namespaced(client, "shop");
    exports.list(&ListParams::default()).await.expect("a list");
    *server.version.lock().expect("whole") = "v1beta1";
    exports.list(&ListParams::default()).await.expect("a list");
    server.taken();
    exports.get("cart").await.expect("an object");
    assert_eq!(
        server.taken(),
        ["GET v1beta1/namespaces/shop/serviceexports/cart -"]
    );
    *server.version.lock().expect("whole") = "v1alpha1";
    exports.get("cart").await.expect("an object");
    server.taken();
    exports.get("cart").await.expect("an object");
    assert_eq!(
        server.taken(),
        ["GET v1alpha1/namespaces/shop/serviceexports/cart -"]
    );
}

#[tokio::test]
async fn an_object_that_is_not_there_says_nothing_of_versions() {
    let (server, _, client) = place();
    *server.version.lock().expect("whole") = "v1beta1";
    let imports: Api<ServiceImport> = Api::namespaced(client, "shop");
    assert!(imports.get_opt("absent").await.expect("an answer").is_none());
    assert_eq!(server.taken().len(), 1, "no other version was asked");
}

#[tokio::test]
async fn a_kind_that_is_served_in_no_version_is_not_there() {
    let (server, _, client) = place();
    *server.version.lock().expect("whole") = "none";
    let imports: Api<ServiceImport> = Api::all(client);
    let error = imports
        .list(&ListParams::default())
        .await
        .expect_err("no such path");
    assert!(
        matches!(&error, kube::Error::Api(status) if status.code == 404),
        "{error:?}"
    );
    assert_eq!(server.taken().len(), KINDS[1].versions.len());
}

/// They are named in their older version, which upstream stores; the newer one is spoken where it is served.
#[tokio::test]
async fn profiles_are_written_in_the_newest_version() {
    let (server, versions, client) = place();
    let profiles: Api<ClusterProfile> = Api::namespaced(client, "inventory");
    let body = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"name": "cart"}, "spec": {"clusterManager": {"name": "tributary"}}});
    let params = PatchParams::apply("test").force();
    for (served, asked) in [
        ("v1alpha1", &["v1alpha2", "v1alpha1"][..]),
        ("v1alpha2", &["v1alpha1", "v1alpha2"]),
        ("v1alpha2", &["v1alpha2"]),
    ] {
        *server.version.lock().expect("whole") = served;
        let patch = Patch::Apply(&body);
        // The answer is a profile as little as any other kind's; that one came is enough.
        let _ = profiles.patch("cart", &params, &patch).await;
        let wanted = asked.iter().map(|version| {
            format!(
                "PATCH {version}/namespaces/inventory/clusterprofiles/cart multicluster.x-k8s.io/{version}"
            )
        });
        assert_eq!(server.taken(), wanted.collect::<Vec<_>>());
    }
    let labels = KindVersion {
        kind: "ClusterProfile",
        version: "v1alpha2",
    };
    assert_eq!(versions.shown.get_or_create(&labels).get(), 1);
}

/// An older about-api serves ClusterProperty in v1alpha1 only, and the cluster says its id there.
#[tokio::test]
async fn properties_of_an_older_definition_are_found() {
    let (server, _, client) = place();
    let properties: Api<ClusterProperty> = Api::all(client);
    properties.list(&ListParams::default()).await.expect("a list");
    let wanted = ["v1beta1", "v1alpha1"]
        .map(|version| format!("GET /apis/about.k8s.io/{version}/clusterproperties -"));
    assert_eq!(server.taken(), wanted);
}

#[test]
fn other_kinds_pass() {
    let of = |path| Asked::of(&Method::GET, path);
    assert_eq!(of("/apis/multicluster.x-k8s.io/v1alpha2/clusterprofiles"), None);
    assert_eq!(of("/apis/multicluster.x-k8s.io/v1alpha1/serviceexports"), None);
    assert_eq!(of("/apis/about.k8s.io/v1beta1/serviceexports"), None);
    assert_eq!(of("/api/v1/namespaces/shop/services"), None);
    assert_eq!(of("/apis/discovery.k8s.io/v1/endpointslices"), None);
    let all = of("/apis/multicluster.x-k8s.io/v1beta1/serviceimports");
    assert_eq!(
        all,
        Some(Asked {
            kind: 1,
            begins: true
        })
    );
    let one = of("/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/cart/status");
    assert_eq!(
        one,
        Some(Asked {
            kind: 0,
            begins: false
        })
    );
}

#[test]
fn only_versions_of_objects_are_renamed() {
    let mut body = json!({"apiVersion": "a/1", "metadata": {"annotations": {"note": "a/1"},
        "managedFields": [{"apiVersion": "a/1"}, {"apiVersion": "v1"}]}});
    rename(&mut body, "a/1", "a/0");
    let wanted = json!({"apiVersion": "a/0", "metadata": {"annotations": {"note": "a/1"},
        "managedFields": [{"apiVersion": "a/0"}, {"apiVersion": "v1"}]}});
    assert_eq!(body, wanted);
}
