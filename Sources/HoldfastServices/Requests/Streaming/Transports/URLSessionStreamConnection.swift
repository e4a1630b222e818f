// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// An open WebSocket task.
struct URLSessionStreamConnection: StreamConnection {
    private let task: URLSessionWebSocketTask

    init(_ task: URLSessionWebSocketTask) {
        self.task = task
    }

    func send(_ message: StreamMessage) async throws {
        let sent: URLSessionWebSocketTask.Message =
            switch message {
            case .text(let text): .string(text)
            case .binary(let data): .data(data)
            }
        try await translating { try await task.send(sent) }
    }

    func receive() async throws -> StreamMessage {
        switch try await translating({ try await task.receive() }) {
        case .string(let text): return .text(text)
        case .data(let data): return .binary(data)
        @unknown default: throw StreamClosedError(.unsupportedData, isByPeer: false)
        }
    }

    func ping() async throws {
        try await translating {
            try await withCheckedThrowingContinuation { continuation in
                let waiting = OnceContinuation(continuation)
                task.sendPing { waiting.resume($0) }
            }
        }
    }

    func close(code: StreamCloseCode, reason: String?) {
        let told = URLSessionWebSocketTask.CloseCode(rawValue: Int(code.rawValue)) ?? .normalClosure
        task.cancel(with: told, reason: reason.map { Data($0.utf8) })
    }

    /// URLSession's calls know nothing of a task's cancellation, so that closes the stream.
    private func translating<Success: Sendable>(
        _ operation: @Sendable () async throws -> Success
    ) async throws -> Success {
        do {
            return try await withTaskCancellationHandler(operation: operation) {
                task.cancel(with: .goingAway, reason: nil)
            }
        } catch {
            if Task.isCancelled { throw CancellationError() }
            throw StreamTaskFailure.whileOpen(error, task: task)
        }
    }
}

/// Resumes once, however often the platform answers a ping.
private final class OnceContinuation: Sendable {
    private let continuation: Mutex<CheckedContinuation<Void, any Error>?>

    init(_ continuation: CheckedContinuation<Void, any Error>) {
        self.continuation = Mutex(continuation)
    }

    func resume(_ error: (any Error)?) {
        let continuation = continuation.withLock { $0.take() }
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
}
