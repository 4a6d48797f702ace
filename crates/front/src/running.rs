//! The requests of an application that wait or are with a worker, as operators see them. They are listed when an operator
//! asks; nothing is kept for that while requests come and go.

use std::time::Duration;

use highball_link::{RequestStage, RunningRequest};
use highball_ring::request::{Fixed, FIXED_BYTES};
use highball_secrets::path_without_tokens;

use crate::refusals::failure::fields;

/// The longest path that is reported, in characters.
const PATH_CHARACTERS: usize = 300;
/// The same for other texts of a client.
const WORD_CHARACTERS: usize = 64;

/// The request of a head block, at this time ([`crate::clock::now_us`]).
pub(crate) fn running_request(
    block: &[u8],
    now_us: u64,
    stage: RequestStage,
    at: Option<(u32, u64)>,
    answer_bytes: u64,
) -> RunningRequest {
    let fixed = block.first_chunk::<FIXED_BYTES>().map(Fixed::decode);
    let [mut method, mut prefix, mut path, mut client] = [const { String::new() }; 4];
    let mut has_query = false;
    for (name, value) in fields(block) {
        let text = |most| cut(&String::from_utf8_lossy(value), most);
        match name {
            "REQUEST_METHOD" => method = text(WORD_CHARACTERS),
            "SCRIPT_NAME" => prefix = text(PATH_CHARACTERS),
            "PATH_INFO" => path = text(PATH_CHARACTERS),
            "REMOTE_ADDR" => client = text(WORD_CHARACTERS),
            "QUERY_STRING" => has_query = !value.is_empty(),
            _ => {}
        }
    }
    let path = cut(&path_without_tokens(&format!("{prefix}{path}")), PATH_CHARACTERS);
    RunningRequest {
        stage,
        at,
        method,
        path: path + if has_query { "?…" } else { "" },
        client,
        age: Duration::from_micros(
            now_us.saturating_sub(fixed.as_ref().map_or(0, |fixed| fixed.received_us)),
        ),
        body_bytes: fixed.map_or(0, |fixed| fixed.body_bytes),
        answer_bytes,
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 2), "äö…");
    }

    #[test]
    fn a_block_that_is_none_is_a_request_without_a_name() {
        let request = running_request(b"", 0, RequestStage::Queued, None, 0);
        assert_eq!((request.method.as_str(), request.path.as_str()), ("", ""));
    }
}
