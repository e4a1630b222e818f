// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
internal import HoldfastStorage
private import Synchronization

/// Is told how much of a response has come: 0 when the call begins, then growing fractions below 1 where the length is known, and
/// 1 as the last on success.
///
/// Called within the call, from whatever thread it runs on, one call at a time: be quick. What is sent is not counted, since
/// URLSession takes it whole.
public typealias EndpointProgress = @Sendable (_ fraction: Double) -> Void

/// Tells of progress, in order and never backward, however often the call is sent.
final class ProgressReport: Sendable {
    private let report: EndpointProgress?
    private let reached = Mutex(0.0)

    init(_ report: EndpointProgress?) {
        self.report = report
    }

    func begin() { report?(0) }

    func end() { report?(1) }

    /// The same body, telling of what is taken from it.
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

/// A source that tells how much of its bytes was taken.
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
