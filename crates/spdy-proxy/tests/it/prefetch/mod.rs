//! Requests, pushes and hints before a client requests a resource.

mod deep_resources;
mod learning;
mod planted_requests;
mod push_and_hints;
mod requests;
mod restricted_paths;
