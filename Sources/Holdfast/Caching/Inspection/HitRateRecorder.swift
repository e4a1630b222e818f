// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastSemantics
public import HoldfastStorage
private import Synchronization

/// Records a sample of the requests that a cache sees, so that a simulator can compute what caches with other sizes or policies
/// would have done with them.
///
///     let recorder = HitRateRecorder(rate: 0.1)
///     cache.record(with: recorder)
///     // ... hours of traffic later:
///     print(recorder.estimate(capacities: [256 << 20]))  // import HoldfastSimulation
///
/// **What counts as a request.** One that was looked up and answered from the store (fresh, stale or after a 304), or by a
/// response that may be stored, including that of another call's exchange. Bypasses, failures, and responses that may never be
/// stored are left out: a cache of any size could not answer these. The key consists of primary key, variant and the response's
/// validator, so that a new version of a resource is not a hit; without a validator, a response counts as a new one in each
/// period as long as its freshness lifetime. The size is what the memory store would count; for a body of unknown length, what
/// was read of it.
///
/// **Sampling** is by key: either all requests for a URL are recorded or none (SHARDS, Waldspurger et al. 2015). A cache of a
/// given size then has the same hit ratio for all requests as one of `rate` times that size for the sample.
///
/// **Privacy.** Keys are hashed with a secret that never leaves the recorder. Sizes and order are in the file as they are.
///
/// **Bounds.** Twelve bytes a request; a full recorder takes no more. A call only waits for a short lock. May be used from any
/// thread, and by several caches at once, which then count as one.
public final class HitRateRecorder: Sendable {
    /// The share of all keys that are recorded, above 0 and at most 1.
    public let rate: Double
    /// The most requests that are recorded.
    public let maximumRequests: Int

    private let hash: KeyedHash
    /// Keys whose hashes are at most this are in the sample.
    private let threshold: UInt64
    private let log: Mutex<RequestLog>

    /// An empty recorder.
    ///
    /// - Parameters:
    ///   - rate: the share of keys to record; 1, the default: all. Less than a millionth, also 0 and less, counts as a
    ///     millionth; more than 1, and NaN, count as 1.
    ///   - maximumRequests: the most requests to record; a million by default, which take 12 MB.
    ///   - secret: keys are hashed with it. Set it if the files of several recorders must use the same hash for the same key;
    ///     nil, the default: random, so that nobody can find out which URLs were recorded.
    public init(rate: Double = 1, maximumRequests: Int = 1_000_000, secret: (UInt64, UInt64)? = nil) {
        self.rate = rate < 1 ? max(rate, 0.000_001) : 1
        self.maximumRequests = max(0, maximumRequests)
        threshold = self.rate < 1 ? UInt64(self.rate * 0x1p64) : .max
        var random = SystemRandomNumberGenerator()
        hash = KeyedHash(keys: secret ?? (random.next(), random.next()))
        log = Mutex(RequestLog(limit: self.maximumRequests))
    }

    /// How many requests are recorded.
    public var count: Int { log.withLock { $0.count } }

    /// Whether ``maximumRequests`` are recorded, so that no more are taken.
    public var isFull: Bool { log.withLock { $0.isFull } }

    /// How many requests were seen until the recorder was full, including those that are not in the sample.
    public var requestsSeen: Int { log.withLock { $0.seen } }

    /// Records a request, for caches that are not from this library; an ``HTTPCache`` does it itself.
    ///
    /// - Parameters:
    ///   - key: identifies the resource.
    ///   - size: the bytes that an entry for it takes.
    public func record(_ key: String, size: Int) {
        var key = key
        let hashed = key.withUTF8 { hash.of(UnsafeRawBufferPointer($0)) }
        _ = note(hashed, variant: 0, version: 0, size: size)
    }

    /// Writes what has been recorded so far as a trace: for each request, the key in 8 bytes and the size in 4, little-endian.
    ///
    /// If the rate is less than 1, it is written in decimal to a second file, with `.rate` after the name. Percentages of the
    /// unique bytes do not need it: those of the sample are those of the whole. Multiply a capacity in bytes by it.
    ///
    /// - Parameter file: a file URL; an existing file is replaced.
    /// - Throws: `StoreError` with `.io`.
    public func write(to file: URL) throws(StoreError) {
        var bytes: [UInt8] = []
        let held = held
        bytes.reserveCapacity(held.count * 12)
        held.forEach { key, size in
            withUnsafeBytes(of: key.littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: size.littleEndian) { bytes.append(contentsOf: $0) }
        }
        do {
            try Data(bytes).write(to: file, options: .atomic)
            let note = HitRateRecorder.rateFile(of: file)
            if rate < 1 {
                try Data("\(rate)\n".utf8).write(to: note, options: .atomic)
            } else if FileManager.default.fileExists(atPath: note.path) {
                try FileManager.default.removeItem(at: note)
            }
        } catch {
            throw StoreError(.io, "The trace \(file.path) cannot be written; choose another place.", cause: error)
        }
    }

    /// The rate at which a trace was recorded, read from the file beside it; 1 if there is none.
    ///
    /// - Parameter file: the trace.
    public static func rate(ofTraceAt file: URL) -> Double {
        guard let data = try? Data(contentsOf: rateFile(of: file)), data.count < 64,
            let rate = Double(String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)),
            rate > 0, rate < 1
        else { return 1 }
        return rate
    }

    private static func rateFile(of file: URL) -> URL {
        URL(fileURLWithPath: file.path + ".rate")
    }

    // MARK: Within the library

    /// The requests recorded so far.
    package var held: RequestLog { log.withLock { $0 } }

    /// Records a request for the stored response `stored`, with the size that a store counts.
    ///
    /// - Parameter bodyLength: 0 if it is not known yet.
    /// - Returns: where to add bytes that are not known yet; nil if the recorder is full.
    func record(
        _ stored: StoredResponse,
        key: StoreKey,
        variant: StoreKey,
        description: EntryDescription,
        bodyLength: Int,
        options: CacheOptions
    ) -> RequestLog.Place? {
        let tags = description.tags.reduce(0) { $0 + $1.utf8.count }
        let head = MemoryStore.overhead + key.bytes.count + variant.bytes.count + description.metadata.count + tags
        return note(
            hash.of(key.bytes),
            variant: hash.of(variant.bytes),
            version: hash.of(HitRateRecorder.version(of: stored, options)),
            size: head.addingSaturating(max(0, bodyLength))
        )
    }

    /// Distinguishes a response from later ones of the same variant: the validator, since a response that returns with another one
    /// would be a miss for a cache of any size.
    ///
    /// Without a validator, a response cannot be confirmed and is fetched again once it is stale: in each period as long as its
    /// lifetime it counts as another one, so that two requests further apart never look like a hit.
    private static func version(of stored: StoredResponse, _ options: CacheOptions) -> [UInt8] {
        if let validator = stored.head.fields[.eTag] ?? stored.head.fields[.lastModified] {
            return Array(validator.utf8)
        }
        let period = max(1, stored.freshnessLifetime(options).seconds)
        return Array("\(stored.date.secondsSinceEpoch / period)".utf8)
    }

    func add(_ bytes: Int, to place: RequestLog.Place) {
        log.withLock { $0.add(bytes, to: place) }
    }

    /// Either all variants and versions of a resource are in the sample, or none.
    private func note(_ primary: UInt64, variant: UInt64, version: UInt64, size: Int) -> RequestLog.Place? {
        let key = primary <= threshold ? hash.of(primary, variant, version) : nil
        return log.withLock { $0.append(key, size: max(0, size)) }
    }
}

extension HTTPCache {
    /// Passes every request to `recorder` from now on, instead of an earlier recorder; nil ends the recording.
    ///
    /// A request costs a fraction of a microsecond more while a recorder is set.
    public func record(with recorder: HitRateRecorder?) {
        recording.set(recorder)
    }
}

/// The recorder of a cache, if there is one; finding that there is none takes no lock.
final class Recording: Sendable {
    private let isOn = Atomic(false)
    private let current = Mutex<HitRateRecorder?>(nil)

    /// Whether there is one.
    var isUnderWay: Bool { isOn.load(ordering: .acquiring) }

    /// The recorder that currently receives requests.
    var recorder: HitRateRecorder? {
        isUnderWay ? current.withLock { $0 } : nil
    }

    func set(_ recorder: HitRateRecorder?) {
        current.withLock { current in
            current = recorder
            isOn.store(recorder != nil, ordering: .releasing)
        }
    }
}

/// Recording the requests that reach the cache.
extension CachingHook {
    /// Records a request that is answered from the store.
    func record(_ loaded: LoadedResponse) {
        guard let recorder = cache.recording.recorder else { return }
        let entry = loaded.entry
        _ = recorder.record(
            loaded.stored,
            key: entry.key,
            variant: entry.variant,
            description: entry.description,
            bodyLength: entry.bodyLength,
            options: cache.options
        )
    }

    /// Records a request that is answered by an exchange; a response that may not be stored is no request that a cache could
    /// answer.
    func record(_ outcome: ResponseOutcome, response: inout Response) {
        if let loaded = outcome.loaded { return record(loaded) }
        guard let recorder = cache.recording.recorder, let entry = outcome.entry else { return }
        let length = entry.bodyLength ?? response.body.length
        let place = recorder.record(
            entry.stored,
            key: entry.key,
            variant: entry.variant,
            description: entry.description,
            bodyLength: length ?? 0,
            options: cache.options
        )
        guard length == nil, let place, let source = response.body.source else { return }
        response.body = ResponseBody(WatchedBody(source, received: { recorder.add($0.count, to: place) }))
    }
}

/// Recorded requests: keys and sizes in blocks, so that it grows without being copied; it accepts no more once full.
package struct RequestLog: Sendable {
    /// The place of a request whose size is not known yet.
    struct Place: Sendable {
        /// Nil: the request is not in the sample, and only its bytes count.
        fileprivate let index: Int?
    }

    private struct Block: Sendable {
        static let length = 4096
        var keys: [UInt64] = []
        var sizes: [UInt32] = []

        init() {
            keys.reserveCapacity(Block.length)
            sizes.reserveCapacity(Block.length)
        }
    }

    private let limit: Int
    private var blocks: [Block] = []
    /// How many requests are held.
    package private(set) var count = 0
    /// All requests, including those that are not in the sample, and the bytes of all.
    package private(set) var seen = 0
    package private(set) var seenBytes = 0

    init(limit: Int) { self.limit = max(0, limit) }

    /// Whether it is full; then nothing is counted either, so that the counts match what the sample was drawn from.
    var isFull: Bool { count >= limit }

    /// Records a request.
    ///
    /// - Parameter key: nil if it is not in the sample.
    mutating func append(_ key: UInt64?, size: Int) -> Place? {
        guard !isFull else { return nil }
        seen += 1
        seenBytes = seenBytes.addingSaturating(size)
        guard let key else { return Place(index: nil) }
        if count % Block.length == 0 { blocks.append(Block()) }
        blocks[count / Block.length].keys.append(key)
        blocks[count / Block.length].sizes.append(UInt32(clamping: size))
        count += 1
        return Place(index: count - 1)
    }

    /// Adds to the size of a request.
    mutating func add(_ bytes: Int, to place: Place) {
        seenBytes = seenBytes.addingSaturating(bytes)
        guard let index = place.index else { return }
        let (block, offset) = index.quotientAndRemainder(dividingBy: Block.length)
        let size = Int(blocks[block].sizes[offset]).addingSaturating(bytes)
        blocks[block].sizes[offset] = UInt32(clamping: size)
    }

    /// Passes every request to `body`, in order.
    package func forEach(_ body: (_ key: UInt64, _ size: UInt32) -> Void) {
        for block in blocks {
            for (key, size) in zip(block.keys, block.sizes) { body(key, size) }
        }
    }
}

extension Int {
    fileprivate func addingSaturating(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
