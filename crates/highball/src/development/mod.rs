//! For developers: the secret by which their browsers are known (`developer_key`), and the page that these show of a failed boot
//! or request (`diagnosis_page`), with its source (`source`, coloured by `ruby_tokens`), its backtraces (`calls`), and links
//! that open an editor (`editor`).

mod calls;
pub(crate) mod developer_key;
pub(crate) mod diagnosis_page;
mod editor;
mod ruby_tokens;
mod source;
