//! The golden vectors, which Go's own engine made; what the limits keep; and random templates.

mod bounds;
mod fuzz;
mod golden;
mod room;
mod times;
