//! Owns: the way to a hub that the environment asks for: straight, or through the proxy in HTTPS_PROXY (HTTP CONNECT),
//! unless NO_PROXY names the hub. TLS runs inside the tunnel, so the proxy sees addresses and no content.
//! Never: decrypts anything, or sends a hub's credentials to a proxy.

use std::io;

use anyhow::{Context, bail, ensure};
use data_encoding::BASE64;
use futures::future::BoxFuture;
use http::{HeaderValue, Uri};
use hyper_util::{client::legacy::connect::proxy::Tunnel, rt::TokioIo};
use tower::{Service, ServiceExt};

use super::{
    address::HubAddress,
    dial::{BoxedIo, Dial, TcpDial},
};
use api_client::no_proxy::{from_environment, is_direct};

/// The port of a proxy that names none.
const PROXY_PORT: u16 = 80;

/// Dials hubs as the environment says.
#[derive(Debug, Clone, Default)]
pub struct HubDial {
    proxy: Option<Proxy>,
    no_proxy: String,
}

#[derive(Debug, Clone)]
struct Proxy {
    address: HubAddress,
    authorization: Option<HeaderValue>,
}

impl HubDial {
    /// Reads HTTPS_PROXY and NO_PROXY.
    ///
    /// # Errors
    ///
    /// HTTPS_PROXY is no http URL of a proxy.
    pub fn from_environment() -> anyhow::Result<Self> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let proxy = from_environment(["HTTPS_PROXY", "https_proxy"], &variable);
        Ok(Self {
            proxy: proxy.map(|proxy| Proxy::read(&proxy)).transpose()?,
            no_proxy: from_environment(["NO_PROXY", "no_proxy"], &variable).unwrap_or_default(),
        })
    }

    /// Returns the proxy through which this hub is reached, without its credentials; absent for a straight way.
    pub fn proxy_of(&self, hub: &HubAddress) -> Option<String> {
        Some(self.proxy_to(hub)?.to_string())
    }

    fn proxy_to(&self, hub: &HubAddress) -> Option<&Proxy> {
        let proxy = self.proxy.as_ref()?;
        (!is_direct(&hub.host, Some(hub.port), &self.no_proxy)).then_some(proxy)
    }
}

impl Dial for HubDial {
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>> {
        match self.proxy_to(&address) {
            None => TcpDial.dial(address),
            Some(proxy) => Box::pin(proxy.clone().tunnel(address)),
        }
    }
}

impl Proxy {
    fn read(text: &str) -> anyhow::Result<Self> {
        let text = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let url: Uri = text.parse().ok().context(
            "HTTPS_PROXY is no URL of a proxy: write http://HOST:PORT, or name the hub in NO_PROXY and unset it",
        )?;
        let authority = url
            .authority()
            .map(http::uri::Authority::as_str)
            .unwrap_or_default();
        let (user, _) = authority.rsplit_once('@').unwrap_or_default();
        ensure!(
            !user.contains('%'),
            "HTTPS_PROXY has a user or a password with %: percent-encoding is not supported, so use others"
        );
        let Some(host) = url.host().filter(|host| !host.is_empty()) else {
            bail!("HTTPS_PROXY names no host: write http://HOST:PORT");
        };
        ensure!(
            url.scheme_str() == Some("http"),
            "HTTPS_PROXY names the proxy {host} with a scheme that is not supported: write http://{host}:PORT"
        );
        let authorization = (!user.is_empty()).then(|| {
            let mut value = HeaderValue::try_from(format!("Basic {}", BASE64.encode(user.as_bytes())))?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        });
        Ok(Self {
            address: HubAddress {
                host: host.trim_matches(['[', ']']).into(),
                port: url.port_u16().unwrap_or(PROXY_PORT),
            },
            authorization: authorization.transpose()?,
        })
    }

    /// A stream to the hub through this proxy, which resolves the hub's name.
    async fn tunnel(self, hub: HubAddress) -> io::Result<BoxedIo> {
        let proxy = self.to_string();
        let failed = |error: &dyn std::fmt::Display| {
            io::Error::other(format!("no way through {proxy} (HTTPS_PROXY): {error}"))
        };
        let to = hub.to_string().parse::<Uri>().map_err(|error| failed(&error))?;
        let address = self.address.clone();
        let dial = tower::service_fn(move |_: Uri| {
            let dialled = TcpDial.dial(address.clone());
            async move { dialled.await.map(TokioIo::new) }
        });
        let own = Uri::from_static("http://proxy");
        let mut tunnel = Tunnel::new(own, dial);
        if let Some(authorization) = self.authorization {
            tunnel = tunnel.with_auth(authorization);
        }
        let ready = tunnel.ready().await.map_err(|error| failed(&error))?;
        match ready.call(to).await {
            Ok(stream) => Ok(stream.into_inner()),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                Err(failed(&cause.unwrap_or_else(|| error.to_string())))
            }
        }
    }
}

impl std::fmt::Display for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, .. } = self;
        write!(f, "the proxy {}:{}", address.host, address.port)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    fn dial(proxy: &str, no_proxy: &str) -> anyhow::Result<HubDial> {
        HubDial::from_variables(|name| match name {
            "HTTPS_PROXY" => Some(proxy.to_owned()),
            "no_proxy" => Some(no_proxy.to_owned()),
            _ => None,
        })
    }

    fn hub() -> HubAddress {
        "https://hub.example.org:8443".parse().expect("an address")
    }

    /// A proxy that gives each client this answer, then echoes; the first bytes are the request.
    async fn proxy(answer: &'static str) -> (u16, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut asked = String::new();
            while !asked.ends_with("\r\n\r\n") {
                asked.push(char::from(socket.read_u8().await.expect("a request")));
            }
            socket.write_all(answer.as_bytes()).await.expect("answered");
            if let Ok(byte) = socket.read_u8().await {
                socket.write_u8(byte).await.expect("said back");
            }
            asked
        });
        (port, serving)
    }

    #[tokio::test]
    async fn a_hub_is_reached_through_the_proxy_with_its_credentials() {
        let (port, asked) = proxy("HTTP/1.1 200 OK\r\n\r\n").await;
        let dial = dial(&format!("http://user:pass@127.0.0.1:{port}"), "").expect("a proxy");
        assert_eq!(dial.proxy_of(&hub()), Some(format!("the proxy 127.0.0.1:{port}")));
        let mut stream = dial.dial(hub()).await.expect("a tunnel");
        stream.write_u8(7).await.expect("sent");
        assert_eq!(stream.read_u8().await.expect("said back"), 7);
        let asked = asked.await.expect("served");
        assert!(
            asked.starts_with("CONNECT hub.example.org:8443 HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(asked.contains("Basic dXNlcjpwYXNz"), "{asked}");
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_is_named_without_its_password() {
        let (port, _) = proxy("HTTP/1.1 407 no\r\n\r\n").await;
        let dial = dial(&format!("user:pass@127.0.0.1:{port}"), "").expect("a proxy");
        let error = dial.dial(hub()).await.err().expect("refused").to_string();
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
        assert!(
            error.contains("authorization required") && !error.contains("pass"),
            "{error}"
        );
    }

    #[test]
    fn a_hub_in_no_proxy_is_reached_straight_and_what_is_no_proxy_is_refused() {
        assert_eq!(
            dial("http://proxy:3128", "example.org")
                .expect("one")
                .proxy_of(&hub()),
            None
        );
        assert_eq!(dial("", "").expect("none").proxy_of(&hub()), None);
        for wrong in ["socks5://proxy:1080", "https://proxy", "http://", "a b"] {
            let error = dial(wrong, "").expect_err("no proxy").to_string();
            assert!(error.contains("HTTPS_PROXY"), "{wrong}: {error}");
        }
    }
}
