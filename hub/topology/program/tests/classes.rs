//! The page of public ClusterClasses is the one of their list. `cargo classes` plans them, which needs clones.

use std::{fs, path::Path};

#[expect(dead_code, reason = "the command reads every field")]
#[path = "../examples/classes/list.rs"]
mod list;

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    fs::read_to_string(root.join(path)).expect(path)
}

#[test]
fn the_page_is_the_lists() {
    let list = list::read(&text(list::LIST)).expect("a list");
    assert_eq!(text(list::PAGE), list::page(&list), "run `cargo classes --write`");
}

#[test]
fn enough_of_them_are_planned_and_each_refusal_has_a_reason() {
    let list = list::read(&text(list::LIST)).expect("a list");
    let (all, planned) = list::totals(&list);
    assert!(all >= 49 && planned * 49 >= all * 45, "{planned} of {all}");
    for one in list.iter().flat_map(|one| &one.classes) {
        assert_eq!(one.sha256.len(), 64, "{}", one.path);
        assert!(
            one.refused.is_none() || !one.why.is_empty(),
            "{} is refused without a reason",
            one.path
        );
    }
}
