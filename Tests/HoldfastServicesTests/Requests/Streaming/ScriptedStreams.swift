// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Opens one scripted connection, once its gate is open, or fails to.
final class ScriptedStreamTransport: StreamTransport {
    let connection = ScriptedStreamConnection()
    /// Counts what was asked to open.
    let opens = CountWatch()
    private let gate: CountWatch?
    private let failure: (any Error)?
    private let asked = Mutex<[URLRequest]>([])

    init(gate: CountWatch? = nil, failure: (any Error)? = nil) {
        self.gate = gate
        self.failure = failure
    }

    var requests: [URLRequest] { asked.withLock { $0 } }

    func open(_ request: URLRequest, limits: StreamLimits) async throws -> any StreamConnection {
        asked.withLock { $0.append(request) }
        opens.increment()
        try await gate?.wait(for: 1)
        if let failure { throw failure }
        return connection
    }
}

/// A connection whose peer is the test.
final class ScriptedStreamConnection: StreamConnection {
    struct Close: Hashable {
        let code: StreamCloseCode
        let reason: String?
    }

    private struct State {
        var incoming: ArraySlice<Result<StreamMessage, any Error>> = []
        var taken = 0
        var sent: [StreamMessage] = []
        var closes: [Close] = []
        var sendFailure: (any Error)?
        var sendGate: CountWatch?
        var sendsBegun = 0
    }

    private let state = Mutex(State())
    private let available = CountWatch()
    /// Counts messages that were taken from the peer, sent to it, begun to be sent; pings; closes.
    let received = CountWatch()
    let sends = CountWatch()
    let sendsBegun = CountWatch()
    let pings = CountWatch()
    let closed = CountWatch()

    var sent: [StreamMessage] { state.withLock { $0.sent } }
    var closes: [Close] { state.withLock { $0.closes } }

    /// The peer sends.
    func push(_ messages: StreamMessage...) {
        for message in messages { push(.success(message)) }
    }

    /// The peer closes the stream, or it breaks.
    func push(failure: any Error) { push(.failure(failure)) }

    /// Further sends wait for so many steps of the gate.
    func holdSends(_ gate: CountWatch) { state.withLock { $0.sendGate = gate } }

    func failSends(_ error: any Error) { state.withLock { $0.sendFailure = error } }

    private func push(_ result: Result<StreamMessage, any Error>) {
        state.withLock { $0.incoming.append(result) }
        available.increment()
    }

    func send(_ message: StreamMessage) async throws {
        let (gate, count) = state.withLock { state in
            state.sendsBegun += 1
            return (state.sendGate, state.sendsBegun)
        }
        sendsBegun.increment()
        try await gate?.wait(for: count)
        try state.withLock { state in
            if let failure = state.sendFailure { throw failure }
            state.sent.append(message)
        }
        sends.increment()
    }

    func receive() async throws -> StreamMessage {
        let position = state.withLock { state in
            state.taken += 1
            return state.taken
        }
        try await available.wait(for: position)
        let result = state.withLock { $0.incoming.popFirst() }
        received.increment()
        guard let result else { throw StreamClosedError(.abnormalClosure) }
        return try result.get()
    }

    func ping() async throws { pings.increment() }

    func close(code: StreamCloseCode, reason: String?) {
        state.withLock { $0.closes.append(Close(code: code, reason: reason)) }
        push(.failure(StreamClosedError(code, isByPeer: false)))
        closed.increment()
    }
}

/// What happened, in order, as far as somebody was told.
final class StreamLog: Sendable {
    private let kept = Mutex<[String]>([])
    let count = CountWatch()

    var lines: [String] { kept.withLock { $0 } }

    func note(_ line: String) {
        kept.withLock { $0.append(line) }
        count.increment()
    }

    func note(_ who: String, _ error: any Error) {
        switch error {
        case let error as ServiceError: note("\(who) \(error.code)")
        case let error as StreamClosedError: note("\(who) closed \(error.code)")
        default: note("\(who) \(error)")
        }
    }
}

struct StreamHook: RequestHook {
    let name: String
    let log: StreamLog

    func onFailure(_ error: any Error) async { log.note(name, error) }
}

struct StreamService: HttpService {
    var apiUrl: any UrlConvertible = "api.example.com/v1"
    var usesSecureProtocol = true
    var header: HttpHeader = [:]
    var laterHeader: HttpHeader = [:]
    var credential = Authorization.none
    var log = StreamLog()
    var retrierFactory: any RetrierFactory = .never
    var streamTransport: any StreamTransport = ScriptedStreamTransport()

    var asyncHeader: HttpHeader { get async throws { laterHeader } }
    var authorization: Authorization { get async throws { credential } }
    var requestHooks: [any RequestHook] { [StreamHook(name: "first", log: log), StreamHook(name: "second", log: log)] }
    func process(_ error: any Error) { log.note("process", error) }
}

/// Text in both directions; what is "bad" can be neither encoded nor decoded.
struct ChatRequest: StreamRequest {
    struct BadMessage: Error {}

    typealias Message = String
    typealias Result = String

    var routes: HttpRoute = ["chat"]
    var limits = StreamLimits()

    func encode(_ message: String) throws -> StreamMessage {
        if message == "bad" { throw BadMessage() }
        return .text(message)
    }

    func decode(_ message: StreamMessage) throws -> String {
        let text = try message.string()
        if text == "bad" { throw BadMessage() }
        return text
    }
}
