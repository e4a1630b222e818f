// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics

    /// What a cache decided last for a URL, for as many URLs as there are places: two that share a place take it from each other.
    struct LastDecisions: Sendable {
        /// A decision and when it was made.
        struct Noted: Sendable {
            let decision: CacheDecision
            let time: Timestamp
        }

        private struct Place: Sendable {
            let hash: Int
            let noted: Noted
        }

        /// How many places there are; a power of two.
        static let limit = 4096

        private var places = [Place?](repeating: nil, count: LastDecisions.limit)

        mutating func note(_ decision: CacheDecision, hash: Int, time: Timestamp) {
            places[LastDecisions.index(hash)] = Place(hash: hash, noted: Noted(decision: decision, time: time))
        }

        func last(hash: Int) -> Noted? {
            guard let place = places[LastDecisions.index(hash)], place.hash == hash else { return nil }
            return place.noted
        }

        /// The hash of a URL, by which it is known.
        static func hash(_ url: String) -> Int {
            var url = url
            return url.withUTF8 { bytes in
                var hasher = Hasher()
                hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
                return hasher.finalize()
            }
        }

        private static func index(_ hash: Int) -> Int { hash & (limit - 1) }
    }
#endif
