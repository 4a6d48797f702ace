//! The protocols that clients speak. Each reads requests into the one kind of head, and writes the events of an answer.

pub mod http1;
