// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastStorage
private import Synchronization

/// Records a sample of the requests that a cache sees, so that a simulator can tell what caches of other sizes, or with other
/// policies, would have made of them.
///
///     let recorder = HitRateRecorder(rate: 0.1)
///     cache.record(with: recorder)
///     // ... hours of traffic later:
///     print(recorder.estimate(capacities: [256 << 20]))  // import HoldfastSimulation
///
/// **What counts as a request.** One that was looked up and answered from the store, fresh, stale or after a 304, or by a response
/// that may be stored, that of another call's exchange included. Left out are bypasses, failures, and what may never be stored:
/// no cache of any size could answer these. The key is made of primary key, variant and the response's validator, so that a new
/// version of a resource is no hit; without a validator, a response counts as a new one in each period as long as its freshness
/// lifetime. The size is what the memory store would charge, and of a body of unknown length what was read of it.
///
/// **Sampling** is by key: a URL with all its requests is in or out (SHARDS, Waldspurger et al. 2015). A cache of a size then does
/// to all requests as one of `rate` times that size does to the sample.
///
/// **Privacy.** Keys are hashed with a secret of the recorder's own that leaves it in no way. Sizes and order stand in the file
/// as they are.
///
/// **Bounds.** Twelve bytes a request; a full recorder takes no more. A call waits for nothing but a short lock. May be used from
/// any thread, and by several caches at once, which are then one.
public final class HitRateRecorder: Sendable {
    /// The share of all keys that are recorded, above 0 and at most 1.
    public let rate: Double
    /// How many requests are recorded at most.
    public let maximumRequests: Int

    private let hash: KeyedHash
    /// Keys whose hashes are at most this are of the sample.
    private let threshold: UInt64
    private let log: Mutex<RequestLog>

    /// A recorder of nothing yet.
    ///
    /// - Parameters:
    ///   - rate: the share of keys to record; 1, the default: all. What is less than a millionth counts as that.
    ///   - maximumRequests: how many requests are recorded at most; a million by default, which take 12 MB.
    ///   - secret: what keys are hashed with, to be given where the files of several recorders are to name the same keys alike;
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

    /// Whether as many requests are recorded as are wanted, so that no more are taken.
    public var isFull: Bool { log.withLock { $0.isFull } }

    /// How many requests came by until it was full, those included that are not of the sample.
    public var requestsSeen: Int { log.withLock { $0.seen } }

    /// Notes a request: for caches that are none of this library's; an ``HTTPCache`` does it itself.
    ///
    /// - Parameters:
    ///   - key: what names the resource.
    ///   - size: bytes that an entry for it takes.
    public func record(_ key: String, size: Int) {
        var key = key
        let hashed = key.withUTF8 { hash.of(UnsafeRawBufferPointer($0)) }
        _ = note(hashed, 0, 0, size: size)
    }

    /// Writes what is recorded so far as a trace: for each request the key in 8 bytes and the size in 4, little-endian.
    ///
    /// Where the rate is less than 1, a second file of the same name with `.rate` behind it says it in decimal. Percentages of the
    /// unique bytes need it not: one of the sample's is one of the whole's. A capacity in bytes is to be multiplied by it.
    ///
    /// - Parameter file: a file URL; a file that is there is replaced.
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

    /// The rate at which a trace was recorded, as the file beside it says; 1 where there is none.
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

    /// What is held by now.
    package var held: RequestLog { log.withLock { $0 } }

    /// Notes a request for an entry.
    ///
    /// - Returns: where to add the bytes that are not known yet; nil once no more are taken.
    func record(_ entry: RecordedEntry) -> RequestLog.Place? {
        note(
            hash.of(entry.key.bytes),
            hash.of(entry.variant.bytes),
            hash.of(entry.version),
            size: entry.size
        )
    }

    func add(_ bytes: Int, to place: RequestLog.Place) {
        log.withLock { $0.add(bytes, to: place) }
    }

    /// All variants and versions of a resource are of the sample, or none is.
    private func note(_ primary: UInt64, _ variant: UInt64, _ version: UInt64, size: Int) -> RequestLog.Place? {
        let key = primary <= threshold ? hash.of(primary, variant, version) : nil
        return log.withLock { $0.append(key, size: max(0, size)) }
    }
}
