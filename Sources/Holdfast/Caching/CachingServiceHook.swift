// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastSemantics
public import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A cache that goes by a time to live alone: what a GET got is used again until it is `ttl` old, whatever its server says.
///
/// - Warning: **Cache-Control, Expires, Pragma and Age of responses do not count, `no-store` and `no-cache` included.** What a
///   server marked as not to be kept is kept, on the disk as well if that is where the store is. For responses that say what
///   may be done with them use `Pipeline(cache:)`, the cache by RFC 9111.
///
/// Stored is each 2xx response to a GET that the call's acceptance takes. It answers while its age, counted from its receipt
/// here, is at most `ttl`; after that the origin is asked, with conditions where the response has a validator, and a 304 makes
/// it `ttl` young again. Queries that differ in nothing but the order of their names are one. Nothing stale is served unless
/// the request or the call allows it (`max-stale`, `stale-if-error`, `.ignoresAge`). Keys, variants, principals, purging, equal
/// calls that share one exchange, and what the request and the call ask of a cache are those of ``CachingHook``: it is that hook
/// over a cache with `CacheOptions.fixedLifetime`. Unsafe methods are never answered from it, and remove what is stored of
/// their URI (RFC 9111 §4.4).
///
/// **Use.** Make it once and keep it, list it in `Pipeline(hooks:)` below any hook that adds credentials, and in a pipeline
/// without a cache of its own.
public struct CachingServiceHook: ServiceHook {
    /// The cache behind the hook, to purge it, to look into it, and to close it.
    public var cache: HTTPCache { hook.cache }

    private let hook: CachingHook

    /// A hook over a store that is no other cache's.
    ///
    /// - Parameters:
    ///   - ttl: how old a stored response may be to answer; 10 minutes by default, to the millisecond, negative counts as zero. A
    ///     store that outlives the process is judged by the `ttl` of who opens it.
    ///   - store: where responses are kept; 32 MiB in memory by default.
    public init(ttl: Duration = .seconds(600), store: any CacheStore = MemoryStore(capacity: 32 << 20)) {
        self.init(HTTPCache(store: store, options: CachingServiceHook.options(ttl)))
    }

    /// A hook over a store on disk, whose responses are there again after a restart.
    ///
    /// - Parameters:
    ///   - directory: as in ``HTTPCache/onDisk(at:capacity:seal:options:)``.
    ///   - ttl: as in ``init(ttl:store:)``.
    ///   - capacity: bytes on the disk at most; 256 MiB by default, at least 1 MiB.
    ///   - seal: encrypts what is written; nil, the default, writes it as it is.
    /// - Throws: `StoreError`: `.locked` where another process has it open, `.unsafeDirectory`, `.io`, `.noSpace`.
    public static func onDisk(
        at directory: URL,
        ttl: Duration = .seconds(600),
        capacity: Int = 256 << 20,
        seal: (any StoreSeal)? = nil
    ) async throws -> CachingServiceHook {
        CachingServiceHook(
            try await .onDisk(at: directory, capacity: capacity, seal: seal, options: options(ttl))
        )
    }

    private init(_ cache: HTTPCache) {
        hook = CachingHook(cache)
    }

    private static func options(_ ttl: Duration) -> CacheOptions {
        var options = CacheOptions()
        options.fixedLifetime = ttl
        options.staleWhenDisconnected = .zero
        options.query.sortsNames = true
        return options
    }

    public var scope: HookScope { .message }

    public func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        try await hook.onSchedule(&request, &context)
    }

    public func onSuccess(
        _ response: inout Response,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async throws {
        try await hook.onSuccess(&response, request, &context)
    }

    public func onFailure(
        _ error: any Error,
        _ request: URLRequest,
        _ context: inout CallContext
    ) async -> Response? {
        await hook.onFailure(error, request, &context)
    }

    public func onCancel(_ request: URLRequest, _ context: CallContext) {
        hook.onCancel(request, context)
    }
}
