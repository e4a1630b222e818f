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

/// What stands around the cache whose answers are compared.
enum ComparedChain: String, CaseIterable, Sendable {
    /// Nothing else takes part: a ready answer needs no call at all.
    case lone
    /// A hook that edits requests as it is told stands above.
    case hooked
    /// Somebody observes the calls.
    case observed
    /// The pipeline's transport is another pipeline with a cache of its own.
    case nested
    /// A second cache stands above in the same chain.
    case stacked
}

/// What makes each cache a store of its own.
struct StoreMaker: Sendable {
    static let memory = StoreMaker { MemoryStore(capacity: 4 << 20) }
    static let tiered = StoreMaker {
        TieredStore(memory: 4 << 20, over: MemoryStore(capacity: 4 << 20), rule: .firstHit)
    }

    let make: @Sendable () -> any CacheStore

    init(_ make: @escaping @Sendable () -> any CacheStore) {
        self.make = make
    }
}

/// How both sides are made.
struct ComparedSetting: Sendable {
    var chain = ComparedChain.lone
    var options = CacheOptions()
    var store = StoreMaker.memory
    /// The origin's answer to a request, of which so many were sent before.
    var origin: @Sendable (URLRequest, Int) -> ScriptedTransport.Step
}

/// One of two pipelines that are asked the same.
final class ComparedSide: Sendable {
    let clock = ManualClock(autoAdvances: true)
    let transport: ScriptedTransport
    /// The cache next to the origin.
    let cache: HTTPCache
    /// The one above it, where there is one.
    let outer: HTTPCache?
    let pipeline: Pipeline
    let events = EventRecorder()
    /// What the transport says that it adds below the hooks.
    let implicit = SharedValue(HeaderFields())
    /// What the hook sets on each request.
    let edit = SharedValue<[String: String]>([:])
    private let inner: Pipeline?

    init(_ setting: ComparedSetting, answersFreshHits: Bool) {
        let (implicit, numbers, origin) = (implicit, AnswerNumbers(), setting.origin)
        transport = ScriptedTransport(implicit: { _ in implicit.value }) { request in
            origin(request, numbers.next() - 1)
        }
        func makeCache() -> HTTPCache {
            HTTPCache(store: setting.store.make(), options: setting.options, answersFreshHits: answersFreshHits)
        }
        cache = makeCache()
        outer = setting.chain == .nested || setting.chain == .stacked ? makeCache() : nil
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        if setting.chain == .observed { configuration.observers = [events] }
        var hooks: [any ServiceHook] = []
        if setting.chain == .hooked { hooks = [EditingHook(edit: edit)] }
        if setting.chain == .stacked, let outer { hooks = [CachingHook(outer)] }
        let nearest = Pipeline(transport: transport, cache: cache, hooks: hooks, configuration: configuration)
        if setting.chain == .nested {
            inner = nearest
            pipeline = Pipeline(transport: nearest, cache: outer, configuration: configuration)
        } else {
            inner = nil
            pipeline = nearest
        }
    }

    var caches: [HTTPCache] { [cache] + [outer].compactMap(\.self) }

    /// Sends a request, reads its answer and waits for what goes on in the background.
    func ask(_ request: URLRequest, body: RequestBody? = nil, _ options: CallOptions = CallOptions()) async
        -> ComparedAnswer
    {
        var seen = ComparedAnswer()
        do {
            let response = try await pipeline.send(request, body: body, options: options)
            seen.note(response)
            seen.body = try await response.body.collect().array
        } catch {
            seen.error = "\((error as? ServiceError)?.code.description ?? "\(type(of: error))")"
        }
        // The end of one may be the beginning of another.
        for _ in 0..<2 {
            await pipeline.drain()
            await inner?.drain()
            for case let store as TieredStore in caches.map(\.store) { await store.awaitPromotions() }
        }
        seen.sends = transport.sent.count
        return seen
    }
}

/// What a caller sees of a call.
struct ComparedAnswer: Equatable, Sendable {
    var status = 0
    var fields = HeaderFields()
    var body: [UInt8] = []
    var url: URL?
    var source: ResponseSource?
    var decision: CacheDecision?
    var requestTime: Timestamp?
    var responseTime: Timestamp?
    var contentDecoded = false
    var attempts: [AttemptRecord] = []
    var foundation: String?
    var presented: HeaderFields?
    var hasAgeDeducted = false
    var error: String?
    var sends = 0
    /// Whether it was a fresh hit, judged by facts alone; not compared.
    var isByFacts = false

    var text: String { String(decoding: body, as: UTF8.self) }

    mutating func note(_ response: Response) {
        status = response.status.rawValue
        fields = response.fields
        url = response.url
        source = response.source
        decision = response.cacheDecision
        requestTime = response.requestTime
        responseTime = response.responseTime
        contentDecoded = response.contentDecoded
        attempts = response.attempts
        presented = response.presentation.presented?.fields
        hasAgeDeducted = response.hasAgeDeducted
        let made = response.makeHTTPURLResponse()
        let fields = made?.allHeaderFields.map { "\($0.key): \($0.value)" }.sorted() ?? []
        foundation = "\(made?.statusCode ?? 0) \(made?.url?.absoluteString ?? "") \(fields)"
        isByFacts = response.source == .fresh && !(response.storedOrigin is StoredOrigin)
    }

    static func == (left: ComparedAnswer, right: ComparedAnswer) -> Bool {
        left.status == right.status && left.fields == right.fields && left.body == right.body && left.url == right.url
            && left.source == right.source && left.decision == right.decision
            && left.requestTime == right.requestTime && left.responseTime == right.responseTime
            && left.contentDecoded == right.contentDecoded && left.attempts == right.attempts
            && left.foundation == right.foundation && left.presented == right.presented
            && left.hasAgeDeducted == right.hasAgeDeducted && left.error == right.error && left.sends == right.sends
    }
}

private struct EditingHook: ServiceHook {
    let edit: SharedValue<[String: String]>
    var scope: HookScope { .message }

    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        for (name, value) in edit.value { request.setValue(value, forHTTPHeaderField: name) }
        return nil
    }
}
