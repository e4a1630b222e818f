// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    private import Dispatch
    internal import Foundation
    internal import Holdfast
    internal import HoldfastStorage
    private import Synchronization

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// The `httpBodyStream` of a request, read when it is asked for by a thread of its own: reading an `InputStream` blocks, and a stream
    /// belongs to one thread.
    final class StreamContent: ByteSource {
        private typealias Reader = CheckedContinuation<ByteChunk?, any Error>

        private enum State {
            case idle
            case waiting(Reader)
            case ended(Result<Void, any Error>)
        }

        /// What reader and thread share.
        private final class Meeting: Sendable {
            let wanted = DispatchSemaphore(value: 0)
            private let state = Mutex(State.idle)

            var isOver: Bool { state.withLock { if case .ended = $0 { true } else { false } } }

            func pull() async throws -> ByteChunk? {
                try await withCheckedThrowingContinuation { reader in
                    let end: Result<Void, any Error>? = state.withLock { state in
                        if case .ended(let end) = state { return end }
                        state = .waiting(reader)
                        return nil
                    }
                    if let end { reader.resume(with: end.map { nil }) } else { wanted.signal() }
                }
            }

            func deliver(_ chunk: ByteChunk) {
                let reader: Reader? = state.withLock { state in
                    guard case .waiting(let reader) = state else { return nil }
                    state = .idle
                    return reader
                }
                reader?.resume(returning: chunk)
            }

            func end(_ end: Result<Void, any Error>) {
                let reader: Reader? = state.withLock { state in
                    switch state {
                    case .ended: return nil
                    case .idle:
                        state = .ended(end)
                        return nil
                    case .waiting(let reader):
                        state = .ended(end)
                        return reader
                    }
                }
                reader?.resume(with: end.map { nil })
                wanted.signal()
            }
        }

        private let meeting = Meeting()

        /// - Parameter request: a request with a stream; nothing is read before the first call of ``next()``.
        init(_ request: URLRequest) {
            let meeting = meeting
            Thread.detachNewThread { StreamContent.feed(request, meeting) }
        }

        deinit { cancel() }

        func next() async throws -> ByteChunk? {
            try await withTaskCancellationHandler {
                try await meeting.pull()
            } onCancel: {
                cancel()
            }
        }

        func cancel() {
            meeting.end(.failure(CancellationError()))
        }

        private static func feed(_ request: URLRequest, _ meeting: Meeting) {
            meeting.wanted.wait()
            guard !meeting.isOver else { return }
            guard let stream = request.httpBodyStream else { return meeting.end(.success(())) }
            stream.open()
            defer { stream.close() }
            let capacity = 64 << 10
            while !meeting.isOver {
                var outcome = 0
                let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
                    guard let base = buffer.baseAddress else { return }
                    outcome = stream.read(base, maxLength: capacity)
                    count = max(outcome, 0)
                }
                // Foundation on Linux traps when a stream without an error is asked for it, and has none for some failures.
                guard outcome >= 0 else { return meeting.end(.failure(CocoaError(.fileReadUnknown))) }
                guard outcome > 0 else { return meeting.end(.success(())) }
                meeting.deliver(ByteChunk(bytes))
                meeting.wanted.wait()
            }
        }
    }
#endif
