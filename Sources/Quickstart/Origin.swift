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

/// The built-in origin: a service in this process that responds slowly, sometimes fails, and counts its requests.
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

    /// Creates an origin that has received nothing yet.
    ///
    /// - Parameters:
    ///   - resources: the resources to serve.
    ///   - bodies: the source of the resources' bytes.
    ///   - failShare: the share of sends that fail, 0 to 1.
    ///   - seed: the seed of its failures.
    ///   - clock: measures its delays.
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

    /// The requests so far.
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
                "The built-in origin dropped the connection, as it sometimes does; send the request again.",
                progress: .bodySent
            )
        case .unavailable(let retryAfter):
            var fields = HeaderFields()
            if let retryAfter { fields[.retryAfter] = String(retryAfter) }
            return answer(.serviceUnavailable, fields: fields, content: ByteChunk(copying: "Come back later.\n".utf8))
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
            return answer(.ok, fields: fields, content: content)
        }
        let tag = "\"\(resource.number)-\(language.rawValue)\""
        fields[.eTag] = tag
        let isCurrent =
            EntityTag(tag).map { matches($0, to: request.value(forHTTPHeaderField: "If-None-Match")) } ?? false
        return isCurrent ? answer(.notModified, fields: fields) : answer(.ok, fields: fields, content: content)
    }

    /// If-None-Match compares weakly (RFC 9110 §13.1.2).
    private func matches(_ tag: EntityTag, to condition: String?) -> Bool {
        switch condition.flatMap({ EntityTag.list($0) }) {
        case .any: true
        case .tags(let tags): tags.contains { $0.weakMatches(tag) }
        case nil: false
        }
    }

    private func answer(
        _ status: StatusCode,
        fields: HeaderFields = HeaderFields(),
        content: ByteChunk = ByteChunk()
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

/// What an origin says about caching a resource.
enum ResourceKind: CaseIterable, Sendable {
    /// Fresh for a while: `max-age`.
    case keepable
    /// Must be confirmed before each use: `no-cache` or `max-age=0`, with an ETag.
    case revalidated
    /// Fresh for a while, one variant per language.
    case varying
    /// Must not be stored.
    case unstorable

    /// The share of the calls that go to resources of this kind.
    var share: Double {
        switch self {
        case .keepable: 0.55
        case .revalidated: 0.25
        case .varying, .unstorable: 0.1
        }
    }
}

/// One resource of the built-in origin.
struct Resource: Sendable, Hashable {
    /// The range of body lengths in bytes.
    static let sizes: ClosedRange<Int> = 300...204_800

    /// Its number, which is also its rank in the load.
    let number: Int
    /// How it may be cached.
    let kind: ResourceKind
    /// The length of its body in bytes.
    let size: Int
    /// How long it stays fresh, in seconds; only sent by kinds that may be cached.
    let maxAge: Int

    /// The resources for a seed.
    ///
    /// Kinds are assigned from the most popular resource down, each time the kind that is furthest below its share. The shares
    /// therefore hold for the calls and not only for the resources, whatever the seed. Sizes are bounded Pareto: many small
    /// bodies, a few large ones.
    static func catalogue(count: Int, seed: UInt64) -> [Resource] {
        let popularity = Zipf(count: count)
        var dealt: [ResourceKind: Double] = [:]
        var soFar = 0.0
        return (0..<max(1, count)).map { number in
            var generator = SplitMix64(seed: SplitMix64.hash(seed, UInt64(number)))
            let share = popularity.share(of: number)
            soFar += share
            var kind = ResourceKind.keepable
            var furthest = -Double.infinity
            for candidate in ResourceKind.allCases {
                let behind = candidate.share * soFar - dealt[candidate, default: 0]
                if behind > furthest { (kind, furthest) = (candidate, behind) }
            }
            dealt[kind, default: 0] += share
            return Resource(
                number: number,
                kind: kind,
                size: size(generator.nextShare()),
                maxAge: Int.random(in: 60...3_600, using: &generator)
            )
        }
    }

    private static func size(_ sample: Double) -> Int {
        let shape = 0.6
        let least = Double(sizes.lowerBound)
        let rest = 1 - sample * (1 - pow(least / Double(sizes.upperBound), shape))
        return min(max(Int(least * pow(rest, -1 / shape)), sizes.lowerBound), sizes.upperBound)
    }
}

/// The bodies of the built-in origin: the same bytes for the same resource, language and seed.
///
/// All of them are slices of one block of noise, each from a different place, so that a response needs no copy.
struct BodySource: Sendable {
    private static let places = 1 << 18
    private let noise: ByteChunk
    private let seed: UInt64

    /// Creates the bodies for a seed; takes about half a MiB.
    init(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(BodySource.places + Resource.sizes.upperBound + 8)
        while bytes.count < BodySource.places + Resource.sizes.upperBound {
            let number = generator.next()
            for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(shift)))) }
        }
        noise = ByteChunk(bytes)
        self.seed = seed
    }

    /// The body of a resource; only a varying one has a different body in each language.
    func body(of resource: Resource, in language: Language) -> ByteChunk {
        let variant = Language.allCases.firstIndex(of: language) ?? 0
        let place = SplitMix64.hash(seed, UInt64(truncatingIfNeeded: resource.number), UInt64(variant))
        let start = Int(place % UInt64(BodySource.places))
        return noise[start..<(start + resource.size)]
    }
}

/// A failure of one request to the built-in origin.
enum Mishap: Sendable, Hashable {
    /// 503, with a Retry-After of that many seconds if there is a number.
    case unavailable(retryAfter: Int?)
    /// The connection breaks before a response arrives.
    case droppedConnection

    /// The failure, if any: the same for the same request to the same resource, whichever task makes it.
    ///
    /// A third each are 503 alone, 503 with Retry-After, and dropped connections. One Retry-After in eight asks for a second,
    /// the others for none, so that a run does not consist of waiting.
    ///
    /// - Parameters:
    ///   - send: which request to this resource it is, from 0.
    ///   - resource: the resource's number.
    ///   - share: the share of requests that fail, 0 to 1.
    ///   - seed: the seed of the random choices.
    static func of(send: Int, resource: Int, share: Double, seed: UInt64) -> Mishap? {
        let parts = [seed, UInt64(truncatingIfNeeded: resource), UInt64(truncatingIfNeeded: send)]
        guard SplitMix64.share(SplitMix64.hash(parts[0], parts[1], parts[2], 1)) < share else { return nil }
        let kind = SplitMix64.hash(parts[0], parts[1], parts[2], 2)
        switch kind % 3 {
        case 0: return .unavailable(retryAfter: nil)
        case 1: return .unavailable(retryAfter: (kind >> 32) % 8 == 0 ? 1 : 0)
        default: return .droppedConnection
        }
    }

    /// How long the origin takes for a request, in microseconds: 1,000 to 3,000, chosen the same way.
    static func microsecondsOfThought(send: Int, resource: Int, seed: UInt64) -> Int {
        let number = SplitMix64.hash(
            seed,
            UInt64(truncatingIfNeeded: resource),
            UInt64(truncatingIfNeeded: send),
            3
        )
        return 1_000 + Int(number % 2_001)
    }
}
