//! Owns: where the functions of a file are, and which of them can become a choice between bodies.
//! Never: changes a text.

use std::ops::Range;

use syn::{
    ImplItemFn, ItemFn, ReturnType, Signature, TraitItemFn, TypeImplTrait,
    visit::{self, Visit},
};

/// A function with a body that is in no other function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    /// The part between its braces, in bytes.
    pub(super) body: Range<usize>,
    /// Why its body cannot be chosen when it runs.
    pub(super) obstacle: Option<&'static str>,
}

/// The functions of a file in their order.
pub(super) fn functions(text: &str) -> syn::Result<Vec<Function>> {
    let mut found = Found(Vec::new());
    found.visit_file(&syn::parse_file(text)?);
    Ok(found.0)
}

/// Functions within functions belong to the outer one: `visit_block` is never entered.
struct Found(Vec<Function>);

impl Found {
    fn add(&mut self, signature: &Signature, block: &syn::Block) {
        let span = block.brace_token.span;
        let body = span.open().byte_range().end..span.close().byte_range().start;
        let obstacle = obstacle(signature);
        self.0.push(Function { body, obstacle });
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.add(&function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.add(&function.sig, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
    }
}

fn obstacle(signature: &Signature) -> Option<&'static str> {
    if signature.constness.is_some() {
        return Some("a const fn cannot ask the environment");
    }
    let ReturnType::Type(_, returned) = &signature.output else {
        return None;
    };
    let mut opaque = Opaque(false);
    opaque.visit_type(returned);
    opaque
        .0
        .then_some("a function that returns `impl Trait` has one type, and copies of its body have several")
}

struct Opaque(bool);

impl<'ast> Visit<'ast> for Opaque {
    fn visit_type_impl_trait(&mut self, opaque: &'ast TypeImplTrait) {
        self.0 = true;
        visit::visit_type_impl_trait(self, opaque);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_every_kind_are_found_by_their_outermost_body() {
        let text = "//! ü\nconst fn a() -> u8 { 1 }\nimpl<T: Into<u8>> B<T> {\n    async fn b(self) { fn inner() {} }\n}\n\
                    trait C {\n    fn c();\n    fn d() -> impl Iterator<Item = u8> { [].into_iter() }\n}\nmod e { fn f() {} }\n";
        let found = functions(text).unwrap();
        let bodies: Vec<&str> = found.iter().map(|one| &text[one.body.clone()]).collect();
        assert_eq!(bodies, [" 1 ", " fn inner() {} ", " [].into_iter() ", ""]);
        let chosen: Vec<bool> = found.iter().map(|one| one.obstacle.is_none()).collect();
        assert_eq!(chosen, [false, true, false, true]);
        assert!(functions("fn broken( {").is_err());
    }
}
