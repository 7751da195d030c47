//! Operators' decisions about members, and about what these may do: tried first, carried out when confirmed.
//!
//! * `service.rs`: the gRPC service `Membership`. `request.rs`: what its requests say.
//! * `policy.rs`: the gRPC service `Policy`, which shows the policy of the clusterset and decides about it.
//! * `token.rs`: the gRPC service `JoinTokens`. `joining.rs`: the gRPC service `Joining`, on a port of its own.
//! * `by_hub.rs`: decisions that the hub takes itself.
//!
//! The fold says whether a decision is allowed and which facts it leads to; the writer takes it and describes it in one
//! call, so that the effects shown are those of the decision. It never changes the state itself.

mod by_hub;
mod joining;
mod policy;
mod request;
mod service;
mod token;

#[cfg(test)]
mod tests;

pub use by_hub::HubDecisions;
pub use joining::{JoinWish, JoiningService};
pub use policy::PolicyService;
pub use service::MembershipService;
pub use token::{Joinable, TokenService};
