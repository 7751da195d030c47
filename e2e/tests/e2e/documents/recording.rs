//! Owns: that the recording and the outputs in docs/demo.md are what `cargo demo --record` makes today, word for word.
//! Never: writes them.

use anyhow::ensure;

pub(super) async fn is_of_today() -> anyhow::Result<()> {
    let different = demo::compare().await?;
    ensure!(
        different.is_empty(),
        "if that is as it should be, `{}` records it anew:\n{}",
        advice::DEMO_RECORD,
        different.join("\n")
    );
    Ok(())
}
