// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Counts what goes through another transport, for servers that cannot be asked what reached them.
final class CountingTransport: Transport {
    /// The numbers, shared with bodies that outlive their call.
    final class Counter: Sendable {
        private let traffic = Mutex(Traffic())

        /// What was counted so far.
        var value: Traffic { traffic.withLock { $0 } }

        /// Counts something.
        func count(_ change: (inout Traffic) -> Void) {
            traffic.withLock { change(&$0) }
        }
    }

    private let next: any Transport
    private let counter = Counter()

    /// A counter around `next`.
    init(_ next: any Transport) {
        self.next = next
    }

    /// What was counted so far; body bytes count as they are read.
    var traffic: Traffic { counter.value }

    var enforcesDeadline: Bool { next.enforcesDeadline }

    func implicitFields(for request: URLRequest) -> HeaderFields {
        next.implicitFields(for: request)
    }

    func implicitFields(for request: URLRequest, context: CallContext) -> HeaderFields {
        next.implicitFields(for: request, context: context)
    }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        counter.count { $0.sends += 1 }
        var response = try await next.send(request, body: body, context: context)
        if response.status == .notModified { counter.count { $0.notModified += 1 } }
        if let source = response.body.source {
            response.body = ResponseBody(CountedSource(source, counter), length: response.body.length)
        } else {
            counter.count { $0.bodyBytes += response.body.length ?? 0 }
        }
        return response
    }

    private struct CountedSource: ByteSource {
        private let next: any ByteSource
        private let counter: Counter

        init(_ next: any ByteSource, _ counter: Counter) {
            self.next = next
            self.counter = counter
        }

        func next() async throws -> ByteChunk? {
            let chunk = try await next.next()
            if let chunk { counter.count { $0.bodyBytes += chunk.count } }
            return chunk
        }

        func cancel() {
            next.cancel()
        }
    }
}
