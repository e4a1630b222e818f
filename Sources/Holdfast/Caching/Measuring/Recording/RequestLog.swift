// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Requests as they are recorded: keys and sizes in blocks, so that it grows without being copied; it takes no more once full.
package struct RequestLog: Sendable {
    /// Where a request stands whose size is not known yet.
    struct Place: Sendable {
        /// Nil: the request is not of the sample, and only its bytes count.
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
    /// All requests that came by, those that are not of the sample included, and the bytes of all.
    package private(set) var seen = 0
    package private(set) var seenBytes = 0

    init(limit: Int) {
        self.limit = max(0, limit)
    }

    /// Whether no more is taken; then nothing is counted either, so that what was seen is what the sample was drawn from.
    var isFull: Bool { count >= limit }

    /// Notes a request.
    ///
    /// - Parameter key: nil where it is not of the sample.
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

    /// Hands out every request in its order.
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
