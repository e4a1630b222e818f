// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastSemantics
public import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A cache that only uses a time to live: the response to a GET is reused until it is `ttl` old, whatever its server says.
///
/// - Warning: **Cache-Control, Expires, Pragma and Age of responses are ignored, including `no-store` and `no-cache`.**
///   Responses that must not be kept are kept, even on disk if the store is there. For responses with useful directives, use
///   `Pipeline(cache:)`, the cache by RFC 9111.
///
/// Each 2xx response to a GET that the call accepts is stored. It answers while its age, counted from its local receipt, is at
/// most `ttl`; after that the origin is asked, with conditions if the response has a validator, and a 304 makes it fresh for
/// another `ttl`. Queries that differ only in the order of their names are the same. Stale responses are not served unless the
/// request or the call allows it (`max-stale`, `stale-if-error`, `.ignoresAge`). Keys, variants, principals, purging, sharing
/// of exchanges, and directives of the request and the call work as in ``CachingHook``: it is that hook over a cache with
/// `CacheOptions.fixedLifetime`. Unsafe methods are never answered from it, and remove what is stored for their URI (RFC 9111
/// §4.4).
///
/// **Use.** Make it once and keep it. List it in `Pipeline(hooks:)` below any hook that adds credentials, in a pipeline without
/// a cache of its own.
public struct CachingServiceHook: ServiceHook {
    /// The hook's cache, for purging, inspecting and closing it.
    public var cache: HTTPCache { hook.cache }

    private let hook: CachingHook

    /// A hook over a store that no other cache uses.
    ///
    /// - Parameters:
    ///   - ttl: the greatest age at which a stored response is used; 10 minutes by default, to the millisecond, negative counts
    ///     as zero. If a store outlives the process, the `ttl` of the hook that opens it applies.
    ///   - store: where responses are kept; 32 MiB in memory by default.
    public init(ttl: Duration = .seconds(600), store: any CacheStore = MemoryStore(capacity: 32 << 20)) {
        self.init(HTTPCache(store: store, options: CachingServiceHook.options(ttl)))
    }

    /// A hook over a store on disk, whose responses survive a restart.
    ///
    /// - Parameters:
    ///   - directory: as in ``HTTPCache/onDisk(at:capacity:entryLimit:seal:options:)``.
    ///   - ttl: as in ``init(ttl:store:)``.
    ///   - capacity: the most bytes on disk; 256 MiB by default, at least 1 MiB.
    ///   - seal: encrypts what is written; nil, the default, writes it as it is.
    /// - Throws: `StoreError`: `.locked` if another process has it open, `.unsafeDirectory`, `.io`, `.noSpace`.
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

    private init(_ cache: HTTPCache) { hook = CachingHook(cache) }

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
