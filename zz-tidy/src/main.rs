//! x
#[path = "../../e2e/tests/e2e/tidy/mod.rs"]
mod tidy;
fn main() -> std::process::ExitCode { libtest_mimic::run(&libtest_mimic::Arguments::from_args(), tidy::trials()).exit_code() }
