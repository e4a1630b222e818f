// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

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
    public init(configuration: URLSessionConfiguration = .ephemeral) {
        self.configuration = configuration
    }

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
        return URLSessionStreamConnection(task)
    }
}
