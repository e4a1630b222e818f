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

/// A scripted server for tests that records what it receives, as the checks of a transport need it.
///
/// **Choose.** ``LoopbackServer`` for HTTP/1.1. **Implement.** Run a ``LoopbackScript`` over another version of HTTP: read each
/// request as its ``LoopbackIntake`` says, run the steps of the ``LoopbackReply``, and record each exchange when it ends.
public protocol LoopbackOrigin: Sendable {
    /// A URL of this server; `target` begins with a slash.
    func url(_ target: String) -> URL

    /// The requests that were received completely so far, in order.
    var requests: [LoopbackRequest] { get }

    /// Waits until `count` requests in total have been received completely.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    @discardableResult
    func requests(atLeast count: Int) async throws -> [LoopbackRequest]

    /// Waits until the heads of `count` requests in total have been received. The result has no content.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    @discardableResult
    func heads(atLeast count: Int) async throws -> [LoopbackRequest]

    /// How exchanges ended so far, in that order.
    var exchangeEnds: [LoopbackExchangeEnd] { get }

    /// Waits until `count` exchanges in total have ended.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    @discardableResult
    func exchangeEnds(atLeast count: Int) async throws -> [LoopbackExchangeEnd]

    /// Stops the server and closes every connection.
    func stop() async
}

/// How an exchange ended whose head had been received.
public struct LoopbackExchangeEnd: Sendable, Hashable {
    /// What ended an exchange.
    public enum Kind: Sendable, Hashable {
        /// The whole reply was passed to the network.
        case completion
        /// The client closed the connection or the stream.
        case peer
        /// The server ended it, by script or because it stopped.
        case server
    }

    /// The connection's number.
    public let connection: Int
    /// The request's target.
    public let target: String
    /// What ended it.
    public package(set) var endedBy: Kind

    /// An end with these values.
    public init(connection: Int, target: String, endedBy: Kind) {
        self.connection = connection
        self.target = target
        self.endedBy = endedBy
    }
}

/// What a server does with connections, with the content of requests, and with requests.
public struct LoopbackScript: Sendable {
    /// What to do with a connection, by its number; by default it is served.
    public var opening: @Sendable (_ connection: Int) -> LoopbackOpening
    /// What to do with the content of a request, by its head; by default it is kept.
    public var intake: @Sendable (_ head: LoopbackRequest) -> LoopbackIntake
    /// Answers a request once its content has been read.
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

/// A gate that a test controls: a scripted reply waits at it until ``open()``.
///
/// It is a pipe, so that a connection's thread can wait for the gate, for its peer and for the server's end with one `poll`.
/// Opening the gate closes the write end, which every waiter sees. A gate opens once and stays open.
public final class LoopbackGate: Sendable {
    private let readEnd: Int32
    private let writeEnd: Mutex<Int32?>
    private let arrivals = CountWatch()
    private let openings = CountWatch()

    /// A closed gate.
    public init() {
        var ends: (Int32, Int32) = (-1, -1)
        let outcome = withUnsafeMutableBytes(of: &ends) { pipe($0.bindMemory(to: Int32.self).baseAddress) }
        precondition(outcome == 0, "a gate could not make its pipe: errno \(errno)")
        readEnd = ends.0
        writeEnd = Mutex(ends.1)
        for end in [ends.0, ends.1] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    deinit {
        open()
        close(readEnd)
    }

    /// Lets all replies pass, now and later. Idempotent, never blocks.
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

    /// Waits until `count` replies have reached this gate, whether they had to wait or not.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func reached(by count: Int = 1) async throws { try await arrivals.wait(for: count) }

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func opened() async throws { try await openings.wait(for: 1) }

    /// Records that a reply has reached this gate.
    package func arrive() { arrivals.increment() }

    /// Becomes readable (or hung up) when the gate opens.
    var descriptor: Int32 { readEnd }
}

/// A byte count that only grows and that tasks can wait for: the progress of a transfer.
public final class ByteGauge: Sendable {
    private let list = WaitingList(0)

    /// A gauge at 0.
    public init() {}

    /// How many bytes were counted so far.
    public var count: Int { list.reached }

    /// Adds to the count and wakes the tasks that waited for it.
    public func add(_ bytes: Int) { list.raise { $0 + bytes } }

    /// Waits until the count is `bytes` or more; returns at once if it is.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func wait(for bytes: Int) async throws { try await list.wait(for: bytes) }
}
