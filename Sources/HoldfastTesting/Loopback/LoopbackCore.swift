// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// What the threads of one server share: the handler, the record of what came, and the gate that ends them all.
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
                outcome = try exchange(head, &reader, socket)
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

    /// Takes the content of one request and answers it.
    private func exchange(
        _ head: LoopbackRequest,
        _ reader: inout LoopbackReader,
        _ socket: LoopbackSocket
    ) throws -> LoopbackWriter.Outcome {
        var end = LoopbackExchangeEnd(connection: head.connection, target: head.target, endedBy: .server)
        defer {
            state.withLock { $0.exchangeEnds.append(end) }
            exchanged.increment()
        }
        do {
            let request = try request(head, &reader, socket)
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
        _ reader: inout LoopbackReader,
        _ socket: LoopbackSocket
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
