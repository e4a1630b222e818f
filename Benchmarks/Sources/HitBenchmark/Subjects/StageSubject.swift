// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import Holdfast
internal import HoldfastSemantics
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// The stages of a hit, composed of the cache's public parts; each gets the output of the stage before it.
struct StageSubject: Sendable {
    let stage: Stage
    private let store: any CacheStore
    private let asking: Asking
    private let items: [Item]
    private let secret: [UInt8]

    /// What the stages pass to each other for one resource.
    private struct Item: Sendable {
        let head: RequestHead
        let key: StoreKey
        let stored: [StoredResponse]
        let body: ByteChunk
        let url: URL?
    }

    /// - Parameters:
    ///   - directory: The directory for the store of a disk stage.
    ///   - count: The number of stored resources.
    init(_ stage: Stage, directory: String, count: Int) async throws {
        self.stage = stage
        let now = SystemClock().timestamp
        let instant = StoreInstant(milliseconds: now.millisecondsSinceEpoch)
        store =
            stage.isOnDisk
            ? try await DiskStore.open(directory: directory, capacity: 256 << 20, now: instant)
            : MemoryStore(capacity: 32 << 20)
        secret = store.secret
        asking = Asking(count, length: stage.length, thread: 0)
        var items: [Item] = []
        for (resource, request) in zip(asking.resources, asking.requests) {
            guard let (head, key) = Self.key(of: request),
                let nominated = NominatedFields(
                    vary: resource.fields(now: now),
                    request: head.fields,
                    secret: secret
                )
            else { throw WrongAnswer(subject: stage.name) }
            let fields = resource.fields(now: now)
            let stored = StoredResponse(
                target: head.target,
                nominated: nominated,
                head: ResponseHead(status: .ok, fields: fields),
                requestTime: now,
                responseTime: now
            )
            let body = ByteChunk(resource.body)
            let writer = try await store.write(
                key,
                variant: StoreKey([]),
                description: EntryDescription(metadata: ByteChunk([UInt8](repeating: 7, count: 300))),
                expectedLength: body.count,
                now: instant
            )
            try await writer.append(body)
            try await writer.commit(nil, now: instant)
            items.append(Item(head: head, key: key, stored: [stored], body: body, url: request.url))
        }
        self.items = items
    }

    /// Runs the stage for the resources at these places.
    ///
    /// - Returns: the number of correct results.
    func ask(_ places: Range<Int>) async throws -> Int {
        switch stage {
        case .key: askKey(places)
        case .lookUp: askMemory(places)
        case .lookUpDisk1KiB, .lookUpDisk16KiB: try await askDisk(places)
        case .decision: askDecision(places)
        case .response: askResponse(places)
        }
    }

    func close() async {
        await store.close()
    }

    private static func key(of request: URLRequest) -> (RequestHead, StoreKey)? {
        guard let url = request.url, let method = request.httpMethod.flatMap({ RequestMethod(validating: $0) }),
            let target = try? TargetURI(mapping: url.absoluteString)
        else { return nil }
        let head = RequestHead(
            method: method,
            target: target,
            fields: HeaderFields(request.allHTTPHeaderFields ?? [:])
        )
        return (head, StoreKey(CacheKey(method: method, target: target).framed))
    }

    private func askKey(_ places: Range<Int>) -> Int {
        var right = 0
        for place in places {
            let number = asking.number(place)
            if let found = Self.key(of: asking.requests[number]), found.1.bytes.count == items[number].key.bytes.count {
                right += 1
            }
        }
        return right
    }

    private func askMemory(_ places: Range<Int>) -> Int {
        var right = 0
        for place in places {
            let number = asking.number(place)
            if let entry = store.peek(items[number].key, now: Self.now)?.first, let body = store.peekBody(of: entry),
                asking.resources[number].holds(body)
            {
                right += 1
            }
        }
        return right
    }

    private func askDisk(_ places: Range<Int>) async throws -> Int {
        var right = 0
        for place in places {
            let number = asking.number(place)
            let key = items[number].key
            var found = store.peek(key, now: Self.now)
            if found == nil { found = try await store.entries(for: key, now: Self.now) }
            guard let entry = found?.first else { continue }
            let body = try await store.body(of: entry)
            var bytes = body.bytesInMemory
            if bytes == nil { bytes = try await body.read(from: 0, upTo: entry.bodyLength) }
            if let bytes, asking.resources[number].holds(bytes) { right += 1 }
        }
        return right
    }

    private func askDecision(_ places: Range<Int>) -> Int {
        let (directive, options, clock) = (CacheDirective(), CacheOptions(), SystemClock())
        var right = 0
        for place in places {
            let item = items[asking.number(place)]
            let decision = ReuseDecision.decide(
                request: item.head,
                candidates: item.stored,
                directive: directive,
                now: clock.timestamp,
                options: options,
                secret: secret
            )
            if case .reuse(0, _, false) = decision { right += 1 }
        }
        return right
    }

    private func askResponse(_ places: Range<Int>) -> Int {
        let clock = SystemClock()
        var right = 0
        for place in places {
            let item = items[asking.number(place)]
            let head = item.stored[0].responseHead(now: clock.timestamp)
            let response = Response(
                status: head.status,
                fields: head.fields,
                body: ResponseBody(item.body),
                url: item.url,
                source: .fresh
            )
            if response.fields.contains(.age), response.body.length == item.body.count { right += 1 }
        }
        return right
    }

    private static let now = StoreInstant(milliseconds: SystemClock().timestamp.millisecondsSinceEpoch)
}
