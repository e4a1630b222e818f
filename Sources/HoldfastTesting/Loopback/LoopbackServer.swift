// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
public import Foundation

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Musl)
    private import Musl
#else
    private import Glibc
#endif

/// How a connection ended.
public struct LoopbackConnectionEnd: Sendable, Hashable {
    /// Who ended a connection.
    public enum Kind: Sendable, Hashable {
        /// The client closed or reset it.
        case peer
        /// The server did: by script, by `Connection: close`, or because it stopped.
        case server
    }

    /// The connection's number.
    public let connection: Int
    /// Who ended it.
    public let endedBy: Kind
}

/// A small HTTP/1.1 server on 127.0.0.1 for tests: real sockets, scripted replies, and a record of all that came.
///
/// One thread a connection, TCP_NODELAY, keep-alive, `100 Continue` on request. The handler runs on a connection's thread
/// once the whole request is there, several at a time for several connections. The server stops with ``stop()`` or when
/// it is dropped.
public final class LoopbackServer: LoopbackOrigin {
    /// The server could not be started.
    public struct StartError: Error, CustomStringConvertible {
        /// What failed, with its errno.
        public let description: String
    }

    /// The TCP port it listens on.
    public let port: UInt16
    private let core: LoopbackCore
    private let listenerEnded: DispatchSemaphore

    private init(port: UInt16, core: LoopbackCore, listenerEnded: DispatchSemaphore) {
        self.port = port
        self.core = core
        self.listenerEnded = listenerEnded
    }

    deinit { core.stop.open() }

    /// Starts a server on a port that the system picks.
    ///
    /// - Parameters:
    ///   - connectionLimit: how many connections may be open; more are accepted and closed at once. 64 by default.
    ///   - bodyLimit: the longest request body in bytes; longer ones get a 400. 256 MiB by default.
    ///   - opening: what becomes of a connection, by its number; by default all are served.
    ///   - handler: answers a request.
    public static func start(
        connectionLimit: Int = 64,
        bodyLimit: Int = 256 << 20,
        opening: @escaping @Sendable (_ connection: Int) -> LoopbackOpening = { _ in .serve },
        handler: @escaping @Sendable (LoopbackRequest) -> LoopbackReply
    ) throws -> LoopbackServer {
        try start(
            connectionLimit: connectionLimit,
            bodyLimit: bodyLimit,
            script: LoopbackScript(opening: opening, handler: handler)
        )
    }

    /// Starts a server that goes by `script`; as ``start(connectionLimit:bodyLimit:opening:handler:)`` otherwise.
    public static func start(
        connectionLimit: Int = 64,
        bodyLimit: Int = 256 << 20,
        script: LoopbackScript
    ) throws -> LoopbackServer {
        let (listener, port) = try listen()
        let core = LoopbackCore(connectionLimit: connectionLimit, bodyLimit: bodyLimit, script: script)
        let listenerEnded = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            LoopbackServer.accept(on: listener, core)
            close(listener)
            listenerEnded.signal()
        }
        return LoopbackServer(port: port, core: core, listenerEnded: listenerEnded)
    }

    /// A port on which nobody listens, so that a connection to it is refused.
    public static func refusingPort() throws -> UInt16 {
        let (listener, port) = try listen()
        close(listener)
        return port
    }

    /// A URL of this server; `target` begins with a slash.
    public func url(_ target: String = "/") -> URL {
        let text = "http://127.0.0.1:\(port)\(target)"
        guard let url = URL(string: text) else { preconditionFailure("not a URL: \(text)") }
        return url
    }

    /// The requests that came so far, in order.
    public var requests: [LoopbackRequest] { core.requests }

    /// Waits until `count` requests have come in all.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    public func requests(atLeast count: Int) async throws -> [LoopbackRequest] {
        try await core.received.wait(for: count)
        return core.requests
    }

    @discardableResult
    public func heads(atLeast count: Int) async throws -> [LoopbackRequest] {
        try await core.begun.wait(for: count)
        return core.heads
    }

    public var exchangeEnds: [LoopbackExchangeEnd] { core.exchangeEnds }

    @discardableResult
    public func exchangeEnds(atLeast count: Int) async throws -> [LoopbackExchangeEnd] {
        try await core.exchanged.wait(for: count)
        return core.exchangeEnds
    }

    /// How many connections were accepted so far.
    public var connectionCount: Int { core.connectionCount }

    /// Waits until `count` connections have ended in all, and says how, in the order they ended.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    public func connectionEnds(atLeast count: Int) async throws -> [LoopbackConnectionEnd] {
        try await core.ended.wait(for: count)
        return core.endings
    }

    /// Ends the listener and every connection; returns when new connections are refused. Idempotent.
    public func stop() {
        core.stop.open()
        listenerEnded.wait()
        listenerEnded.signal()
    }

    private static func listen() throws -> (descriptor: Int32, port: UInt16) {
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw StartError(description: "socket: errno \(errno)") }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let outcome = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, size) == 0 && systemListen(descriptor, 128) == 0
                    && getsockname(descriptor, address, &size) == 0
            }
        }
        guard outcome else {
            let code = errno
            close(descriptor)
            throw StartError(description: "no listening socket on 127.0.0.1: errno \(code)")
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    private static func accept(on listener: Int32, _ core: LoopbackCore) {
        while true {
            var waits = [
                pollfd(fd: core.stop.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waits, nfds_t(waits.count), -1) > 0 else { continue }
            if waits[0].revents != 0 { return }
            let descriptor = systemAccept(listener)
            guard descriptor >= 0 else { continue }
            guard let number = core.admit() else {
                close(descriptor)
                continue
            }
            Thread.detachNewThread {
                core.serve(descriptor, number: number)
            }
        }
    }
}

private func systemListen(_ descriptor: Int32, _ backlog: Int32) -> Int32 {
    listen(descriptor, backlog)
}

private func systemAccept(_ descriptor: Int32) -> Int32 {
    accept(descriptor, nil, nil)
}
