//! The process path.
