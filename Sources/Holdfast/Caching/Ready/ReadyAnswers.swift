// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// The ready answers of a cache: a table of a fixed number of places in each of a few stripes of threads, each place holding what
/// was asked for last.
///
/// Each stripe has answers of its own, so that threads that want the same one do not wait for each other's counts of references.
final class ReadyAnswers: Sendable {
    private typealias Place = Mutex<ReadyAnswer?>

    private static let stripes = CacheMeter.stripeCount
    /// One place for so many bytes of the store: a ready answer takes about 2 KiB.
    private static let bytesPerPlace = 128 << 10
    /// Entries whose key, variant and metadata are longer go the long way, so that the table stays within a small part of the store.
    static let longestHead = 8 << 10

    private let count: Int
    private let seed = UInt64.random(in: .min ... .max)
    // Proof: set in `init`, and never again; what it points to is filled there, Sendable, and freed in `deinit`, when nobody can reach
    // it any more. ReadyAnswersTests uses it from many threads.
    private nonisolated(unsafe) let places: UnsafeMutablePointer<Place>

    /// - Parameter capacity: what the store holds at most, in bytes; nil: nothing is kept.
    init(capacity: Int?) {
        count = capacity.map { min(max($0 / ReadyAnswers.bytesPerPlace, 64), 4096) } ?? 0
        places = .allocate(capacity: count * ReadyAnswers.stripes)
        for index in 0..<count * ReadyAnswers.stripes { places.advanced(by: index).initialize(to: Mutex(nil)) }
    }

    deinit {
        places.deinitialize(count: count * ReadyAnswers.stripes)
        places.deallocate()
    }

    /// What was kept for a URL, if it still has its place.
    ///
    /// - Parameter stripe: the caller's, one of those of ``CacheMeter``; the same for what it finds and what it keeps.
    func answer(for url: String, stripe: Int) -> ReadyAnswer? {
        guard count > 0 else { return nil }
        let found = place(of: url, stripe).pointee.withLock { $0 }
        return found?.url == url ? found : nil
    }

    /// Keeps an answer in the place of another.
    func keep(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        place(of: answer.url, stripe).pointee.withLock { $0 = answer }
    }

    /// Lets go of an answer whose entry is gone, so that it is not looked for again.
    func giveUp(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        place(of: answer.url, stripe).pointee.withLock { kept in
            if kept === answer { kept = nil }
        }
    }

    private func place(of url: String, _ stripe: Int) -> UnsafeMutablePointer<Place> {
        var url = url
        let hash = url.withUTF8 { HeadHash.of(UnsafeRawBufferPointer($0), seed: seed) }
        return places.advanced(by: stripe * count + Int(hash % UInt64(count)))
    }
}
