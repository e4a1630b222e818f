// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// The ready answers of a cache: a table of a fixed number of sets in each of two stripes of threads, two answers a set.
///
/// What wants a place that another one has gets it one time in sixteen, and takes that of the answer that was found longer ago.
/// Where more URLs are asked for than there are places, most requests are so spared the making of an answer that nobody would
/// find, and what is asked for often stays (bimodal insertion; Qureshi et al., ISCA 2007).
///
/// Each stripe has answers of its own, so that threads that want the same one wait less for each other's counts of references.
final class ReadyAnswers: Sendable {
    private struct Pair: Sendable {
        /// The one that was found last.
        var first: ReadyAnswer?
        var second: ReadyAnswer?
        /// How often a place was wanted and none was free.
        var wishes: UInt8 = 0
    }

    private typealias Place = Mutex<Pair>

    private static let stripes = 2
    /// One set for so many bytes of the store: a ready answer takes about 1.5 KiB.
    private static let bytesPerSet = 32 << 10
    private static let wishesPerPlace: UInt8 = 16
    /// Entries whose key, variant and metadata are longer go the long way, so that the table stays within a small part of the store.
    static let longestHead = 8 << 10

    /// How many sets a stripe has.
    private let count: Int
    private let seed = UInt64.random(in: .min ... .max)
    // Proof: set in `init`, and never again; what it points to is filled there, Sendable, and freed in `deinit`, when nobody can reach
    // it any more. ReadyAnswersTests uses it from many threads.
    private nonisolated(unsafe) let sets: UnsafeMutablePointer<Place>

    /// - Parameter capacity: what the store holds at most, in bytes; nil: nothing is kept.
    init(capacity: Int?) {
        count = capacity.map { min(max($0 / ReadyAnswers.bytesPerSet, 64), 4096) } ?? 0
        sets = .allocate(capacity: count * ReadyAnswers.stripes)
        for index in 0..<count * ReadyAnswers.stripes { sets.advanced(by: index).initialize(to: Mutex(Pair())) }
    }

    deinit {
        sets.deinitialize(count: count * ReadyAnswers.stripes)
        sets.deallocate()
    }

    /// What was kept for a URL, if it still has its place.
    ///
    /// - Parameter stripe: the caller's, one of those of ``CacheMeter``; the same for what it finds and what it keeps.
    func answer(for url: String, stripe: Int) -> ReadyAnswer? {
        guard count > 0 else { return nil }
        return set(of: url, stripe).pointee.withLock { pair in
            if let first = pair.first, first.url == url { return first }
            if let second = pair.second, second.url == url {
                swap(&pair.first, &pair.second)
                return second
            }
            return nil
        }
    }

    /// Whether an answer for a URL would be given a place now; counts as a wish for one.
    func hasPlace(for url: String, stripe: Int) -> Bool {
        guard count > 0 else { return false }
        return set(of: url, stripe).pointee.withLock { pair in
            if pair.first == nil || pair.second == nil || pair.first?.url == url || pair.second?.url == url {
                return true
            }
            pair.wishes &+= 1
            return pair.wishes % ReadyAnswers.wishesPerPlace == 0
        }
    }

    /// Keeps an answer, in the place of an older one of its URL, or of the one of its set that was found longer ago.
    func keep(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        set(of: answer.url, stripe).pointee.withLock { pair in
            if pair.first == nil || pair.first?.url == answer.url {
                pair.first = answer
            } else {
                pair.second = answer
            }
        }
    }

    /// Lets go of an answer whose entry is gone, so that it is not looked for again.
    func giveUp(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        set(of: answer.url, stripe).pointee.withLock { pair in
            if pair.first === answer { pair.first = nil }
            if pair.second === answer { pair.second = nil }
        }
    }

    private func set(of url: String, _ stripe: Int) -> UnsafeMutablePointer<Place> {
        var url = url
        let hash = url.withUTF8 { HeadHash.of(UnsafeRawBufferPointer($0), seed: seed) }
        return sets.advanced(by: stripe % ReadyAnswers.stripes * count + Int(hash % UInt64(count)))
    }
}
