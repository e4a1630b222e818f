// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
private import Synchronization

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Glibc)
    private import Glibc
#elseif canImport(Musl)
    private import Musl
#endif

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

/// A gate that a test holds: a scripted reply waits at it until ``open()``.
///
/// It is a pipe, so that a connection's thread can wait for the gate, for its peer and for the end of the server in one
/// `poll`. Opening closes the write end, which every waiter sees. A gate opens once and stays open.
public final class LoopbackGate: Sendable {
    private let readEnd: Int32
    private let writeEnd: Mutex<Int32?>
    private let arrivals = CountWatch()
    private let openings = CountWatch()

    /// A closed gate.
    public init() {
        var ends: (Int32, Int32) = (-1, -1)
        let outcome = withUnsafeMutableBytes(of: &ends) { pipe($0.bindMemory(to: Int32.self).baseAddress) }
        precondition(outcome == 0, "no pipe for a gate: errno \(errno)")
        readEnd = ends.0
        writeEnd = Mutex(ends.1)
        for end in [ends.0, ends.1] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    deinit {
        open()
        close(readEnd)
    }

    /// Lets everyone through, now and later. Idempotent, never blocks.
    public func open() {
        let end = writeEnd.withLock { end in
            defer { end = nil }
            return end
        }
        guard let end else { return }
        close(end)
        openings.increment()
    }

    /// Whether the gate is open.
    public var isOpen: Bool { writeEnd.withLock { $0 == nil } }

    /// Waits until `count` replies have come to this gate, whether they had to wait or not.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func reached(by count: Int = 1) async throws {
        try await arrivals.wait(for: count)
    }

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func opened() async throws {
        try await openings.wait(for: 1)
    }

    /// Notes that a reply has come to this gate.
    package func arrive() {
        arrivals.increment()
    }

    /// Becomes readable (or hung up) when the gate opens.
    var descriptor: Int32 { readEnd }
}

/// A number of bytes that only grows, and that tasks can wait for: how far a transfer has come.
public final class ByteGauge: Sendable {
    private let list = WaitingList(0)

    /// A gauge that stands at 0.
    public init() {}

    /// How many bytes there were so far.
    public var count: Int { list.reached }

    /// Counts further bytes and wakes those who waited for them.
    public func add(_ bytes: Int) {
        list.raise { $0 + bytes }
    }

    /// Waits until there were `bytes` or more; returns at once when there were.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func wait(for bytes: Int) async throws {
        try await list.wait(for: bytes)
    }
}
