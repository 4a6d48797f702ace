//! For developers: the secret by which their browsers are known (`developer_key`), and the page that these show of a failed boot
//! (`diagnosis_page`).

pub(crate) mod developer_key;
pub(crate) mod diagnosis_page;
