// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
private import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Tells when a WebSocket task is open, or that it will never be.
final class StreamTaskWatch: NSObject, URLSessionWebSocketDelegate {
    private enum Phase {
        case idle
        case waiting(CheckedContinuation<Void, any Error>)
        case settled(Result<Void, any Error>)
    }

    private let phase = Mutex(Phase.idle)

    /// Starts the task and returns when it is open.
    func opened(_ task: URLSessionWebSocketTask) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let settled: Result<Void, any Error>? = phase.withLock { phase in
                    if case .settled(let result) = phase { return result }
                    phase = .waiting(continuation)
                    return nil
                }
                if let settled { return continuation.resume(with: settled) }
                task.resume()
            }
        } onCancel: {
            settle(.failure(CancellationError()))
        }
    }

    func urlSession(
        _ session: URLSession,
        webSocketTask: URLSessionWebSocketTask,
        didOpenWithProtocol protocol: String?
    ) {
        settle(.success(()))
    }

    func urlSession(
        _ session: URLSession,
        webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        settle(.failure(StreamClosedError(StreamCloseCode(rawValue: UInt16(clamping: closeCode.rawValue)))))
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // URLSession would take the request's fields, credentials among them, wherever it is led.
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        settle(.failure(error ?? StreamClosedError(.abnormalClosure)))
    }

    private func settle(_ result: Result<Void, any Error>) {
        let continuation: CheckedContinuation<Void, any Error>? = phase.withLock { phase in
            switch phase {
            case .idle:
                phase = .settled(result)
                return nil
            case .waiting(let continuation):
                phase = .settled(result)
                return continuation
            case .settled:
                return nil
            }
        }
        continuation?.resume(with: result)
    }
}
