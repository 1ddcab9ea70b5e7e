//! Vectors and builders for tests.
