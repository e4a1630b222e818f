// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastTesting

@testable import Holdfast
@testable import HoldfastStorage

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One step of a random history: a call, or something that changes what the next one finds.
enum ComparedStep: Sendable {
    case call(URLRequest, body: RequestBody?, CallOptions)
    case advance(Duration)
    case setClock(Duration)
    case purge(CacheSelection, softly: Bool)
    case pin(Bool)
    case trim
    case implicit(HeaderFields)
    case edit([String: String])

    /// - Parameter mayRefuse: whether callers may refuse answers. What they send then would race with a revalidation in the
    ///   background, by a pipeline below that knows nothing of the refusal, of what they refuse.
    static func random(mayRefuse: Bool, using random: inout SeededGenerator) -> ComparedStep {
        switch Int.random(in: 0..<80, using: &random) {
        case 0...4: .advance(.milliseconds([300, 999, 5_000, 9_000, 45_000][Int.random(in: 0..<5, using: &random)]))
        case 5: .setClock(.seconds([-3_600, -7, 11, 4_000][Int.random(in: 0..<4, using: &random)]))
        case 6: .purge(selection(using: &random), softly: Bool.random(using: &random))
        case 7: .pin(Bool.random(using: &random))
        case 8: .trim
        case 9: .implicit(pick([[:], [:], ["X-Tenant": "a"], ["Cookie": "s=1"], ["X-Other": "1"]], using: &random))
        case 10: .edit(pick([[:], [:], ["X-Tenant": "b"], ["Authorization": "t"]], using: &random))
        default: call(mayRefuse, using: &random)
        }
    }

    static func pick<Value>(_ values: [Value], using random: inout SeededGenerator) -> Value {
        values[Int.random(in: 0..<values.count, using: &random)]
    }

    /// Few of them, so that histories come back to what is stored; some are spellings or equivalents of others.
    private static let urls = [
        "http://origin.example/a", "http://origin.example/a", "http://origin.example/a#top", "http://ORIGIN.example/a",
        "http://origin.example/b", "http://origin.example/b?u=1", "http://origin.example/b?u=2",
        "http://origin.example/b?x=1&y=2", "http://origin.example/b?y=2&x=1", "http://origin.example/moved",
        "http://other.example/a",
    ]

    private static func selection(using random: inout SeededGenerator) -> CacheSelection {
        guard Bool.random(using: &random), let url = URL(string: pick(urls, using: &random)) else {
            return pick([.all, .tag("t"), .tag("u"), .olderThan(.seconds(3))], using: &random)
        }
        return Bool.random(using: &random) ? .url(url) : .path(url)
    }

    private static func call(_ mayRefuse: Bool, using random: inout SeededGenerator) -> ComparedStep {
        var request = URLRequest.get(pick(urls, using: &random))
        var body: RequestBody?
        if Int.random(in: 0..<5, using: &random) == 0 {
            for (name, value) in fields(using: &random) { request.setValue(value, forHTTPHeaderField: name) }
        }
        switch Int.random(in: 0..<40, using: &random) {
        case 0: request.httpMethod = pick(["POST", "PUT", "DELETE"], using: &random)
        case 1: request.httpMethod = "HEAD"
        case 2: request.httpBody = Data("x".utf8)
        case 3: body = .bytes(ByteChunk([1]))
        case 4: request.cachePolicy = pick([.reloadIgnoringLocalCacheData, .returnCacheDataElseLoad], using: &random)
        default: break
        }
        return .call(request, body: body, options(mayRefuse, using: &random))
    }

    private static func fields(using random: inout SeededGenerator) -> [String: String] {
        pick(
            [
                ["X-Tenant": "a"], ["x-tenant": "a"], ["X-Tenant": "b"], ["X-Tenant": ""], ["X-Other": "1"],
                ["Accept-Language": "de, en"], ["Accept-Language": "en, de"], ["Accept-Language": "de,en"],
                ["Cookie": "a=b"], ["Authorization": "t"], ["Cache-Control": "max-age=5"],
                ["Cache-Control": "no-cache"],
                ["Cache-Control": "max-stale"], ["Cache-Control": "only-if-cached"], ["Pragma": "no-cache"],
                ["Range": "bytes=0-0"], ["If-None-Match": "\"e\""], ["Host": "third.example"],
                ["X-Tenant": "a", "Accept-Language": "de, en"],
            ],
            using: &random
        )
    }

    private static func options(_ mayRefuse: Bool, using random: inout SeededGenerator) -> CallOptions {
        var options = CallOptions()
        switch Int.random(in: 0..<30, using: &random) {
        case 0: options.cache = pick([.reload, .revalidate, .noStore, .maxStale(.seconds(9))], using: &random)
        case 1: options.principal = pick(["alice", "bob"], using: &random)
        case 2: options.credentialFields = ["X-Tenant"]
        case 3, 4: options.tags = [pick(["t", "u"], using: &random)]
        case 5: options.operationName = "op"
        case 6 where mayRefuse: options.acceptance = .successful
        case 7 where mayRefuse:
            // Refuses most of what is given, by what it says.
            options.acceptance = Acceptance { response in
                let text = String(decoding: try await response.body.collect(), as: UTF8.self)
                guard text.utf8.reduce(0, { $0 &+ Int($1) }).isMultiple(of: 3) else { throw Refused(reason: text) }
                response.body = ResponseBody(ByteChunk(copying: text.utf8))
            }
        default: break
        }
        return options
    }
}

extension ComparedSide {
    /// Takes a step that is no call.
    func take(_ step: ComparedStep) async throws {
        switch step {
        case .call: break
        case .advance(let duration): clock.advance(by: duration)
        case .setClock(let duration): clock.skewTimeOfDay(by: duration)
        case .purge(let selection, let softly):
            for cache in caches { try await cache.purge(selection, softly: softly, now: clock.timestamp) }
        case .pin(let isPinned):
            for cache in caches {
                if isPinned {
                    try await cache.pin(.all, now: clock.timestamp)
                } else {
                    try await cache.unpin(.all, now: clock.timestamp)
                }
            }
        case .trim:
            for cache in caches {
                (cache.store as? MemoryStore)?.trim(to: 0)
                ((cache.store as? TieredStore)?.upper as? MemoryStore)?.trim(to: 0)
            }
        case .implicit(let fields): implicit.set(fields)
        case .edit(let fields): edit.set(fields)
        }
    }
}
