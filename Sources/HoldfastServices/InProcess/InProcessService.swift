// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A service in this process that answers requests as a server would.
///
/// Many tasks call it at once, in any order: keep state behind a lock.
public protocol InProcessService: Sendable {
    /// The name that the router finds the service by: the first path component of `http://pmapi/<identifier>/…`.
    /// Case-sensitive.
    var serviceIdentifier: String { get }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: the request that was sent.
    ///   - body: its content.
    /// - Throws: any error, as a transport would: a `ServiceError` with a progress simulates a connection that broke at that
    ///   point.
    func respond(to request: URLRequest, body: RequestBody) async throws -> Response

    /// Called after the service was registered with a router; does nothing by default.
    func registered()

    /// Called after the service was unregistered from a router; does nothing by default. Calls may still be in progress.
    func unregistered()
}

extension InProcessService {
    public func registered() {}
    public func unregistered() {}
}

/// A service made from a closure.
public struct AnyInProcessService: InProcessService {
    public let serviceIdentifier: String
    private let answer: @Sendable (URLRequest, RequestBody) async throws -> Response

    /// Creates a service that calls `answer` for each response.
    public init(
        _ serviceIdentifier: String,
        answer: @escaping @Sendable (URLRequest, RequestBody) async throws -> Response
    ) {
        self.serviceIdentifier = serviceIdentifier
        self.answer = answer
    }

    public func respond(to request: URLRequest, body: RequestBody) async throws -> Response {
        try await answer(request, body)
    }
}

extension ResponseBody {
    /// A body that is written while it is read: how an ``InProcessService`` streams.
    ///
    /// - Parameters:
    ///   - length: in bytes, if known.
    ///   - write: starts with the first read, in its own task, which is cancelled when the body is released. When it returns,
    ///     the body ends; if it throws, the body fails with that error.
    public init(length: Int? = nil, writing write: @escaping @Sendable (_ writer: BodyWriter) async throws -> Void) {
        self.init(WrittenBody(write), length: length)
    }
}

/// Writes a body no faster than it is read.
public struct BodyWriter: Sendable {
    fileprivate let pipe: BodyPipe

    /// Writes bytes; waits while one chunk is unread.
    ///
    /// - Throws: `CancellationError` if the body was released or has ended, or if the task is cancelled, which also ends the
    ///   body.
    public func write(_ bytes: ByteChunk) async throws {
        try Task.checkCancellation()
        guard !bytes.isEmpty else { return }
        try await pipe.write(bytes)
    }

    /// Writes bytes, like ``write(_:)-(ByteChunk)``.
    public func write(_ data: Data) async throws { try await write(ByteChunk(copying: data)) }

    /// Writes text in UTF-8, like ``write(_:)-(ByteChunk)``.
    public func write(_ text: String) async throws { try await write(ByteChunk(copying: text.utf8)) }
}

/// The reader's end.
private final class WrittenBody: ByteSource {
    private enum Work {
        case due(@Sendable (BodyWriter) async throws -> Void)
        case begun(Task<Void, Never>)
        case cancelled
    }

    private let pipe = BodyPipe()
    private let work: Mutex<Work>

    init(_ write: @escaping @Sendable (BodyWriter) async throws -> Void) { work = Mutex(.due(write)) }

    func next() async throws -> ByteChunk? {
        work.withLock { [pipe] work in
            guard case .due(let write) = work else { return }
            work = .begun(
                Task {
                    do {
                        try await write(BodyWriter(pipe: pipe))
                        pipe.end(.success(nil))
                    } catch {
                        pipe.end(.failure(error))
                    }
                }
            )
        }
        return try await pipe.read()
    }

    func cancel() {
        let task: Task<Void, Never>? = work.withLock { work in
            defer { work = .cancelled }
            if case .begun(let task) = work { return task } else { return nil }
        }
        task?.cancel()
        pipe.cancel()
    }

    deinit { cancel() }
}

/// One chunk between a writer and a reader.
private final class BodyPipe: Sendable {
    private typealias End = Result<ByteChunk?, any Error>
    private typealias Reader = CheckedContinuation<ByteChunk?, any Error>
    private typealias Writer = CheckedContinuation<Void, any Error>

    private struct State {
        var chunk: ByteChunk?
        var reader: Reader?
        var writers: [(ByteChunk, Writer)] = []
        var end: End?
    }

    private let state = Mutex(State())

    func write(_ chunk: ByteChunk) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { writer in
                let (reader, isWritten): (Reader?, Bool?) = state.withLock { state in
                    guard state.end == nil else { return (nil, false) }
                    if let reader = state.reader {
                        state.reader = nil
                        return (reader, true)
                    }
                    guard state.chunk != nil else {
                        state.chunk = chunk
                        return (nil, true)
                    }
                    state.writers.append((chunk, writer))
                    return (nil, nil)
                }
                reader?.resume(returning: chunk)
                switch isWritten {
                case true?: writer.resume()
                case false?: writer.resume(throwing: CancellationError())
                case nil: break
                }
            }
        } onCancel: {
            cancel()
        }
    }

    func read() async throws -> ByteChunk? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                let (writer, result): (Writer?, End?) = state.withLock { state in
                    if let chunk = state.chunk {
                        state.chunk = nil
                        guard !state.writers.isEmpty else { return (nil, .success(chunk)) }
                        let (following, writer) = state.writers.removeFirst()
                        state.chunk = following
                        return (writer, .success(chunk))
                    }
                    if let end = state.end { return (nil, end) }
                    guard state.reader == nil else { return (nil, .failure(ServiceError.secondReader)) }
                    state.reader = reader
                    return (nil, nil)
                }
                writer?.resume()
                if let result { reader.resume(with: result) }
            }
        } onCancel: {
            cancel()
        }
    }

    /// What was written before can still be read.
    func end(_ end: Result<ByteChunk?, any Error>) {
        let reader: Reader? = state.withLock { state in
            guard state.end == nil else { return nil }
            state.end = end
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(with: end)
    }

    func cancel() {
        let (reader, writers): (Reader?, [(ByteChunk, Writer)]) = state.withLock { state in
            let waiting = (state.reader, state.writers)
            if state.end == nil || state.chunk != nil { state.end = .failure(CancellationError()) }
            state.chunk = nil
            state.reader = nil
            state.writers = []
            return waiting
        }
        reader?.resume(throwing: CancellationError())
        for (_, writer) in writers { writer.resume(throwing: CancellationError()) }
    }
}
