// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An origin of one resource whose bodies break off; it knows Range and If-Range.
final class BreakingOrigin: Transport {
    /// What becomes of one exchange.
    enum Course: Sendable {
        /// The content comes whole.
        case whole
        /// The body breaks off after so many bytes, if it has more.
        case breaks(after: Int)
        /// The body stands still after so many bytes, until it is cancelled.
        case stalls(after: Int)
        /// No response comes until the exchange is cancelled.
        case silent
        /// No response comes.
        case fails(ServiceError.Code)
        /// Another response comes.
        case answers(Response)
    }

    struct Broken: Error {}

    private struct State {
        var courses: ArraySlice<Course>
        var requests: [URLRequest] = []
        var times: [MonotonicInstant] = []
        var deadlines: [MonotonicInstant?] = []
        var sources: [BreakingBody] = []
    }

    let content: [UInt8]
    let fields: HeaderFields
    let chunkSize: Int
    let enforcesDeadline: Bool
    /// Counts what is at a standstill by the script.
    let standstills = CountWatch()
    private let state: Mutex<State>

    init(
        _ courses: [Course],
        content: [UInt8] = Array(0..<100),
        fields: HeaderFields = ["ETag": "\"a\"", "Content-Length": "100"],
        chunkSize: Int = 7,
        enforcesDeadline: Bool = true
    ) {
        state = Mutex(State(courses: courses[...]))
        self.content = content
        self.fields = fields
        self.chunkSize = chunkSize
        self.enforcesDeadline = enforcesDeadline
    }

    var requests: [URLRequest] { state.withLock { $0.requests } }
    var ranges: [String?] { requests.map { $0.value(forHTTPHeaderField: "Range") } }
    var times: [Duration] { state.withLock { $0.times.map(\.sinceOrigin) } }
    var deadlines: [Duration?] { state.withLock { $0.deadlines.map { $0?.sinceOrigin } } }
    /// The bodies that neither ended nor were cancelled.
    var openBodies: Int { state.withLock { $0.sources.filter { !$0.isOver }.count } }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        let course: Course = state.withLock { state in
            state.requests.append(request)
            state.times.append(context.clock.now)
            state.deadlines.append(context.attemptDeadline)
            return state.courses.popFirst() ?? .whole
        }
        switch course {
        case .whole: return response(to: request, .ends)
        case .breaks(let count): return response(to: request, .breaks, after: count)
        case .stalls(let count): return response(to: request, .stalls, after: count)
        case .fails(let code): throw ServiceError(code, "scripted", progress: .notSent)
        case .answers(let response): return response
        case .silent:
            standstills.increment()
            try await CountWatch().wait(for: 1)
            throw CancellationError()
        }
    }

    private func response(to request: URLRequest, _ ending: BreakingBody.Ending, after count: Int = .max) -> Response {
        let first = request.value(forHTTPHeaderField: "Range").flatMap { Int($0.dropFirst(6).dropLast()) }
        let rest = content[(first ?? 0)...]
        let ending = count >= rest.count && ending == .breaks ? .ends : ending
        let source = BreakingBody(Array(rest.prefix(count)), chunkSize: chunkSize, ending, standstills)
        state.withLock { $0.sources.append(source) }
        var response = Response(status: .ok, fields: fields, body: ResponseBody(source, length: rest.count))
        guard let first, request.value(forHTTPHeaderField: "If-Range") == fields[.eTag] else { return response }
        response.status = .partialContent
        response.fields[.contentLength] = String(rest.count)
        response.fields[.contentRange] = "bytes \(first)-\(content.count - 1)/\(content.count)"
        return response
    }
}

/// A body that ends in one of three ways.
final class BreakingBody: ByteSource {
    enum Ending: Sendable { case ends, breaks, stalls }

    private struct State {
        var rest: ArraySlice<UInt8>
        var isOver = false
    }

    private let state: Mutex<State>
    private let chunkSize: Int
    private let ending: Ending
    private let standstills: CountWatch
    private let cancelled = CountWatch()

    init(_ bytes: [UInt8], chunkSize: Int, _ ending: Ending, _ standstills: CountWatch) {
        state = Mutex(State(rest: bytes[...]))
        self.chunkSize = chunkSize
        self.ending = ending
        self.standstills = standstills
    }

    var isOver: Bool { state.withLock { $0.isOver } || cancelled.count > 0 }

    func next() async throws -> ByteChunk? {
        if cancelled.count > 0 { throw CancellationError() }
        let bytes = state.withLock { state in
            defer { state.rest = state.rest.dropFirst(chunkSize) }
            return Array(state.rest.prefix(chunkSize))
        }
        if !bytes.isEmpty { return ByteChunk(bytes) }
        switch ending {
        case .ends:
            state.withLock { $0.isOver = true }
            return nil
        case .breaks:
            state.withLock { $0.isOver = true }
            throw ServiceError(.connectionLost, "broken", cause: BreakingOrigin.Broken(), progress: .bytesReceived)
        case .stalls:
            standstills.increment()
            try await cancelled.wait(for: 1)
            throw CancellationError()
        }
    }

    func cancel() {
        cancelled.increment()
    }
}
