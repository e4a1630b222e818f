// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastServices
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The built-in origin: a service in this process that answers slowly, fails at times, and counts what reaches it.
final class Origin: InProcessService {
    /// The state behind the lock.
    private struct State {
        var traffic = Traffic()
        var sendsOfResource: [Int]

        mutating func admit(_ resource: Int) -> Int {
            traffic.sends += 1
            defer { sendsOfResource[resource] += 1 }
            return sendsOfResource[resource]
        }
    }

    let serviceIdentifier = "origin"
    private let resources: [Resource]
    private let bodies: BodySource
    private let failShare: Double
    private let seed: UInt64
    private let clock: any HoldfastClock
    private let state: Mutex<State>

    /// An origin that has seen nothing yet.
    ///
    /// - Parameters:
    ///   - resources: what it serves.
    ///   - bodies: where the resources' bytes come from.
    ///   - failShare: the share of sends that fail, 0 to 1.
    ///   - seed: what its mishaps go by.
    ///   - clock: what its slowness is measured by.
    init(
        resources: [Resource],
        bodies: BodySource,
        failShare: Double,
        seed: UInt64,
        clock: any HoldfastClock
    ) {
        self.resources = resources
        self.bodies = bodies
        self.failShare = failShare
        self.seed = seed
        self.clock = clock
        state = Mutex(State(sendsOfResource: Array(repeating: 0, count: resources.count)))
    }

    /// What reached the origin so far.
    var traffic: Traffic { state.withLock { $0.traffic } }

    func respond(to request: URLRequest, body: RequestBody) async throws -> Response {
        guard let number = (request.url?.lastPathComponent).flatMap({ Int($0) }), resources.indices.contains(number)
        else {
            state.withLock { $0.traffic.sends += 1 }
            return answer(.notFound)
        }
        let send = state.withLock { $0.admit(number) }
        let thought = Mishap.microsecondsOfThought(send: send, resource: number, seed: seed)
        try await clock.sleep(until: clock.now.advanced(by: .microseconds(thought)))
        switch Mishap.of(send: send, resource: number, share: failShare, seed: seed) {
        case .droppedConnection:
            throw ServiceError(
                .connectionLost,
                "The built-in origin dropped the connection, as it does at times; send again.",
                progress: .bodySent
            )
        case .unavailable(let retryAfter):
            var fields = HeaderFields()
            if let retryAfter { fields[.retryAfter] = String(retryAfter) }
            return answer(.serviceUnavailable, fields, ByteChunk(copying: "Come back later.\n".utf8))
        case nil:
            return answer(resources[number], to: request)
        }
    }

    private func answer(_ resource: Resource, to request: URLRequest) -> Response {
        let asked = request.value(forHTTPHeaderField: "Accept-Language").flatMap { Language(rawValue: $0) } ?? .english
        let language = resource.kind == .varying ? asked : .english
        let content = bodies.body(of: resource, in: language)
        var fields: HeaderFields = ["Content-Type": "application/octet-stream"]
        switch resource.kind {
        case .keepable: fields[.cacheControl] = "max-age=\(resource.maxAge)"
        case .revalidated: fields[.cacheControl] = resource.number.isMultiple(of: 2) ? "no-cache" : "max-age=0"
        case .varying:
            fields[.cacheControl] = "max-age=\(resource.maxAge)"
            fields[.vary] = "Accept-Language"
            fields[.contentLanguage] = language.rawValue
        case .unstorable:
            fields[.cacheControl] = "no-store"
            return answer(.ok, fields, content)
        }
        let tag = "\"\(resource.number)-\(language.rawValue)\""
        fields[.eTag] = tag
        let isCurrent = EntityTag(tag).map { matches($0, request.value(forHTTPHeaderField: "If-None-Match")) } ?? false
        return isCurrent ? answer(.notModified, fields) : answer(.ok, fields, content)
    }

    /// If-None-Match compares weakly (RFC 9110 §13.1.2).
    private func matches(_ tag: EntityTag, _ condition: String?) -> Bool {
        switch condition.flatMap({ EntityTag.list($0) }) {
        case .any: true
        case .tags(let tags): tags.contains { $0.weakMatches(tag) }
        case nil: false
        }
    }

    private func answer(
        _ status: StatusCode,
        _ fields: HeaderFields = HeaderFields(),
        _ content: ByteChunk = ByteChunk()
    ) -> Response {
        var fields = fields
        fields[.date] = HTTPDate(clock.timestamp).description
        if status != .notModified { fields[.contentLength] = String(content.count) }
        state.withLock { state in
            state.traffic.bodyBytes += content.count
            if status == .notModified { state.traffic.notModified += 1 }
        }
        return Response(status: status, fields: fields, body: ResponseBody(content))
    }
}
