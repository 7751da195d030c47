//! x
pub mod suite { pub fn plain_test<F>(name: &str, test: F) -> libtest_mimic::Trial where F: FnOnce() -> anyhow::Result<()> + Send + 'static { libtest_mimic::Trial::test(name, move || test().map_err(|e| libtest_mimic::Failed::from(format!("{e:#}")))) } }
