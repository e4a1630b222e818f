// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
public import HoldfastSemantics
public import HoldfastStorage

/// A sequence of requests, each with a key and a size, for measuring hit rates.
///
/// Keys are numbered by first appearance. 8 bytes for each request, 16 more if there are times or lives, and some 40 for each key.
/// ``encoded`` describes the file format.
public struct RequestTrace: Sendable {
    /// One request.
    public struct Request: Sendable, Hashable {
        /// The number of the key: 0 for the first one, and so on.
        public let key: UInt32
        /// Bytes.
        public let size: UInt32

        /// A request for a key by its number.
        public init(key: UInt32, size: UInt32) {
            self.key = key
            self.size = size
        }
    }

    /// When requests were made, and how long their responses live.
    struct Times: Sendable {
        var instants: [StoreInstant] = []
        var freshUntil: [StoreInstant] = []
    }

    /// The requests in their order.
    public private(set) var requests: [Request] = []
    /// Bytes of all requests.
    public private(set) var totalBytes = 0
    /// Bytes of all keys, each with the size of its first request.
    public private(set) var uniqueBytes = 0
    /// Requests whose size differs from that of the key's previous request, and their bytes: another version was requested.
    public private(set) var changes = 0
    public private(set) var changedBytes = 0
    /// Empty unless a request has a time or a life; otherwise one item for each request.
    private(set) var times = Times()
    private var numbers: KeyNumbers
    private var lastSizes: [UInt32] = []

    /// No requests.
    public init() { numbers = KeyNumbers() }

    /// No requests, and fewer possible keys, for tests of exhausted numbers.
    init(maximumKeys: Int) { numbers = KeyNumbers(maximum: maximumKeys) }

    /// How many keys there are.
    public var keyCount: Int { numbers.count }

    /// Whether requests have times or lives, so that copies may be past theirs.
    package var hasLives: Bool { !times.freshUntil.isEmpty }

    /// The share of hits in an unlimited cache: no policy does better. Lives are ignored.
    public var unboundedObjectHitRatio: Double {
        requests.isEmpty ? 0 : Double(requests.count - keyCount - changes) / Double(requests.count)
    }

    /// The share of requested bytes that are hits in an unlimited cache. Lives are ignored.
    public var unboundedByteHitRatio: Double {
        totalBytes > 0 ? Double(totalBytes - uniqueBytes - changedBytes) / Double(totalBytes) : 0
    }

    /// Appends a request.
    ///
    /// - Parameters:
    ///   - key: any number, such as a hash of a URL. It gets a number of its own.
    ///   - size: bytes. A size that differs from the key's previous request means another version: see ``HitRateSimulator``.
    ///   - instant: when; nil: at the same time as the previous request. Times may start anywhere.
    ///   - freshUntil: when the response to this request is past its life; nil: never.
    /// - Returns: false if the request was skipped because there are more than 2^32 - 1 keys.
    @discardableResult
    public mutating func append(
        key: UInt64,
        size: UInt32,
        at instant: StoreInstant? = nil,
        freshUntil: StoreInstant? = nil
    ) -> Bool {
        guard let number = numbers.number(of: key) else { return false }
        if number < lastSizes.count {
            if lastSizes[Int(number)] != size {
                lastSizes[Int(number)] = size
                changes += 1
                changedBytes += Int(size)
            }
        } else {
            lastSizes.append(size)
            uniqueBytes += Int(size)
        }
        if instant != nil || freshUntil != nil || hasLives { note(instant, freshUntil: freshUntil) }
        totalBytes += Int(size)
        requests.append(Request(key: number, size: size))
        return true
    }

    /// Appends a request whose key is a name, such as a URL; see ``hash(of:)``.
    @discardableResult
    public mutating func append(
        name: String,
        size: UInt32,
        at instant: StoreInstant? = nil,
        freshUntil: StoreInstant? = nil
    ) -> Bool {
        append(key: Self.hash(of: name.utf8), size: size, at: instant, freshUntil: freshUntil)
    }

    /// A number for a key's bytes: the same on every system, and hardly ever the same for two keys.
    ///
    /// It does not hide the key: anyone who knows the name can check whether it occurs. 64-bit FNV-1a (Fowler, Noll and Vo), with
    /// its bits mixed.
    public static func hash(of bytes: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return SplitMix64.mixed(hash)
    }

    /// Adds the time and the life of the next request, and those of earlier requests, which had none.
    private mutating func note(_ instant: StoreInstant?, freshUntil: StoreInstant?) {
        if times.instants.isEmpty {
            let first = instant ?? StoreInstant(milliseconds: 0)
            times.instants = Array(repeating: first, count: requests.count)
            times.freshUntil = Array(repeating: .distantFuture, count: requests.count)
        }
        times.instants.append(instant ?? times.instants.last ?? StoreInstant(milliseconds: 0))
        times.freshUntil.append(freshUntil ?? .distantFuture)
    }

    /// Makes room for this many more requests.
    mutating func reserve(_ count: Int) {
        requests.reserveCapacity(requests.count + count)
    }

    /// Appends a request as the cache would look it up, from a log of heads and lengths.
    ///
    /// The key is the one that a cache with these options makes: without fragment, with the rules for queries applied, and with a
    /// separate cache for each principal. It is hashed with a known function: anyone who has a URL can find out from a trace file
    /// whether it was requested.
    ///
    /// - Parameters:
    ///   - request: only GET is added: HEAD has no body, and responses to other methods are not found by their URL.
    ///   - bodyLength: bytes of the whole body as it would be stored, even if the request asked for a part. From 4 GiB it counts as
    ///     4 GiB minus one byte, a negative one as 0. A length other than before means another version.
    ///   - options: the cache's options; only the rules for keys matter.
    ///   - principal: whose request it is; "" for everyone's.
    ///   - variant: what the response's Vary nominates of the request; nothing by default.
    ///   - instant: when; nil: at the same time as the previous request.
    ///   - freshUntil: when the response stops being fresh; nil: never.
    /// - Returns: false if the request was skipped.
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
        let key = CacheKey(
            partition: principal,
            method: .get,
            target: options.keyTarget(of: request.target),
            contentType: options.keyFieldText(of: request.fields, to: request.target, secret: [])
        )
        return append(
            key: Self.hash(of: key.framed + variant.framed),
            size: UInt32(clamping: bodyLength),
            at: instant.map { StoreInstant(milliseconds: $0.millisecondsSinceEpoch) },
            freshUntil: freshUntil.map { StoreInstant(milliseconds: $0.millisecondsSinceEpoch) }
        )
    }
}

/// Numbers keys from 0, in the order of their first appearance.
struct KeyNumbers: Sendable {
    private var numbers: [UInt64: UInt32] = [:]
    private let maximum: Int

    /// No numbers assigned yet; the largest 32-bit number is never assigned, since tables use it for "none".
    init(maximum: Int = Int(UInt32.max)) { self.maximum = maximum }

    /// How many keys have a number.
    var count: Int { numbers.count }

    /// The number of a key, assigned if it has none; nil if the numbers are exhausted.
    mutating func number(of key: UInt64) -> UInt32? {
        if let known = numbers[key] { return known }
        guard numbers.count < maximum else { return nil }
        let number = UInt32(numbers.count)
        numbers[key] = number
        return number
    }
}
