// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
private import Synchronization

/// The ready answers of a cache: a table of a fixed number of sets in each of two stripes of threads, each set holding the two that
/// were asked for last.
///
/// Each stripe has answers of its own, so that threads that want the same one wait less for each other's counts of references.
final class ReadyAnswers: Sendable {
    private struct Pair: Sendable {
        var first: ReadyAnswer?
        var second: ReadyAnswer?
    }

    private typealias Place = Mutex<Pair>

    private static let stripes = 2
    /// One set for so many bytes of the store: a ready answer takes about 1.5 KiB.
    private static let bytesPerSet = 32 << 10
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
            if let second = pair.second, second.url == url { return second }
            return nil
        }
    }

    /// Keeps an answer, in the place of the one of its set that came earlier.
    func keep(_ answer: ReadyAnswer, stripe: Int) {
        guard count > 0 else { return }
        set(of: answer.url, stripe).pointee.withLock { pair in
            if pair.first?.url != answer.url { pair.second = pair.first }
            pair.first = answer
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
