// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

extension Path {
    /// What the counters themselves are held to: no allocation, and one.
    static let controls = [
        Path("control-none") { $0 >= 0 },
        Path("control-one") { Block($0).number == $0 },
    ]

    /// Judgement: pure functions.
    static var judgements: [Path] {
        let url = "https://api.example.com/v1/articles/12345?lang=en&fields=title,body"
        let responseFields = Sample.responseFields
        let instant = Timestamp(millisecondsSinceEpoch: 1_700_000_000_000)
        guard let target = try? TargetURI(url) else { return [] }
        let request = RequestHead(method: .get, target: target, fields: Sample.requestFields)
        let stored = StoredResponse(
            target: target,
            head: ResponseHead(status: .ok, fields: responseFields),
            requestTime: instant,
            responseTime: instant
        )
        let date = HTTPDate(instant).description
        let options = CacheOptions()
        return [
            Path("target-uri") { _ in (try? TargetURI(url)) != nil },
            Path("cache-key") { _ in !CacheKey(method: .get, target: target).framed.isEmpty },
            Path("cache-control") { _ in CacheControl(responseFields).maxAge == 3600 },
            Path("http-date") { _ in HTTPDate(date, receivedAt: instant) != nil },
            Path("reuse-judgement") { _ in
                let judgement = ReuseJudgement(
                    request: request,
                    candidates: [stored],
                    directive: .default,
                    now: instant,
                    options: options,
                    secret: [1, 2, 3]
                )
                return judgement.selected == 0
            },
            Path("plain-reuse") { _ in PlainReuse(stored, options: options)?.standing(now: instant).isStale == false },
        ]
    }

    /// The memory store, by itself.
    static var stores: [Path] {
        let store = MemoryStore(capacity: 8 << 20)
        let line = Line()
        let now = StoreInstant(milliseconds: 0)
        let body = ByteChunk([UInt8](repeating: 7, count: 1024))
        let keys = (0..<64).map { StoreKey(Array("key \($0) of some length, as the keys of caches have".utf8)) }
        line.run {
            for key in keys { try? await put(key, body, in: store, now) }
        }
        let small = MemoryStore(capacity: 256 << 10)
        return [
            Path("memory-look-up") { store.peek(keys[$0 % keys.count], now: now)?.count == 1 },
            Path("memory-open") {
                let entries = store.peek(keys[$0 % keys.count], now: now) ?? []
                return entries.first.flatMap { store.peekBody(of: $0) }?.count == 1024
            },
            Path("memory-put", turns: 200) { (index: Int) async throws -> Bool in
                try await put(keys[index % keys.count], body, in: store, now)
                return true
            },
            Path("memory-put-evicting", turns: 400) { (index: Int) async throws -> Bool in
                try await put(StoreKey(Array("new key \(index), of some length as well".utf8)), body, in: small, now)
                return true
            },
        ]
    }

    private static func put(
        _ key: StoreKey,
        _ body: ByteChunk,
        in store: MemoryStore,
        _ now: StoreInstant
    ) async throws {
        let writer = try await store.write(
            key,
            variant: StoreKey([]),
            description: EntryDescription(metadata: ByteChunk(copying: "metadata".utf8)),
            expectedLength: body.count,
            now: now
        )
        try await writer.append(body)
        try await writer.commit(nil, now: now)
    }
}

/// One allocation.
private final class Block {
    let number: Int

    @inline(never)
    @_optimize(none)
    init(_ number: Int) {
        self.number = number
    }
}
