// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast
public import HoldfastSemantics
public import HoldfastStorage

/// A sequence of requests, each of a key and a size, to measure hit rates with.
///
/// Keys are numbered by first appearance. 8 bytes a request, 16 more where times or lives are given, and some 40 a key.
/// encoded says how a file holds it.
public struct RequestTrace: Sendable {
    /// One request.
    public struct Request: Sendable, Hashable {
        /// The number of the key: 0 for the first that appeared, and so on.
        public let key: UInt32
        /// Bytes.
        public let size: UInt32

        /// A request for a key by its number.
        public init(key: UInt32, size: UInt32) {
            self.key = key
            self.size = size
        }
    }

    /// When requests were made and how long their answers live.
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
    /// Requests whose size is not that of the request for the same key before, and their bytes: another version was asked for.
    public private(set) var changes = 0
    public private(set) var changedBytes = 0
    /// Empty unless a request has a time or a life; else one item a request.
    private(set) var times = Times()
    private var numbers: KeyNumbers
    private var lastSizes: [UInt32] = []

    /// No requests.
    public init() {
        numbers = KeyNumbers()
    }

    /// No requests, and room for fewer keys, for tests of what happens at the end of the numbers.
    init(maximumKeys: Int) {
        numbers = KeyNumbers(maximum: maximumKeys)
    }

    /// How many keys there are.
    public var keyCount: Int { numbers.count }

    /// Whether requests have times or lives, so that copies may be found past theirs.
    public var hasLives: Bool { !times.freshUntil.isEmpty }

    /// Hits of all requests in a cache without a bound: no policy does better. Lives are left out of account.
    public var unboundedObjectHitRatio: Double {
        requests.isEmpty ? 0 : Double(requests.count - keyCount - changes) / Double(requests.count)
    }

    /// Bytes hit of all bytes requested in a cache without a bound. Lives are left out of account.
    public var unboundedByteHitRatio: Double {
        totalBytes > 0 ? Double(totalBytes - uniqueBytes - changedBytes) / Double(totalBytes) : 0
    }

    /// Adds a request at the end.
    ///
    /// - Parameters:
    ///   - key: any number, such as a hash of a URL. It is numbered anew.
    ///   - size: bytes. Another size than at the key's request before means another version: see ``HitRateSimulator``.
    ///   - instant: when; nil: with the request before. Times may begin anywhere.
    ///   - freshUntil: when the answer to this request is past its life; nil: never.
    /// - Returns: false when the request was left out because there are more than 2^32 - 1 keys.
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

    /// Adds a request at the end whose key is a name, such as a URL; see ``hash(of:)``.
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
    /// It hides nothing: who knows the name can check whether it is there. FNV-1a of 64 bits (Fowler, Noll and Vo), its bits mixed.
    public static func hash(of bytes: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return SplitMix64.mixed(hash)
    }

    /// Adds the time and the life of the request that comes next, and those of the requests before, which had none.
    private mutating func note(_ instant: StoreInstant?, freshUntil: StoreInstant?) {
        if times.instants.isEmpty {
            let first = instant ?? StoreInstant(milliseconds: 0)
            times.instants = Array(repeating: first, count: requests.count)
            times.freshUntil = Array(repeating: .distantFuture, count: requests.count)
        }
        times.instants.append(instant ?? times.instants.last ?? StoreInstant(milliseconds: 0))
        times.freshUntil.append(freshUntil ?? .distantFuture)
    }

    /// Makes room for so many requests more.
    mutating func reserve(_ count: Int) {
        requests.reserveCapacity(requests.count + count)
    }

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

/// Numbers keys from 0 on in the order in which they come up.
struct KeyNumbers: Sendable {
    private var numbers: [UInt64: UInt32] = [:]
    private let maximum: Int

    /// Nothing numbered yet; the last number of 32 bits is never given, since tables by number use it for "none".
    init(maximum: Int = Int(UInt32.max)) {
        self.maximum = maximum
    }

    /// How many keys have a number.
    var count: Int { numbers.count }

    /// The number of a key, a new one if it has none; nil when the numbers are used up.
    mutating func number(of key: UInt64) -> UInt32? {
        if let known = numbers[key] { return known }
        guard numbers.count < maximum else { return nil }
        let number = UInt32(numbers.count)
        numbers[key] = number
        return number
    }
}
