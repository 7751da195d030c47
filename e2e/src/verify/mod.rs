//! Comparisons of the product with upstream's programs.
//!
//! * `topology`: our plans beside upstream's manager. `templates`: our templates beside Go's engine.

pub mod templates;
pub mod topology;
