// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastStorage
private import Synchronization

/// Is called with the received share of a response: 0 when the call begins, then growing fractions below 1 if the length is
/// known, and finally 1 on success.
///
/// Called within the call, on whatever thread it runs, one at a time: return quickly. What is sent does not count, because
/// URLSession takes it as a whole.
public typealias EndpointProgress = @Sendable (_ fraction: Double) -> Void

/// Reports progress in order and never backward, however often the call is sent.
final class ProgressReport: Sendable {
    private let report: EndpointProgress?
    private let reached = Mutex(0.0)

    init(_ report: EndpointProgress?) {
        self.report = report
    }

    func begin() { report?(0) }

    func end() { report?(1) }

    /// The same body; reports what is read from it.
    func watching(_ body: ResponseBody) -> ResponseBody {
        guard report != nil, let source = body.source, let length = body.length, length > 0 else { return body }
        return ResponseBody(CountedBytes(source, length: length, report: self), length: length)
    }

    fileprivate func advance(to fraction: Double) {
        let isFurther = reached.withLock { reached in
            guard fraction > reached, fraction < 1 else { return false }
            reached = fraction
            return true
        }
        if isFurther { report?(fraction) }
    }
}

/// A source that reports how many of its bytes were read.
private final class CountedBytes: ByteSource {
    private let upstream: any ByteSource
    private let length: Int
    private let report: ProgressReport
    private let taken = Atomic(0)

    init(_ upstream: any ByteSource, length: Int, report: ProgressReport) {
        self.upstream = upstream
        self.length = length
        self.report = report
    }

    func next() async throws -> ByteChunk? {
        guard let chunk = try await upstream.next() else { return nil }
        let count = taken.wrappingAdd(chunk.count, ordering: .relaxed).newValue
        report.advance(to: Double(count) / Double(length))
        return chunk
    }

    func cancel() { upstream.cancel() }
}
