// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage
internal import Synchronization

extension Path {
    /// The controls of the counters themselves: no allocation, and one.
    static let controls = [
        Path("control-none") { $0 >= 0 },
        Path("control-one") { Block($0).number == $0 },
    ]

    /// Decisions: pure functions.
    static var decisions: [Path] {
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
        let asked = Sample.request(url)
        let failed = FailedExchange(
            .response(ResponseHead(status: .serviceUnavailable, fields: ["Retry-After": "1"])),
            method: .get,
            fields: Sample.requestFields,
            receivedAt: instant
        )
        return [
            Path("target-uri") { _ in (try? TargetURI(url)) != nil },
            Path("request-key") { _ in
                guard let head = RequestHead(asked) else { return false }
                return !CacheKey(method: head.method, target: head.target).framed.isEmpty
            },
            Path("cache-key") { _ in !CacheKey(method: .get, target: target).framed.isEmpty },
            Path("cache-control") { _ in CacheControl(responseFields).maxAge == 3600 },
            Path("http-date") { _ in HTTPDate(date, receivedAt: instant) != nil },
            Path("reuse-decision") { _ in
                let decision = ReasonedReuseDecision(
                    request: request,
                    candidates: [stored],
                    directive: .default,
                    now: instant,
                    options: options,
                    secret: [1, 2, 3]
                )
                return decision.selected == 0
            },
            Path("retry-decision") { index in
                var (history, random) = (RetryHistory(), SplitMix64(seed: UInt64(index)))
                let decision = RetryRules.default.decideWithReasons(failed, history: &history, using: &random)
                return decision.serverDelay == .seconds(1)
            },
            Path("backoff-delay") { index in
                var random = SplitMix64(seed: UInt64(index))
                return Backoff().delay(retry: 3, using: &random) >= .zero
            },
            Path("facts") { _ in stored.facts.standing(now: instant, for: nil, options: options)?.isStale == false },
        ]
    }

    /// The memory store on its own.
    static var stores: [Path] {
        let store = MemoryStore(capacity: 8 << 20)
        let line = Line()
        let now = StoreInstant(milliseconds: 0)
        let body = ByteChunk([UInt8](repeating: 7, count: 1024))
        let keys = (0..<64).map { StoreKey(Array("key \($0) of some length, as the keys of caches have".utf8)) }
        line.run {
            for key in keys { try? await put(key, body: body, in: store, now: now) }
        }
        let small = MemoryStore(capacity: 256 << 10)
        return [
            Path("memory-look-up") { store.peek(keys[$0 % keys.count], now: now)?.count == 1 },
            Path("memory-open") {
                let entries = store.peek(keys[$0 % keys.count], now: now) ?? []
                return entries.first.flatMap { store.peekBody(of: $0) }?.count == 1024
            },
            Path("memory-put", turns: 200) { (index: Int) async throws -> Bool in
                try await put(keys[index % keys.count], body: body, in: store, now: now)
                return true
            },
            Path("memory-put-evicting", turns: 400) { (index: Int) async throws -> Bool in
                try await put(
                    StoreKey(Array("new key \(index), of some length as well".utf8)),
                    body: body,
                    in: small,
                    now: now
                )
                return true
            },
        ]
    }

    static func put(
        _ key: StoreKey,
        body: ByteChunk,
        in store: any CacheStore,
        now: StoreInstant
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

extension Path {
    /// The disk store on its own, with real files that the system has in memory.
    ///
    /// - Parameters:
    ///   - folder: an existing, empty folder.
    ///   - line: runs its tasks.
    static func disks(in folder: String, on line: Line) -> [Path] {
        let now = StoreInstant(milliseconds: 0)
        let opened = Opened()
        line.run {
            let store = try? await DiskStore.open(directory: folder + "/store", capacity: 64 << 20, now: now)
            opened.store.withLock { $0 = store }
        }
        guard let store = opened.store.withLock({ $0 }) else { return [] }
        let body = ByteChunk([UInt8](repeating: 7, count: 16 << 10))
        let keys = (0..<64).map { StoreKey(Array("key \($0) of some length, as the keys of caches have".utf8)) }
        let request = Sample.request("https://api.example.com/v1/articles/12345?lang=en&fields=title,body")
        let cached = diskPipeline(over: store, on: line)
        line.run {
            for key in keys { try? await put(key, body: body, in: store, now: now) }
            _ = try? await cached.send(request).body.collect()
        }
        return [
            Path("disk-look-up") { find(keys[$0 % keys.count], in: store, now: now)?.count == 1 },
            Path("disk-get", turns: 200) { (index: Int) async throws -> Bool in
                guard let entry = find(keys[index % keys.count], in: store, now: now)?.first else { return false }
                return try await store.body(of: entry).read(from: 0, upTo: body.count).count == body.count
            },
            Path("hit-disk", turns: 200) { (_: Int) async throws -> Bool in
                try await cached.send(request).body.collect().count == 1024
            },
            Path("disk-put", turns: 100) { (index: Int) async throws -> Bool in
                try await put(keys[index % keys.count], body: body, in: store, now: now)
                return true
            },
        ]
    }

    /// The entry of an existing key. If the store would have to wait for the device, as may happen while that is busy, it is
    /// asked again.
    private static func find(_ key: StoreKey, in store: DiskStore, now: StoreInstant) -> [StoredEntry]? {
        for _ in 0..<1_000 {
            if let found = store.peek(key, now: now) { return found }
            usleep(100)
        }
        return nil
    }
}

/// What a task opened for the thread that waits for it.
private final class Opened: Sendable {
    let store = Mutex<DiskStore?>(nil)
}
