//! What a collector gets: spans, with what they have in common.

use crate::protobuf::Message;

/// The version of the semantic conventions that names of attributes follow.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.26.0";

/// Returns an `ExportTraceServiceRequest` for encoded spans. `resource` describes the program that made them, by texts.
pub fn export_request(resource: &[(String, String)], version: &str, spans: &[u8]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |message| {
            for (key, value) in resource {
                message.message(1, |attribute| {
                    attribute.bytes(1, key.as_bytes());
                    attribute.message(2, |any| any.bytes(1, value.as_bytes()));
                });
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, b"highball");
                scope.bytes(2, version.as_bytes());
            });
            scope_spans.fields(spans);
            scope_spans.bytes(3, SCHEMA.as_bytes());
        });
        resource_spans.bytes(3, SCHEMA.as_bytes());
    });
    request.into_bytes()
}
