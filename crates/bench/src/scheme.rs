//! A way to deploy an application: a file of `bench/schemes`.
