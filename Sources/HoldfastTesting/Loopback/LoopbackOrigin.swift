// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation

/// A server for tests that answers by script and keeps a record: what the checks of a transport need of one.
///
/// **Choose.** ``LoopbackServer`` for HTTP/1.1. **Implement.** Play ``LoopbackScript`` over another version of HTTP: read every
/// request as ``LoopbackIntake`` says, run the steps of the ``LoopbackReply``, and note each exchange when it ends.
public protocol LoopbackOrigin: Sendable {
    /// A URL of this server; `target` begins with a slash.
    func url(_ target: String) -> URL

    /// The requests that came whole so far, in order.
    var requests: [LoopbackRequest] { get }

    /// Waits until `count` requests have come whole in all.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    func requests(atLeast count: Int) async throws -> [LoopbackRequest]

    /// Waits until the heads of `count` requests have come in all, whatever became of their content, which they lack.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    func heads(atLeast count: Int) async throws -> [LoopbackRequest]

    /// How the exchanges ended that have ended so far, in that order.
    var exchangeEnds: [LoopbackExchangeEnd] { get }

    /// Waits until `count` exchanges have ended in all.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    func exchangeEnds(atLeast count: Int) async throws -> [LoopbackExchangeEnd]

    /// Ends the server and every connection.
    func stop() async
}

/// How an exchange ended whose head had come.
public struct LoopbackExchangeEnd: Sendable, Hashable {
    /// What ended an exchange.
    public enum Kind: Sendable, Hashable {
        /// The whole reply was handed to the network.
        case completion
        /// The client broke off, by the end of the connection or of the stream.
        case peer
        /// The server did, by script or because it stopped.
        case server
    }

    /// The connection's number.
    public let connection: Int
    /// The request's target.
    public let target: String
    /// What ended it.
    public package(set) var endedBy: Kind

    /// An end.
    public init(connection: Int, target: String, endedBy: Kind) {
        self.connection = connection
        self.target = target
        self.endedBy = endedBy
    }
}

/// What a server does with connections, with the content of requests, and with requests.
public struct LoopbackScript: Sendable {
    /// What becomes of a connection, by its number; by default all are served.
    public var opening: @Sendable (_ connection: Int) -> LoopbackOpening
    /// What becomes of the content of a request, by its head; by default it is kept.
    public var intake: @Sendable (_ head: LoopbackRequest) -> LoopbackIntake
    /// Answers a request once its content is there.
    public var handler: @Sendable (_ request: LoopbackRequest) -> LoopbackReply

    /// A script.
    public init(
        opening: @escaping @Sendable (_ connection: Int) -> LoopbackOpening = { _ in .serve },
        intake: @escaping @Sendable (_ head: LoopbackRequest) -> LoopbackIntake = { _ in .keep },
        handler: @escaping @Sendable (_ request: LoopbackRequest) -> LoopbackReply
    ) {
        self.opening = opening
        self.intake = intake
        self.handler = handler
    }
}
