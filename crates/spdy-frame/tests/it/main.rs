//! Tests of the codec, a file for each theme; one program, so that it links once.

mod compression;
mod crime;
mod decoder;
mod encoder;
mod header_block;
mod inflater;
mod laws;
mod support;
mod transcripts;
mod vectors;
mod zlib_streams;
