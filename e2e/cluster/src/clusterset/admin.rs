//! The admin port of a program: what `/readyz` and `/metrics` say. It asks and reads.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Program;

/// Status code and body of a GET.
pub async fn get(address: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer has no end of its head")?;
    let status = head.split(' ').nth(1).context("the answer has no status")?;
    Ok((status.parse()?, body.to_owned()))
}

/// The sum of a metric's samples whose labels hold `labels` (empty: all). A metric without samples is 0.
pub async fn metric(program: &mut Program, name: &str, labels: &str) -> anyhow::Result<f64> {
    metric_at(program.admin().await?, name, labels).await
}

/// The same of the program whose admin port this is.
pub async fn metric_at(address: SocketAddr, name: &str, labels: &str) -> anyhow::Result<f64> {
    let (_, text) = get(address, "/metrics").await?;
    let mut sum = 0.0;
    for line in text.lines() {
        let Some((sample, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (found, with) = sample.split_once('{').unwrap_or((sample, ""));
        if found == name && with.contains(labels) {
            sum += value.parse::<f64>()?;
        }
    }
    Ok(sum)
}
