//! The runbooks of a certificate that is renewed by hand, and of the key that it brings.

use std::fs;

use anyhow::{Context, ensure};
use cluster::clusterset::{
    Backend,
    questions::{self, kinds},
};

use super::{
    Page, Player,
    authority::{loaded, taken_up},
};
use crate::join::joinable_on;

/// New files are put in the place of old ones, the hub's and a member's; an operator admits the member's new key with the
/// command that the refusal names. One whose certificate has ended is given a string.
pub(super) async fn a_certificate_ends_and_another_key_is_admitted(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = joinable_on(dir.path(), &backend, &["east", "west"], &[]).await?;
    fs::write(clusterset.certificate("ca.key"), clusterset.authority.key_pem())?;
    clusterset.start_agent("east").await?;
    questions::listed(&clusterset, &["east"]).await?;
    let directory = clusterset.certificate("").display().to_string();
    let player = Player::at(&clusterset).with("ID", "east").with("DIR", directory);

    let mut page = Page::of("runbooks/certificate-expires.md", "A certificate expires")?;
    let before = loaded(&mut clusterset).await?;
    for command in [
        "tributary-hub certs hub --ca DIR --force",
        "tributary-hub certs member --ca DIR --cluster-id ID --force",
    ] {
        player.play(&clusterset, page.take(command)?).await?;
    }
    taken_up(&mut clusterset, before).await?;
    page.all_played(&[])?;

    clusterset.kill_agent("east").await?;
    clusterset.start_agent("east").await?;
    let refusal = questions::said(&clusterset.log("east"), "--key-fingerprint ").await?;
    let mut page = Page::of(
        "runbooks/session-refused.md",
        "A session is refused because of its key or its cluster",
    )?;
    let rekey = page.take("tributary member rekey ID --key-fingerprint …")?;
    let key: String = refusal
        .split("--key-fingerprint ")
        .nth(1)
        .context("a fingerprint")?
        .chars()
        .take_while(char::is_ascii_hexdigit)
        .collect();
    let player = player.with("…", key);
    let said = player.play(&clusterset, rekey).await?;
    player.confirm(&clusterset, &said).await?;
    questions::listed(&clusterset, &["east"]).await?;
    ensure!(
        kinds(&clusterset, "east")
            .await?
            .iter()
            .any(|kind| kind == "member_rekeyed"),
        "no event tells of the new key"
    );
    page.all_played(&[])?;

    let mut page = Page::of("runbooks/renewal-fails.md", "A certificate renewal fails")?;
    let player = player.with("ID", "west");
    let string = page.take("tributary token create --cluster-id ID")?;
    let said = player.play(&clusterset, string).await?;
    ensure!(said.lines().next().is_some_and(|line| line.len() > 40), "{said}");
    let events = page.take("tributary events --kind member_key_certified")?;
    player.play(&clusterset, events).await?;
    page.all_played(&[])?;
    clusterset.end().await
}
