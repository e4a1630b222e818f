// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
public import HoldfastSemantics
internal import HoldfastStorage

extension RequestTrace {
    /// Adds a request as the cache would look it up, from a log of heads and lengths.
    ///
    /// The key is the one that a cache with these options makes: fragments are gone, the rules for queries are applied, each
    /// principal is a cache by itself. It is hashed by a function that anyone can repeat: a file of the trace tells who has the
    /// URL at hand that it was asked for.
    ///
    /// - Parameters:
    ///   - request: only GET is added: HEAD has no body, and other answers are not found by their URL.
    ///   - bodyLength: bytes of the whole body as it would be stored, also where the request asked for a part; from 4 GiB on it
    ///     counts as 4 GiB less one byte, a negative one as 0. Another length than before means another version.
    ///   - options: those of the cache; only the rules for keys count.
    ///   - principal: whose request it is; "" for everyone's.
    ///   - variant: what the response's Vary nominates of the request; nothing by default.
    ///   - instant: when; nil: with the request before.
    ///   - freshUntil: when the response is past its freshness; nil: never.
    /// - Returns: false when the request was left out.
    @discardableResult
    public mutating func append(
        _ request: RequestHead,
        bodyLength: Int,
        options: CacheOptions = CacheOptions(),
        principal: String = "",
        variant: NominatedFields = NominatedFields(),
        at instant: Timestamp? = nil,
        freshUntil: Timestamp? = nil
    ) -> Bool {
        guard request.method == .get else { return false }
        let key = CacheKey(partition: principal, method: .get, target: options.keyTarget(of: request.target))
        return append(
            key: Self.hash(of: key.framed + variant.framed),
            size: UInt32(clamping: bodyLength),
            at: instant.map { StoreInstant(milliseconds: $0.millisecondsSinceEpoch) },
            freshUntil: freshUntil.map { StoreInstant(milliseconds: $0.millisecondsSinceEpoch) }
        )
    }
}
