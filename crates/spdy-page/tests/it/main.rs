//! Replicas: imports, archives and graphs.

mod builtins;
mod corpus;
mod dispatch_delay;
mod import;
mod inline_scripts;
mod laws;
mod layout;
mod load_event;
mod module_imports;
mod netlog;
mod repeated_references;
mod several_pages;
mod support;
mod video_ranges;
mod written_scripts;
