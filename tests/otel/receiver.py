"""A receiver of OTLP traces made of other people's code: grpcio's server, OpenTelemetry's messages, and the names of its
semantic conventions.

It listens on the unix socket that is its argument, prints `0` once it does, and then one line of JSON for each span that
arrives: what the span has, and what of it the conventions do not know. It ends with its standard input.
"""

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes

NAMES = {
    value
    for module in (gen_ai_attributes, error_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}
VALUES = {
    "gen_ai.operation.name": {value.value for value in gen_ai_attributes.GenAiOperationNameValues},
    "gen_ai.provider.name": {value.value for value in gen_ai_attributes.GenAiProviderNameValues},
}


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def strange(attributes):
    """What stands under the conventions' prefixes and is not in them."""
    found = []
    for name, value in attributes.items():
        if not name.startswith(("gen_ai.", "error.")):
            continue
        if name not in NAMES:
            found.append(name)
        elif name in VALUES and value not in VALUES[name]:
            found.append(f"{name}={value}")
    return found


def described(span):
    attributes = {attribute.key: value_of(attribute.value) for attribute in span.attributes}
    return {
        "name": span.name,
        "kind": trace_pb2.Span.SpanKind.Name(span.kind),
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "is_error": span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        "attributes": attributes,
        "strange": strange(attributes),
    }


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    lock = threading.Lock()

    def Export(self, request, context):
        with self.lock:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        print(json.dumps(described(span)), flush=True)
        return trace_service_pb2.ExportTraceServiceResponse()


def main():
    socket = sys.argv[1]
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Receiver(), server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    # The supervisor may run as another user.
    os.chmod(socket, 0o666)
    print(0, flush=True)
    sys.stdin.read()
    server.stop(None)


main()
