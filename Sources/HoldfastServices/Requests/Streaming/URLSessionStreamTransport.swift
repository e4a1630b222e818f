// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
private import Synchronization

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

/// Opens streams with URLSession's WebSocket tasks.
///
/// They work on Apple systems. FoundationNetworking on Linux can be built without them, as in the toolchain for Debian 12: then
/// each stream fails with `.unsupported` before anything is sent (`docs/services/streams.md`). Cookies and header fields of the
/// configuration are sent with the opening handshake.
public struct URLSessionStreamTransport: StreamTransport {
    private let configuration: URLSessionConfiguration

    /// A transport that makes a session for each stream.
    public init(configuration: URLSessionConfiguration = .ephemeral) { self.configuration = configuration }

    public func open(_ request: URLRequest, limits: StreamLimits) async throws -> any StreamConnection {
        try Task.checkCancellation()
        let watch = StreamTaskWatch()
        let session = URLSession(configuration: configuration, delegate: watch, delegateQueue: nil)
        let task = session.webSocketTask(with: request)
        task.maximumMessageSize = limits.messageSize
        session.finishTasksAndInvalidate()
        do {
            try await watch.opened(task)
        } catch {
            task.cancel()
            throw StreamTaskFailure.whileOpening(error, task: task)
        }
        return URLSessionStreamConnection(task: task)
    }
}

/// An open WebSocket task.
struct URLSessionStreamConnection: StreamConnection {
    let task: URLSessionWebSocketTask

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

    init(_ continuation: CheckedContinuation<Void, any Error>) { self.continuation = Mutex(continuation) }

    func resume(_ error: (any Error)?) {
        let continuation = continuation.withLock { $0.take() }
        if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
}

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
            if case .settled = phase { return nil }
            defer { phase = .settled(result) }
            if case .waiting(let continuation) = phase { return continuation } else { return nil }
        }
        continuation?.resume(with: result)
    }
}

/// What the errors of WebSocket tasks mean.
enum StreamTaskFailure {
    /// The error of a stream that did not open.
    static func whileOpening(_ error: any Error, task: URLSessionWebSocketTask) -> any Error {
        if error is CancellationError { return error }
        if let response = task.response as? HTTPURLResponse, response.statusCode != 101 {
            return ServiceError(
                .unacceptableStatus,
                "The server answered with status \(response.statusCode) in place of opening a stream (101); check the request's "
                    + "URL, and its credential.",
                cause: error,
                progress: .headReceived,
                response: Response(
                    status: StatusCode(rawValue: response.statusCode),
                    fields: response.head.fields,
                    url: response.url
                )
            )
        }
        return serviceError(for: error)
    }

    /// The error of a stream that was open.
    static func whileOpen(_ error: any Error, task: URLSessionWebSocketTask) -> any Error {
        if task.closeCode != .invalid {
            let reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) }
            return StreamClosedError(
                StreamCloseCode(rawValue: UInt16(clamping: task.closeCode.rawValue)),
                reason: reason?.isEmpty == true ? nil : reason
            )
        }
        let error = error as NSError
        if error.domain == NSPOSIXErrorDomain, error.code == Int(EMSGSIZE) {
            return ServiceError(
                .bodyTooLarge,
                "A message exceeds the limit; raise `StreamLimits.messageSize`.",
                cause: error
            )
        }
        return serviceError(for: error)
    }

    /// The error for one of URLSession's, by its code.
    static func serviceError(for error: any Error) -> any Error {
        if error is StreamClosedError { return error }
        guard let known = (error as? URLError).flatMap({ meanings[$0.code] }) else {
            return ServiceError(.connectionLost, "The stream broke; schedule the request again.", cause: error)
        }
        let progress: TransportProgress? = known.code == .unsupported ? .notSent : nil
        return ServiceError(known.code, known.message, cause: error, progress: progress)
    }

    private typealias Meaning = (code: ServiceError.Code, message: String)

    private static let meanings: [URLError.Code: Meaning] = [
        .unsupportedURL: (
            .unsupported,
            "URLSession cannot open WebSockets here: FoundationNetworking was built without them. Give the service a "
                + "`streamTransport` over another WebSocket library."
        ),
        .cannotFindHost: unknownHost,
        .dnsLookupFailed: unknownHost,
        .cannotConnectToHost: (
            .connect, "The connection was refused. Check the host and the port, and that the server is running."
        ),
        .timedOut: (.timeout, "The server was silent for too long; open the stream again."),
        .notConnectedToInternet: (.offline, "The machine has no network connection; try when it has."),
        .secureConnectionFailed: (.tls, "No TLS connection could be made; check that the port speaks TLS."),
        .serverCertificateUntrusted: untrusted,
        .serverCertificateHasBadDate: untrusted,
        .serverCertificateHasUnknownRoot: untrusted,
        .serverCertificateNotYetValid: untrusted,
        .badServerResponse: (
            .protocolError, "The server does not open a stream there; check that the URL names a WebSocket."
        ),
    ]
    private static let unknownHost: Meaning = (.resolve, "The stream's host could not be resolved; check its name.")
    private static let untrusted: Meaning = (.certificate, "The server's certificate was refused; renew or trust it.")
}
