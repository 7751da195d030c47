//! Owns: an API server as something that answers requests, and the typed requests that Tributary makes.
//! Never: opens a connection, retries, or decides what a refusal means.

use std::{marker::PhantomData, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use kube_core::{
    NamespaceResourceScope, Resource, Status,
    object::ObjectList,
    params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};

/// The reason why no answer came.
pub type NoAnswer = Box<dyn std::error::Error + Send + Sync>;
/// An answer under way.
pub type Answering = Pin<Box<dyn Future<Output = Result<Response<Bytes>, NoAnswer>> + Send>>;

/// Answers requests as an API server does: over a connection, or from memory.
pub trait ApiServer: Send + Sync {
    /// Sends one request and returns the whole answer.
    fn ask(&self, request: Request<Bytes>) -> Answering;
}

impl<F, A> ApiServer for F
where
    F: Fn(Request<Bytes>) -> A + Send + Sync,
    A: Future<Output = Result<Response<Bytes>, NoAnswer>> + Send + 'static,
{
    fn ask(&self, request: Request<Bytes>) -> Answering {
        Box::pin(self(request))
    }
}

/// The failure of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused it.
    #[error("the API server refused it with {code}: {message}", code = .0.code, message = .0.message)]
    Api(Box<Status>),
    /// No answer came.
    #[error(transparent)]
    NoAnswer(NoAnswer),
    /// The answer is none of the kind.
    #[error("the API server's answer cannot be read: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// The request cannot be made of these arguments.
    #[error("the request is invalid: {0}")]
    Invalid(#[source] kube_core::request::Error),
}

/// A way to an API server. Clones are the same.
#[derive(Clone)]
pub struct Client(Arc<dyn ApiServer>);

impl Client {
    /// Asks this API server.
    pub fn new(server: impl ApiServer + 'static) -> Self {
        Self(Arc::new(server))
    }

    /// Reads the JSON document at an address.
    pub async fn document<T: DeserializeOwned>(&self, address: &str) -> Result<T, Error> {
        let request = Request::get(address)
            .header("Accept", "application/json")
            .body(Vec::new());
        let request = request.map_err(|error| Error::Invalid(kube_core::request::Error::BuildRequest(error)));
        read(&self.send(request?).await?)
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<Bytes, Error> {
        let answer = self.0.ask(request.map(Bytes::from)).await;
        let (parts, body) = answer.map_err(Error::NoAnswer)?.into_parts();
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return Err(Error::Api(Box::new(refusal(parts.status.as_u16(), &body))));
        }
        Ok(body)
    }
}

/// The words of a refusal. A proxy or an unknown path answers with other words than an API server does.
fn refusal(code: u16, body: &[u8]) -> Status {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        Status::failure(text.trim(), "").with_code(code)
    })
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(Error::Unreadable)
}

/// The objects of one kind, in one namespace or in all.
pub struct Api<K> {
    client: Client,
    request: kube_core::Request,
    namespace: Option<String>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            request: self.request.clone(),
            namespace: self.namespace.clone(),
            kind: PhantomData,
        }
    }
}

impl<K: Resource> Api<K> {
    /// Those of one namespace, of a kind that is known only when the program runs.
    pub fn namespaced_with(client: Client, namespace: &str, kind: &K::DynamicType) -> Self {
        Self {
            client,
            request: kube_core::Request::new(K::url_path(kind, Some(namespace))),
            namespace: Some(namespace.to_owned()),
            kind: PhantomData,
        }
    }

    /// Those of all namespaces, or of a kind without namespaces.
    pub fn all(client: Client) -> Self
    where
        K::DynamicType: Default,
    {
        Self {
            client,
            request: kube_core::Request::new(K::url_path(&K::DynamicType::default(), None)),
            namespace: None,
            kind: PhantomData,
        }
    }

    /// Those of one namespace.
    pub fn namespaced(client: Client, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        Self::namespaced_with(client, namespace, &K::DynamicType::default())
    }

    /// The namespace, if it is one.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl<K: DeserializeOwned> Api<K> {
    async fn answered<T: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, kube_core::request::Error>,
    ) -> Result<T, Error> {
        read(&self.client.send(request.map_err(Error::Invalid)?).await?)
    }

    /// Reads an object.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        self.answered(self.request.get(name, &GetParams::default())).await
    }

    /// Reads an object; `None`: there is none.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        match self.get(name).await {
            Err(Error::Api(status)) if status.is_not_found() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Lists objects, a page at most.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>, Error>
    where
        K: Clone,
    {
        self.answered(self.request.list(params)).await
    }

    /// Creates an object.
    pub async fn create(&self, params: &PostParams, object: &K) -> Result<K, Error>
    where
        K: Serialize,
    {
        let body = serde_json::to_vec(object).map_err(Error::Unreadable)?;
        self.answered(self.request.create(params, body)).await
    }

    /// Replaces an object.
    pub async fn replace(&self, name: &str, params: &PostParams, object: &K) -> Result<K, Error>
    where
        K: Serialize,
    {
        let body = serde_json::to_vec(object).map_err(Error::Unreadable)?;
        self.answered(self.request.replace(name, params, body)).await
    }

    /// Changes an object.
    pub async fn patch<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        self.answered(self.request.patch(name, params, patch)).await
    }

    /// Changes the status of an object.
    pub async fn patch_status<P: Serialize>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let request = self.request.patch_subresource("status", name, params, patch);
        self.answered(request).await
    }

    /// Deletes an object; returns it if the API server shows it instead of a Status.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Option<K>, Error> {
        let answer: serde_json::Value = self.answered(self.request.delete(name, params)).await?;
        if answer["kind"] == "Status" {
            return Ok(None);
        }
        serde_json::from_value(answer)
            .map(Some)
            .map_err(Error::Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use serde_json::json;

    use super::*;

    fn answering(code: u16, body: &'static str) -> Api<Namespace> {
        let server = move |_: Request<Bytes>| async move {
            let answer = Response::builder()
                .status(code)
                .body(Bytes::from_static(body.as_bytes()));
            answer.map_err(NoAnswer::from)
        };
        Api::all(Client::new(server))
    }

    #[tokio::test]
    async fn an_object_that_is_not_there_is_none_and_other_refusals_are_errors() {
        let missing = r#"{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}"#;
        assert_eq!(
            answering(404, missing).get_opt("shop").await.expect("no error"),
            None
        );
        let refused = answering(503, "upstream is away\n").get_opt("shop").await;
        let refused = refused.expect_err("a proxy's answer");
        assert_eq!(
            refused.to_string(),
            "the API server refused it with 503: upstream is away"
        );
        assert!(matches!(
            answering(200, "no JSON").get("shop").await,
            Err(Error::Unreadable(_))
        ));
    }

    #[tokio::test]
    async fn a_deletion_returns_the_object_only_while_it_lives_on() {
        let name = |deleted: Option<Namespace>| deleted.and_then(|object| object.metadata.name);
        let params = DeleteParams::default();
        let gone = answering(200, r#"{"kind": "Status", "status": "Success"}"#);
        assert_eq!(name(gone.delete("shop", &params).await.expect("gone")), None);
        let lives = answering(200, r#"{"kind": "Namespace", "metadata": {"name": "shop"}}"#);
        let shown = lives.delete("shop", &params).await.expect("shown");
        assert_eq!(name(shown).as_deref(), Some("shop"));
    }

    #[tokio::test]
    async fn a_request_names_its_place_and_what_it_changes() {
        let server = |request: Request<Bytes>| async move {
            let body: serde_json::Value = serde_json::from_slice(request.body())?;
            let name = format!("{} {} {body}", request.method(), request.uri());
            let object = json!({"metadata": {"name": name}}).to_string();
            Ok::<_, NoAnswer>(Response::new(Bytes::from(object)))
        };
        let api: Api<Namespace> = Api::all(Client::new(server));
        let patch = Patch::Merge(json!({"metadata": {}}));
        let asked = api.patch_status("shop", &PatchParams::default(), &patch).await;
        assert_eq!(
            asked.expect("answered").metadata.name.as_deref(),
            Some(r#"PATCH /api/v1/namespaces/shop/status? {"metadata":{}}"#)
        );
    }
}
