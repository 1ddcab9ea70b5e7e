//! Pages: references, scripts, text and pauses.

mod inline;
mod pauses;
mod references;
mod scripts;
mod text;
