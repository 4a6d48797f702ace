"""Reads requests to a collector of traces by the official schema: Base64 on lines of the input, JSON on lines of the output."""

import base64
import json
import sys

from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def check(message):
    """Every field is one of the schema."""
    if len(UnknownFieldSet(message)):
        raise ValueError(f"unknown fields in {type(message).__name__}")
    for descriptor, value in message.ListFields():
        if descriptor.message_type:
            values = [value] if hasattr(value, "ListFields") else value
            for inner in values:
                check(inner)


for line in sys.stdin:
    request = ExportTraceServiceRequest()
    request.ParseFromString(base64.b64decode(line))
    check(request)
    print(json.dumps(MessageToDict(request)))
