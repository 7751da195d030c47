//! The importing cluster's own rules, against a hub that sends what it likes.

use super::*;
use crate::plan::{ImportRules, Touched};

fn http() -> ServicePort {
    port("http", 80)
}

fn in_namespace(namespace: &str, name: &str) -> DesiredChange {
    DesiredChange::Import(Arc::new(ServiceImport {
        service: ServiceKey::new(namespace, name).unwrap(),
        ..import(&[http()], &["east"])
    }))
}

fn takes_only(patterns: &[&str], imports_max: usize) -> Desired {
    let mut desired = Desired::default();
    desired.keep_to(ImportRules {
        namespaces: Some(patterns.iter().map(|pattern| pattern.parse().unwrap()).collect()),
        imports_max,
        ..ImportRules::default()
    });
    desired.interest(&interest(1, &["shop", "shop-eu", "kube-system"]));
    desired
}

#[test]
fn nothing_is_taken_for_namespaces_of_kubernetes_or_for_those_that_are_not_listed() {
    let mut desired = takes_only(&["shop", "kube-*"], 10);
    let items = vec![
        in_namespace("shop", "cart"),
        in_namespace("shop-eu", "cart"),
        in_namespace("kube-system", "dns"),
        in_namespace("kube-system", "metrics"),
    ];
    snapshot(&mut desired, 1, &[source("east", true)], items);
    let held: Vec<String> = desired.services().iter().map(ToString::to_string).collect();
    assert_eq!(held, ["shop/cart"]);
    let news = desired.take_news();
    assert_eq!(
        (news.turned_away, news.complaints.len()),
        (3, 2),
        "{:?}",
        news.complaints
    );
    assert_eq!(
        desired.items(1, [item(6, in_namespace("kube-system", "dns"))]),
        Touched::none()
    );
    let again = desired.take_news();
    assert_eq!(
        (again.turned_away, again.complaints.len()),
        (1, 0),
        "it is said once"
    );
}

/// Objects from before the rule, or from an older agent, are deleted: the cluster decides that itself.
#[test]
fn what_stands_in_a_namespace_that_is_not_taken_goes() {
    let east = source("east", true);
    let items = || vec![DesiredChange::Import(Arc::new(import(&[http()], &["east"])))];
    let mut model = Model::settled(&told(std::slice::from_ref(&east), items()));
    assert!(model.view.import.ours().is_some());
    let mut desired = takes_only(&["other"], 10);
    snapshot(&mut desired, 1, &[east], items());
    model.settle(&desired);
    assert!(model.view.import.ours().is_none() && model.view.derived.ours().is_none());
}

/// An import that carries another controller's key is that controller's to delete.
#[test]
fn imports_carry_no_keys_by_which_other_controllers_act_and_those_that_are_listed() {
    let keys = [
        "team",
        "example.com/team",
        "argocd.argoproj.io/tracking-id",
        "Meta.Helm.sh/release-name",
        "istio.io/rev",
        "notistio.io/rev",
    ];
    let metadata: Metadata = keys.iter().map(|key| ((*key).into(), "x".into())).collect();
    let carried = |patterns: Option<&[&str]>| {
        let sent = ServiceImport {
            labels: metadata.clone(),
            annotations: metadata.clone(),
            ..import(&[http()], &["east"])
        };
        let items = vec![DesiredChange::Import(Arc::new(sent))];
        let mut desired = told(&[source("east", true)], items);
        let parsed = |patterns: &[&str]| patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
        desired.keep_to(ImportRules {
            metadata: patterns.map(parsed),
            ..ImportRules::default()
        });
        let model = Model::settled(&desired);
        let content = &model.view.import.ours().unwrap().content.content;
        assert_eq!(content.labels, content.annotations);
        let derived = &model.view.derived.ours().unwrap().content.content;
        assert_eq!(
            (&derived.labels, &derived.annotations),
            (&content.labels, &content.annotations)
        );
        let carried: Vec<String> = content.labels.keys().map(ToString::to_string).collect();
        carried
    };
    assert_eq!(carried(None), ["example.com/team", "notistio.io/rev", "team"]);
    assert_eq!(
        carried(Some(&["argocd.argoproj.io", "*.com"])),
        ["argocd.argoproj.io/tracking-id", "example.com/team", "team"]
    );
}

/// Policies of a cluster may demand a label of everything that is made there.
#[test]
fn every_object_has_the_labels_that_this_cluster_demands() {
    let sent = ServiceImport {
        labels: Metadata::from([("team".into(), "theirs".into()), ("tier".into(), "web".into())]),
        ..import(&[http()], &["east"])
    };
    let items = vec![
        DesiredChange::Import(Arc::new(sent)),
        DesiredChange::Slice(Arc::new(slice("east", "one", "10.0.0.1"))),
    ];
    let mut desired = told(&[source("east", true)], items);
    let mut model = Model::settled(&desired);
    for team in ["payments", "shop"] {
        desired.keep_to(ImportRules {
            object_labels: Metadata::from([("team".into(), team.into())]),
            ..ImportRules::default()
        });
        model.settle(&desired);
        let import = &model.view.import.ours().unwrap().content.content.labels;
        let derived = &model.view.derived.ours().unwrap().content.content.labels;
        let (_, slice) = model.view.our_slices().next().unwrap();
        for labels in [import, derived, &slice.content.labels] {
            assert_eq!(labels.get("team").map(|value| &**value), Some(team));
        }
        assert_eq!(import.get("tier").map(|value| &**value), Some("web"));
        assert_eq!(slice.content.labels.len(), 1, "exported labels are the import's");
    }
}

#[test]
fn endpoints_with_special_addresses_are_left_out_whatever_the_hub_sends() {
    let endpoints = ["10.0.0.1", "169.254.169.254", "100.100.100.200"];
    let sent = ImportedSlice {
        endpoints: endpoints.iter().map(|address| endpoint(address)).collect(),
        ..slice("east", "one", "10.0.0.1")
    };
    let items = vec![
        DesiredChange::Import(Arc::new(import(&[http()], &["east"]))),
        DesiredChange::Slice(Arc::new(sent)),
    ];
    let mut desired = told(&[source("east", true)], items);
    let model = Model::settled(&desired);
    let written: Vec<String> = model
        .view
        .our_slices()
        .flat_map(|(_, slice)| slice.content.endpoints.iter())
        .map(|one| one.endpoint.addresses[0].to_string())
        .collect();
    assert_eq!(written, ["10.0.0.1"]);
    let news = desired.take_news();
    assert_eq!(news.turned_away, 1);
    assert!(
        news.complaints[0].contains("endpoints of east"),
        "{:?}",
        news.complaints
    );
}

/// The hub chooses which imports are too many, so none that exists counts as removed because of it.
#[test]
fn imports_beyond_the_bound_are_not_taken_and_cost_nothing_that_stands() {
    let sources = [source("east", true)];
    let stands = DesiredChange::Import(Arc::new(import(&[http()], &["east"])));
    let mut model = Model::settled(&told(&sources, vec![stands.clone()]));
    let mut desired = takes_only(&["shop"], 2);
    let flood = ["a", "b", "c"].map(|name| in_namespace("shop", name));
    snapshot(&mut desired, 1, &sources, [flood.to_vec(), vec![stands]].concat());
    assert_eq!(desired.services().len(), 2);
    assert_eq!(
        desired.cursor(),
        None,
        "who resumed there would never hear of the others"
    );
    assert_eq!(desired.take_news().turned_away, 2);
    model.settle(&desired);
    assert!(model.done.is_empty(), "{:?}", words(&model.done));
    // Held objects still change.
    let changed = item(7, in_namespace("shop", "a"));
    assert_ne!(desired.items(1, [changed]), Touched::none());
    // A session that tells less is believed again.
    snapshot(&mut desired, 2, &sources, vec![in_namespace("shop", "a")]);
    assert!(desired.cursor().is_some());
    model.settle(&desired);
    assert!(model.view.import.ours().is_none(), "it is not exported any more");
}

/// The bound is this cluster's own: a hub may be another program than the one that bounds what members state.
#[test]
fn labels_and_annotations_that_no_export_can_have_are_left_out() {
    let mut import = import(&[http()], &["east"]);
    let large = "x".repeat(30_000);
    for key in ["a", "b", "c"] {
        import.annotations.insert(key.into(), large.as_str().into());
    }
    import
        .labels
        .insert("kubernetes.io/hostname".into(), "forged".into());
    import.labels.insert("tier".into(), "not a value!".into());
    import.labels.insert("team".into(), "shop".into());
    let mut desired = Desired::default();
    desired.interest(&interest(1, &["shop"]));
    snapshot(
        &mut desired,
        1,
        &[source("east", true)],
        vec![DesiredChange::Import(Arc::new(import))],
    );
    let model = Model::settled(&desired);
    let content = &model.import().content;
    let keys = |metadata: &Metadata| metadata.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(keys(&content.labels), ["team"]);
    assert_eq!(keys(&content.annotations), ["a"], "32 KiB together");
    let complaints = desired.take_news().complaints;
    assert!(
        complaints.iter().any(|told| told.contains("shop/cart")),
        "{complaints:?}"
    );
}
