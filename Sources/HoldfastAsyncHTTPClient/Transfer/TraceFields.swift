// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import NIOHTTP1
    internal import Tracing

    extension HTTPClientRequest {
        /// Removes the fields that the client's own tracing writes.
        ///
        /// The client adds them to existing ones, such as those of an observer of the pipeline, and a request with two lines of
        /// `traceparent` belongs to no trace (W3C Trace Context §3.2). The client's span is a child of the observer's.
        mutating func removeTraceFields(of client: HTTPClient) {
            guard let tracer = client.tracer, let context = ServiceContext.current else { return }
            var names: [String] = []
            tracer.inject(context, into: &names, using: NameCollector())
            for name in names { headers.remove(name: name) }
        }
    }

    /// Notes the fields that a tracer writes.
    private struct NameCollector: Injector {
        func inject(_ value: String, forKey key: String, into carrier: inout [String]) {
            carrier.append(key)
        }
    }
#endif
