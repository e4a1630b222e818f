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

/// An origin that knows ranges and conditions, has its content in numbered versions, and breaks transfers where it is told to.
final class RangeOrigin: Sendable {
    struct State: Sendable {
        var version = 1
        var length: Int
        var fields: HeaderFields = ["Cache-Control": "max-age=60"]
        /// The form of the validators: `"1"` for a strong tag, `W/"1"` for a weak one, a date for Last-Modified.
        var validator = Validator.strong
        /// After how many bytes the next transfer breaks.
        var breaksAfter: Int?
        var chunkSize = 1 << 16
        /// What replaces the answer to the next request.
        var instead: ScriptedTransport.Step?
    }

    enum Validator: Sendable { case strong, weak, date, none }

    let state: Mutex<State>

    init(length: Int = 100, _ change: (inout State) -> Void = { _ in }) {
        var state = State(length: length)
        change(&state)
        self.state = Mutex(state)
    }

    func change(_ change: (inout sending State) -> Void) {
        state.withLock { change(&$0) }
    }

    /// Numbered stretches of eight bytes, so that no byte of another version or place goes unseen.
    static func content(version: Int, length: Int) -> String {
        var text = ""
        text.reserveCapacity(length + 8)
        var place = 0
        while text.utf8.count < length {
            let number = String(place * 7 + version)
            text += String("\(version)......".prefix(8 - number.utf8.count)) + number
            place += 1
        }
        return String(text.prefix(length))
    }

    /// The current content's bytes at these positions.
    func bytes(_ range: Range<Int>? = nil) -> String {
        let (version, length) = state.withLock { ($0.version, $0.length) }
        return RangeOrigin.slice(RangeOrigin.content(version: version, length: length), range ?? 0..<length)
    }

    static func slice(_ text: String, _ range: Range<Int>) -> String {
        String(decoding: Array(text.utf8)[range], as: UTF8.self)
    }

    var transport: ScriptedTransport { ScriptedTransport { [self] in answer($0) } }

    func answer(_ request: URLRequest) -> ScriptedTransport.Step {
        let state: State = self.state.withLock { state in
            defer { (state.breaksAfter, state.instead) = (nil, nil) }
            return state
        }
        if let step = state.instead { return step }
        var fields = state.fields
        fields["Date"] = "Tue, 14 Nov 2023 22:13:20 GMT"
        let validator: String?
        switch state.validator {
        case .strong: (fields["ETag"], validator) = ("\"\(state.version)\"", "\"\(state.version)\"")
        case .weak: (fields["ETag"], validator) = ("W/\"\(state.version)\"", nil)
        case .date:
            let date = "Tue, 14 Nov 2023 20:00:0\(state.version) GMT"
            (fields["Last-Modified"], validator) = (date, date)
        case .none: validator = nil
        }
        func field(_ name: String) -> String? { request.value(forHTTPHeaderField: name) }
        if let tag = field("If-Match"), tag != validator { return .respond(412, fields, body: "failed") }
        if let tags = field("If-None-Match") {
            let known = tags.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            let isKnown = known.contains { $0 == "*" || $0 == fields["ETag"] || "W/\($0)" == fields["ETag"] }
            if isKnown { return .respond(304, fields) }
        } else if let date = field("If-Modified-Since"), date == fields["Last-Modified"] {
            return .respond(304, fields)
        }
        let whole = RangeOrigin.content(version: state.version, length: state.length)
        guard request.httpMethod != "HEAD", let range = field("Range"),
            field("If-Range").map({ $0 == validator }) ?? true,
            let asked = RangeRequest(parsing: range), asked.ranges.count == 1
        else {
            fields["Content-Length"] = "\(state.length)"
            return request.httpMethod == "HEAD" ? .respond(200, fields) : stream(200, fields, whole, state)
        }
        guard let interval = asked.ranges[0].resolved(completeLength: Int64(state.length)) else {
            fields["Content-Range"] = "bytes */\(state.length)"
            return .respond(416, fields)
        }
        fields["Content-Range"] = "bytes \(interval.lowerBound)-\(interval.upperBound - 1)/\(state.length)"
        fields["Content-Length"] = "\(interval.count)"
        return stream(206, fields, RangeOrigin.slice(whole, Int(interval.lowerBound)..<Int(interval.upperBound)), state)
    }

    private func stream(_ status: Int, _ fields: HeaderFields, _ text: String, _ state: State) -> ScriptedTransport.Step
    {
        let bytes = Array(text.utf8)
        let end = min(bytes.count, state.breaksAfter ?? bytes.count)
        let chunks = stride(from: 0, to: end, by: state.chunkSize).map {
            String(decoding: bytes[$0..<min($0 + state.chunkSize, end)], as: UTF8.self)
        }
        let broken = ServiceError(.connectionLost, "scripted", progress: .bytesReceived)
        return .stream(
            status,
            fields,
            chunks: chunks,
            length: bytes.count,
            failure: state.breaksAfter == nil ? nil : broken
        )
    }
}

/// The stores that parts are tested over.
enum StoreKind: String, CaseIterable, Sendable {
    case memory, disk

    func withStore(capacity: Int = 16 << 20, _ body: (any CacheStore) async throws -> Void) async throws {
        guard self == .disk else { return try await body(MemoryStore(capacity: capacity)) }
        try await DiskCacheTests.withDirectory { directory in
            let store = try await StoreKind.open(directory, capacity: capacity)
            try await body(store)
            await store.close()
        }
    }

    static func open(_ directory: URL, capacity: Int = 16 << 20) async throws -> DiskStore {
        try FileManager.default.createDirectory(
            at: directory.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        return try await DiskStore.open(
            directory: directory.path,
            capacity: capacity,
            now: StoreInstant(milliseconds: 1_700_000_000_000)
        )
    }

    func withBench(_ origin: RangeOrigin, _ body: (CacheBench) async throws -> Void) async throws {
        try await withStore { try await body(CacheBench(origin.transport, store: $0)) }
    }
}

extension CacheBench {
    /// Loads the default resource, or a range of it.
    @discardableResult
    func range(_ range: String?, _ fields: [String: String] = [:]) async throws -> Answer {
        var fields = fields
        if let range { fields["Range"] = "bytes=" + range }
        return try await load(.get("http://origin.example/a", fields))
    }

    /// Reads the whole resource until its transfer breaks.
    func readBroken(_ fields: [String: String] = [:]) async throws {
        let response = try await pipeline.send(.get("http://origin.example/a", fields))
        do {
            _ = try await response.body.collect()
        } catch let error as ServiceError {
            guard error.code == .connectionLost else { throw error }
        }
        await pipeline.drain()
    }
}
