// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which entries are requested, out of how many, by how many threads at the same time, and how.
struct ScaleCase: Sendable, Hashable {
    /// What is called.
    enum Face: Sendable {
        /// Only the store: a look-up and the body.
        case lookUp
        /// A whole cached call.
        case send
    }

    let face: Face
    let isHot: Bool
    let entries: Int
    let threads: Int
    let name: String

    /// The numbers of concurrent threads.
    static let threadCounts = [1, 2, 4, 8]
    /// The numbers of entries for the store alone.
    static let sizes = [10_000, 100_000, 1_000_000, 10_000_000]
    /// The numbers of entries for a cache in a pipeline, where each entry is stored by a call.
    static let sendSizes = [10_000, 100_000]

    /// All cases; those with several threads use this many entries.
    static func all(threadEntries: Int) -> [ScaleCase] {
        [true, false].flatMap { isHot in
            let keys = isHot ? "hot" : "uniform"
            return threadCounts.map { ScaleCase(.lookUp, isHot, threadEntries, threads: $0, "\(keys)@\($0)") }
                + sizes.map { ScaleCase(.lookUp, isHot, $0, threads: 1, "\(keys)-\(sizeName($0))") }
                + sendSizes.map { ScaleCase(.send, isHot, $0, threads: 1, "send-\(keys)-\(sizeName($0))") }
        }
    }

    /// A number of entries in a name: `10k`, `1M`.
    static func sizeName(_ entries: Int) -> String {
        entries % 1_000_000 == 0
            ? "\(entries / 1_000_000)M" : entries % 1_000 == 0 ? "\(entries / 1_000)k" : "\(entries)"
    }

    private init(_ face: Face, _ isHot: Bool, _ entries: Int, threads: Int, _ name: String) {
        (self.face, self.isHot, self.entries, self.threads, self.name) = (face, isHot, entries, threads, name)
    }
}
