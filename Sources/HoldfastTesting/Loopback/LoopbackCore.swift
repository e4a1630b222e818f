// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// What the threads of one server share: the handler, the record of what came, and the gate that ends them all.
final class LoopbackCore: Sendable {
    private struct State {
        var requests: [LoopbackRequest] = []
        var endings: [LoopbackConnectionEnd] = []
        var connectionCount = 0
        var openCount = 0
    }

    /// Opens when the server stops.
    let stop = LoopbackGate()
    /// Counts requests whose head and body have been read.
    let received = CountWatch()
    /// Counts connections that have ended.
    let ended = CountWatch()

    private let opening: @Sendable (Int) -> LoopbackOpening
    private let handler: @Sendable (LoopbackRequest) -> LoopbackReply
    private let bodyLimit: Int
    private let connectionLimit: Int
    private let state = Mutex(State())

    init(
        connectionLimit: Int,
        bodyLimit: Int,
        opening: @escaping @Sendable (Int) -> LoopbackOpening,
        handler: @escaping @Sendable (LoopbackRequest) -> LoopbackReply
    ) {
        self.connectionLimit = connectionLimit
        self.bodyLimit = bodyLimit
        self.opening = opening
        self.handler = handler
    }

    var requests: [LoopbackRequest] { state.withLock { $0.requests } }
    var endings: [LoopbackConnectionEnd] { state.withLock { $0.endings } }
    var connectionCount: Int { state.withLock { $0.connectionCount } }

    /// The number for a new connection; nil when there are as many as may be.
    func admit() -> Int? {
        state.withLock { state in
            guard state.openCount < connectionLimit else { return nil }
            state.openCount += 1
            defer { state.connectionCount += 1 }
            return state.connectionCount
        }
    }

    /// Serves a connection to its end, on the calling thread.
    func serve(_ descriptor: Int32, number: Int) {
        let socket = LoopbackSocket(adopting: descriptor, stop: stop)
        var reader = LoopbackReader(connection: number, bodyLimit: bodyLimit)
        var outcome = LoopbackWriter.Outcome.keep
        var kind = LoopbackConnectionEnd.Kind.server
        do {
            let opening = opening(number)
            if var left = opening.byteCount {
                while left > 0, let bytes = try socket.receive(upTo: left) { left -= bytes.count }
                outcome = opening.resets ? .reset : .close
            }
            while outcome == .keep {
                guard let request = try next(&reader, socket) else {
                    kind = .peer
                    break
                }
                var writer = LoopbackWriter(handler(request), to: request)
                outcome = try writer.write(to: socket)
                if outcome == .keep && request.asksToClose { outcome = .close }
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

    private func next(_ reader: inout LoopbackReader, _ socket: LoopbackSocket) throws -> LoopbackRequest? {
        guard var request = try reader.head(from: socket) else { return nil }
        if request.values(of: "Expect").contains(where: { $0.lowercased() == "100-continue" }) {
            try socket.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }
        request.body = try reader.body(of: request, from: socket)
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
