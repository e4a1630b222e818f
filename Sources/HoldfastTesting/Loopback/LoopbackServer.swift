// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
public import Foundation
private import Synchronization

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Glibc)
    private import Glibc
#elseif canImport(Musl)
    private import Musl
#endif

/// How a connection ended.
public struct LoopbackConnectionEnd: Sendable, Hashable {
    /// Who ended a connection.
    public enum Kind: Sendable, Hashable {
        /// The client closed or reset it.
        case peer
        /// The server ended it: by script, by `Connection: close`, or because it stopped.
        case server
    }

    /// The connection's number.
    public let connection: Int
    /// Who ended it.
    public let endedBy: Kind
}

/// A small HTTP/1.1 server on 127.0.0.1 for tests: real sockets, scripted replies, and a record of all requests.
///
/// It uses one thread for each connection, TCP_NODELAY, keep-alive, and `100 Continue` on request. The handler runs on the
/// connection's thread once the whole request was read; handlers of several connections run at the same time. The server stops with
/// ``stop()``, or when its last reference is released.
public final class LoopbackServer: LoopbackOrigin {
    /// The server could not be started.
    public struct StartError: LocalizedError, CustomStringConvertible {
        /// What failed, with its errno.
        public let description: String
        public var errorDescription: String? { description }
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

    /// Starts a server on a port that the system chooses.
    ///
    /// - Parameters:
    ///   - connectionLimit: the most open connections; more are accepted and closed at once. 64 by default.
    ///   - bodyLimit: the longest request body in bytes; longer ones get a 400. 256 MiB by default.
    ///   - opening: what to do with a connection, by its number; by default it is served.
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

    /// Starts a server with `script`; otherwise like ``start(connectionLimit:bodyLimit:opening:handler:)``.
    public static func start(
        connectionLimit: Int = 64,
        bodyLimit: Int = 256 << 20,
        script: LoopbackScript
    ) throws -> LoopbackServer {
        let (listener, port) = try bound(listens: true)
        let core = LoopbackCore(connectionLimit: connectionLimit, bodyLimit: bodyLimit, script: script)
        let listenerEnded = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            LoopbackServer.accept(on: listener, core)
            close(listener)
            listenerEnded.signal()
        }
        return LoopbackServer(port: port, core: core, listenerEnded: listenerEnded)
    }

    /// A port that refuses connections, and that nobody else gets: a socket that does not listen is bound to it until 128 further
    /// ones were asked for.
    public static func refusingPort() throws -> UInt16 {
        let (descriptor, port) = try bound(listens: false)
        let former = refusing.withLock { descriptors in
            descriptors.append(descriptor)
            return descriptors.count > 128 ? descriptors.removeFirst() : nil
        }
        if let former { close(former) }
        return port
    }

    private static let refusing = Mutex<[Int32]>([])

    /// A URL of this server; `target` begins with a slash.
    public func url(_ target: String = "/") -> URL {
        let text = "http://127.0.0.1:\(port)\(target)"
        guard let url = URL(string: text) else { preconditionFailure("not a URL: \(text)") }
        return url
    }

    /// The requests received so far, in order.
    public var requests: [LoopbackRequest] { core.requests }

    /// Waits until `count` requests in total have been received.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
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

    /// Waits until `count` connections in total have ended, and returns how, in the order in which they ended.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    @discardableResult
    public func connectionEnds(atLeast count: Int) async throws -> [LoopbackConnectionEnd] {
        try await core.ended.wait(for: count)
        return core.endings
    }

    /// Stops the listener and closes every connection; returns once new connections are refused. Idempotent.
    public func stop() {
        core.stop.open()
        listenerEnded.wait()
        listenerEnded.signal()
    }

    private static func bound(listens: Bool) throws -> (descriptor: Int32, port: UInt16) {
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
                bind(descriptor, address, size) == 0 && (!listens || systemListen(descriptor, backlog: 128) == 0)
                    && getsockname(descriptor, address, &size) == 0
            }
        }
        guard outcome else {
            let code = errno
            close(descriptor)
            throw StartError(description: "cannot listen on 127.0.0.1: errno \(code)")
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

private func systemListen(_ descriptor: Int32, backlog: Int32) -> Int32 { listen(descriptor, backlog) }

private func systemAccept(_ descriptor: Int32) -> Int32 { accept(descriptor, nil, nil) }

/// What the threads of one server share: the handler, the record of requests, and the gate that stops them all.
final class LoopbackCore: Sendable {
    private struct State {
        var requests: [LoopbackRequest] = []
        var heads: [LoopbackRequest] = []
        var exchangeEnds: [LoopbackExchangeEnd] = []
        var endings: [LoopbackConnectionEnd] = []
        var connectionCount = 0
        var openCount = 0
    }

    /// Opens when the server stops.
    let stop = LoopbackGate()
    /// Counts requests whose head and body have been read.
    let received = CountWatch()
    /// Counts requests whose head has been read.
    let begun = CountWatch()
    /// Counts exchanges that have ended.
    let exchanged = CountWatch()
    /// Counts connections that have ended.
    let ended = CountWatch()

    private let script: LoopbackScript
    private let bodyLimit: Int
    private let connectionLimit: Int
    private let state = Mutex(State())

    init(connectionLimit: Int, bodyLimit: Int, script: LoopbackScript) {
        self.connectionLimit = connectionLimit
        self.bodyLimit = bodyLimit
        self.script = script
    }

    var requests: [LoopbackRequest] { state.withLock { $0.requests } }
    var heads: [LoopbackRequest] { state.withLock { $0.heads } }
    var exchangeEnds: [LoopbackExchangeEnd] { state.withLock { $0.exchangeEnds } }
    var endings: [LoopbackConnectionEnd] { state.withLock { $0.endings } }
    var connectionCount: Int { state.withLock { $0.connectionCount } }

    /// The number of a new connection; nil if the limit is reached.
    func admit() -> Int? {
        state.withLock { state in
            guard state.openCount < connectionLimit else { return nil }
            state.openCount += 1
            defer { state.connectionCount += 1 }
            return state.connectionCount
        }
    }

    /// Serves a connection until its end, on the calling thread.
    func serve(_ descriptor: Int32, number: Int) {
        let socket = LoopbackSocket(adopting: descriptor, stop: stop)
        var reader = LoopbackReader(connection: number, bodyLimit: bodyLimit)
        var outcome = LoopbackWriter.Outcome.keep
        var kind = LoopbackConnectionEnd.Kind.server
        do {
            let opening = script.opening(number)
            if var left = opening.byteCount {
                while left > 0, let bytes = try socket.receive(upTo: left) { left -= bytes.count }
                outcome = opening.resets ? .reset : .close
            }
            while outcome == .keep {
                guard let head = try reader.head(from: socket) else {
                    kind = .peer
                    break
                }
                outcome = try exchange(head, reader: &reader, socket: socket)
            }
        } catch LoopbackSocket.Ending.peerClosed {
            kind = .peer
        } catch LoopbackSocket.Ending.peerReset {
            kind = .peer
        } catch is LoopbackReader.Malformed {
            try? socket.send(Array("HTTP/1.1 400 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
        } catch {
            kind = .server
        }
        socket.end(resetting: outcome == .reset)
        state.withLock { state in
            state.openCount -= 1
            state.endings.append(LoopbackConnectionEnd(connection: number, endedBy: kind))
        }
        ended.increment()
    }

    /// Reads the content of one request and answers it.
    private func exchange(
        _ head: LoopbackRequest,
        reader: inout LoopbackReader,
        socket: LoopbackSocket
    ) throws -> LoopbackWriter.Outcome {
        var end = LoopbackExchangeEnd(connection: head.connection, target: head.target, endedBy: .server)
        defer {
            state.withLock { $0.exchangeEnds.append(end) }
            exchanged.increment()
        }
        do {
            let request = try request(head, reader: &reader, socket: socket)
            var writer = LoopbackWriter(script.handler(request), to: request)
            let outcome = try writer.write(to: socket)
            if !writer.wasBrokenOff { end.endedBy = .completion }
            return outcome == .keep && request.asksToClose ? .close : outcome
        } catch LoopbackTaker.Refusal.resets {
            return .reset
        } catch LoopbackTaker.Refusal.closes {
            return .close
        } catch {
            if let ending = error as? LoopbackSocket.Ending, ending != .stopped { end.endedBy = .peer }
            throw error
        }
    }

    private func request(
        _ head: LoopbackRequest,
        reader: inout LoopbackReader,
        socket: LoopbackSocket
    ) throws -> LoopbackRequest {
        state.withLock { $0.heads.append(head) }
        begun.increment()
        let intake = script.intake(head)
        if head.values(of: "Expect").contains(where: { $0.lowercased() == "100-continue" }) {
            try socket.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }
        var request = head
        try reader.content(of: &request, by: intake, from: socket)
        let received = request
        let recorded = state.withLock { state in
            var numbered = received
            numbered.number = state.requests.count
            state.requests.append(numbered)
            return numbered
        }
        self.received.increment()
        return recorded
    }
}
