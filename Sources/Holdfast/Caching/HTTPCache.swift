// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

/// A cache for HTTP responses by RFC 9111, over any ``CacheStore``.
///
/// Hand one to `Pipeline(cache:)`; several pipelines may share one. Responses to requests with credentials (Authorization,
/// Cookie, userinfo, or the principal a call names) live in a partition of their own, named by a keyed digest: each partition
/// is a cache by itself, and no response crosses from one to another.
///
/// A store failure is an event and a miss, never an error of a request.
public final class HTTPCache: Sendable {
    /// Where responses are kept.
    public let store: any CacheStore
    /// How the rules are applied.
    public let options: CacheOptions

    let decoded = DecodedResponses()
    private let counts = Mutex(CacheStatistics())

    /// A cache over `store`; private mode by default.
    public init(store: any CacheStore, options: CacheOptions = CacheOptions()) {
        self.store = store
        self.options = options
    }

    /// What was counted so far.
    public var statistics: CacheStatistics {
        counts.withLock { $0 }
    }

    /// Removes every stored response for a URL, of all partitions and variants.
    ///
    /// - Returns: how many entries were removed; 0 as well where the URL is no http or https URI.
    @discardableResult
    public func remove(_ url: URL) async throws -> Int {
        guard let target = try? TargetURI(url.absoluteString) else { return 0 }
        return try await store.purge(
            .matching { HTTPCache.canonicalURI(ofKey: $0.key.bytes) == target.canonical },
            now: HTTPCache.systemNow()
        )
    }

    /// Removes every stored response.
    public func removeAll() async throws {
        try await store.purge(.all, now: HTTPCache.systemNow())
    }

    /// Removes the stored responses of calls that named `tag`.
    ///
    /// - Returns: how many entries were removed.
    @discardableResult
    public func removeAll(tag: String) async throws -> Int {
        try await store.purge(.tag(tag), now: HTTPCache.systemNow())
    }

    /// Closes the store, cleanly marked; later calls find nothing and store nothing. Idempotent.
    public func close() async {
        await store.close()
    }

    func count(_ change: (inout CacheStatistics) -> Void) {
        counts.withLock { change(&$0) }
    }

    /// The URI in a framed key: the fourth frame, after the format's name, the partition and the method group.
    private static func canonicalURI(ofKey framed: [UInt8]) -> String? {
        var reader = FramedBytes.Reader(framed)
        for _ in 0..<3 { guard reader.next() != nil else { return nil } }
        return reader.nextString()
    }

    private static func systemNow() -> StoreInstant {
        StoreInstant(SystemClock().timestamp)
    }
}

extension StoreInstant {
    /// The instant of a timestamp.
    init(_ timestamp: Timestamp) {
        self.init(milliseconds: timestamp.millisecondsSinceEpoch)
    }
}
