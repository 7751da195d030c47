//! Owns: counting the bytes that a session receives on the wire, TLS and HTTP/2 included.
//! Never: looks at them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::BoxFuture;
use shared::tls::{BoxedIo, Dial, HubAddress, TcpDial};
use tokio_util::io::InspectReader;

/// Bytes of a session on the wire.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic(Arc<AtomicU64>);

impl Traffic {
    /// Bytes received so far.
    pub(super) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Dial for Traffic {
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>> {
        let (dialling, read) = (TcpDial.dial(address), self.0.clone());
        Box::pin(async move {
            let counted = InspectReader::new(dialling.await?, move |bytes: &[u8]| {
                read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            });
            Ok(Box::new(counted) as BoxedIo)
        })
    }
}
