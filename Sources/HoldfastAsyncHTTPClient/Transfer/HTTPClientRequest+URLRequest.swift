// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore
    internal import NIOHTTP1
    internal import Tracing

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    extension HTTPClientRequest {
        /// The head of a URLRequest.
        ///
        /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent` if it has no URL, an invalid port, no valid method,
        ///   or a field that would be read as another one.
        init(_ request: URLRequest) throws {
            guard let url = request.url else {
                throw ServiceError(.badRequest, "The request has no URL. Set one.", progress: .notSent)
            }
            guard let method = RequestMethod(validating: request.httpMethod ?? "GET") else {
                throw ServiceError(
                    .badRequest,
                    "The request's method is invalid (RFC 9110 §9.1). Use a token such as PATCH.",
                    progress: .notSent
                )
            }
            try request.checkHead()
            self.init(url: url.absoluteString)
            self.method = HTTPMethod(rawValue: method.rawValue)
            for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
                headers.add(name: name, value: value)
            }
        }
    }

    extension Duration {
        /// The same time for NIO, limited to what its deadlines allow.
        var timeAmount: TimeAmount {
            let century = Duration.seconds(100 * 365 * 86_400)
            let bounded = max(min(self, century), .zero)
            let (seconds, attoseconds) = bounded.components
            return .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        }
    }

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

    extension HTTPClient.Configuration {
        /// Removes the bootstrapped tracer, which every configuration has from the start: its spans would show the whole query,
        /// beside those of an observer of the pipeline.
        ///
        /// Whether the caller set a tracer is known only if it has another type; then it stays.
        mutating func removeDefaultTracer(_ bootstrapped: any Tracer = InstrumentationSystem.tracer) {
            guard let tracer = tracing.tracer, type(of: tracer) == type(of: bootstrapped) else { return }
            tracing.tracer = nil
        }
    }

    /// Notes the fields that a tracer writes.
    private struct NameCollector: Injector {
        func inject(_ value: String, forKey key: String, into carrier: inout [String]) {
            carrier.append(key)
        }
    }
#endif
