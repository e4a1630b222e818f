// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastStorage
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Bytes that are pulled one chunk at a time by one reader.
///
/// The reader sets the pace. Dropping a source without reading it to its end must release what feeds it, as ``cancel()`` does.
public protocol ByteSource: Sendable {
    /// The next bytes, never an empty chunk; nil at the end, and from then on.
    ///
    /// Called by one task at a time. Cancelling that task throws `CancellationError` promptly.
    func next() async throws -> ByteChunk?

    /// Ends the source; a waiting or later ``next()`` throws `CancellationError`. Synchronous and idempotent.
    func cancel()
}

/// The content of a response: bytes in memory, or a stream that can be read once.
///
/// An `AsyncSequence` of chunks. Bytes in memory can be iterated any number of times; a stream belongs to its first iterator,
/// and a second one continues where the first left off. Let one task read it: of two whose calls of `next()` overlap, the second
/// gets an error from the library's own streams; tasks that take turns share the bytes. A body that is dropped unread ends its
/// transfer.
public struct ResponseBody: Sendable, AsyncSequence {
    private enum Form: Sendable {
        case bytes(ByteChunk)
        case stream(any ByteSource, length: Int?)
    }

    private let form: Form
    /// The call that its errors name; nil if no pipeline has returned it.
    var call: BodyCall?

    /// A body of bytes in memory.
    public init(_ bytes: ByteChunk = ByteChunk()) { form = .bytes(bytes) }

    /// A body of bytes in memory, for a call.
    init(_ bytes: ByteChunk, call: BodyCall) {
        form = .bytes(bytes)
        self.call = call
    }

    /// A body that is read from a source; `length` in bytes if known.
    public init(_ source: any ByteSource, length: Int? = nil) { form = .stream(source, length: length) }

    /// The length in bytes, if known before the body is read.
    public var length: Int? {
        switch form {
        case .bytes(let bytes): bytes.count
        case .stream(_, let length): length
        }
    }

    /// The bytes, if they are already in memory.
    public var bytesInMemory: ByteChunk? {
        if case .bytes(let bytes) = form { bytes } else { nil }
    }

    /// The source, if the body is a stream.
    public var source: (any ByteSource)? {
        if case .stream(let source, _) = form { source } else { nil }
    }

    /// Reads the body to its end into one chunk.
    ///
    /// - Parameter limit: the most bytes to read; a longer body is cancelled.
    /// - Throws: ``ServiceError`` `.bodyTooLarge`, `CancellationError`, or the error that ended the transfer.
    public func collect(upTo limit: Int = .max) async throws -> ByteChunk {
        do {
            return try await collected(upTo: limit)
        } catch {
            throw error.telling(of: call)
        }
    }

    private func collected(upTo limit: Int) async throws -> ByteChunk {
        switch form {
        case .bytes(let bytes):
            guard bytes.count <= limit else { throw ResponseBody.tooLarge(limit) }
            return bytes
        case .stream(let source, let length):
            if let length, length > limit {
                source.cancel()
                throw ResponseBody.tooLarge(limit)
            }
            guard let first = try await source.next() else { return ByteChunk() }
            guard first.count <= limit else {
                source.cancel()
                throw ResponseBody.tooLarge(limit)
            }
            guard let second = try await source.next() else { return first }
            var all = first.array
            all.reserveCapacity(Swift.min(length ?? (first.count + second.count), 16 << 20))
            var chunk = second
            while true {
                guard chunk.count <= limit - all.count else {
                    source.cancel()
                    throw ResponseBody.tooLarge(limit)
                }
                chunk.append(to: &all)
                guard let following = try await source.next() else { return ByteChunk(all) }
                chunk = following
            }
        }
    }

    /// Reads the body to its end into Foundation's `Data`; otherwise like ``collect(upTo:)``.
    public func data(upTo limit: Int = .max) async throws -> Data {
        let bytes = try await collect(upTo: limit)
        return bytes.withUnsafeBytes { Data($0) }
    }

    /// Drops the body and ends its transfer.
    public func discard() {
        source?.cancel()
    }

    public func makeAsyncIterator() -> Iterator {
        switch form {
        case .bytes(let bytes): Iterator(rest: bytes.isEmpty ? nil : bytes, source: nil, call: nil)
        case .stream(let source, _): Iterator(rest: nil, source: source, call: call)
        }
    }

    /// Returns the chunks of one body.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var rest: ByteChunk?
        fileprivate let source: (any ByteSource)?
        fileprivate let call: BodyCall?

        public mutating func next() async throws -> ByteChunk? {
            if let source {
                do {
                    return try await source.next()
                } catch {
                    throw error.telling(of: call)
                }
            }
            defer { rest = nil }
            return rest
        }
    }

    private static func tooLarge(_ limit: Int) -> ServiceError {
        ServiceError(
            .bodyTooLarge,
            "The response body is longer than the limit of \(limit) bytes; raise the limit or read the body as a stream."
        )
    }
}

/// Refuses a read of a body while another one is under way.
package struct OneReader: ~Copyable, Sendable {
    private let isReading = Atomic(false)

    package init() {}

    package func begin() throws {
        guard !isReading.exchange(true, ordering: .acquiring) else { throw ServiceError.secondReader }
    }

    package func end() { isReading.store(false, ordering: .releasing) }
}

extension ServiceError {
    /// The error of the second of two tasks that read one body at the same time.
    package static var secondReader: ServiceError {
        ServiceError(
            .badRequest,
            "This body is being read by another task; a body has one reader at a time. Let one task read it, or collect "
                + "it first."
        )
    }
}

/// The call that a body belongs to, for the errors of its readers.
struct BodyCall: Sendable {
    /// The request as the caller passed it to the pipeline.
    let request: URLRequest
    /// The attempts that brought the response.
    var attempts: [AttemptRecord] = []
}

extension Error {
    /// The error of a body with the call that it belongs to and the attempts of that call, as far as it lacks them.
    func telling(of call: BodyCall?) -> any Error {
        guard let call, var error = self as? ServiceError else { return self }
        if error.subject == nil { error.subject = CallSubject(call.request) }
        if error.attempts.isEmpty { error.attempts = call.attempts }
        return error
    }
}
