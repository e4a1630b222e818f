// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

extension SimulatedFileSystem {
    /// The bytes of one file: as they are read, and what the device surely holds of them.
    struct Content: Sendable {
        static let blockSize = 4_096
        /// What a device writes whole or not at all.
        static let sectorSize = 512
        /// Beyond this no file may reach.
        static let sizeLimit = 1 << 44
        private static let zeros = [UInt8](repeating: 0, count: blockSize)

        /// A change since the last sync, in the order of the changes.
        private enum Change: Sendable {
            case bytes(ByteChunk, at: Int)
            case zeros(Range<Int>)

            var range: Range<Int> {
                switch self {
                case .bytes(let bytes, let offset): offset..<(offset + bytes.count)
                case .zeros(let range): range
                }
            }
        }

        private(set) var size = 0
        private var blocks: [Int: [UInt8]] = [:]
        private var syncedSize = 0
        private var syncedBlocks: [Int: [UInt8]] = [:]
        private var changes: [Change] = []
        private let isRecorded: Bool

        init(isRecorded: Bool) {
            self.isRecorded = isRecorded
        }

        /// Blocks that the file occupies; holes are none.
        var blockCount: Int { blocks.count }

        /// The bytes of `range` that fit when `free` more blocks may be taken, counted from its start.
        func fitting(_ range: Range<Int>, free: Int) -> Int {
            guard !range.isEmpty else { return 0 }
            var free = free
            for block in (range.lowerBound / Self.blockSize)...((range.upperBound - 1) / Self.blockSize)
            where blocks[block] == nil {
                if free == 0 { return max(0, block * Self.blockSize - range.lowerBound) }
                free -= 1
            }
            return range.count
        }

        func read(from offset: Int, count: Int) -> [UInt8] {
            guard offset < size else { return [] }
            let range = offset..<(offset + min(count, size - offset))
            return Self.bytes(in: range, of: blocks)
        }

        mutating func write(_ bytes: ByteChunk, at offset: Int) {
            guard !bytes.isEmpty else { return }
            Self.put(bytes, at: offset, in: &blocks)
            size = max(size, offset + bytes.count)
            if isRecorded { changes.append(.bytes(bytes, at: offset)) }
        }

        mutating func resize(to newSize: Int) {
            if newSize < size {
                if isRecorded { changes.append(.zeros(newSize..<size)) }
                Self.cut(&blocks, to: newSize)
            }
            size = newSize
        }

        /// Takes the blocks of all bytes before `end`.
        mutating func reserve(to end: Int) {
            guard end > 0 else { return }
            for block in 0...((end - 1) / Self.blockSize) where blocks[block] == nil { blocks[block] = Self.zeros }
            size = max(size, end)
        }

        mutating func sync() {
            guard isRecorded else { return }
            syncedSize = size
            syncedBlocks = blocks
            changes = []
        }

        /// What a loss of power leaves: each sector after any number of its changes, from none to all.
        ///
        /// Every other file fares alike in all its sectors, since such losses are the common ones.
        func afterPowerLoss(using generator: inout some RandomNumberGenerator) -> Content {
            guard isRecorded else { return self }
            let mood = Int.random(in: 0..<4, using: &generator)
            let sizes = [
                syncedSize, size, Int.random(in: min(syncedSize, size)...max(syncedSize, size), using: &generator),
            ]
            var left = Content(isRecorded: true)
            left.blocks = syncedBlocks
            left.size = mood < 2 ? sizes[mood] : sizes[Int.random(in: 0..<3, using: &generator)]
            let histories = changesBySector()
            for sector in histories.keys.sorted() {
                guard let history = histories[sector] else { continue }
                let kept =
                    switch mood {
                    case 0: 0
                    case 1: history.count
                    default: Int.random(in: 0...history.count, using: &generator)
                    }
                let start = sector * Self.sectorSize
                for index in history.prefix(kept) {
                    let part = changes[index].range.clamped(to: start..<(start + Self.sectorSize))
                    Self.put(piece(of: changes[index], part), at: part.lowerBound, in: &left.blocks)
                }
            }
            Self.cut(&left.blocks, to: left.size)
            left.sync()
            return left
        }

        private func piece(of change: Change, _ range: Range<Int>) -> ByteChunk {
            switch change {
            case .bytes(let bytes, let offset): bytes[(range.lowerBound - offset)..<(range.upperBound - offset)]
            case .zeros: ByteChunk(Array(repeating: 0, count: range.count))
            }
        }

        private func changesBySector() -> [Int: [Int]] {
            let perBlock = Self.blockSize / Self.sectorSize
            // Zeros matter only where there was something: a cut may reach over a vast hole.
            var histories: [Int: [Int]] = [:]
            for block in syncedBlocks.keys {
                for sector in 0..<perBlock { histories[block * perBlock + sector] = [] }
            }
            for (index, change) in changes.enumerated() {
                let range = change.range
                guard !range.isEmpty else { continue }
                let sectors = (range.lowerBound / Self.sectorSize)...((range.upperBound - 1) / Self.sectorSize)
                switch change {
                case .bytes:
                    for sector in sectors { histories[sector, default: []].append(index) }
                case .zeros:
                    for sector in Array(histories.keys) where sectors.contains(sector) {
                        histories[sector]?.append(index)
                    }
                }
            }
            return histories
        }

        private static func bytes(in range: Range<Int>, of blocks: [Int: [UInt8]]) -> [UInt8] {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(range.count)
            var place = range.lowerBound
            while place < range.upperBound {
                let start = place % blockSize
                let count = min(blockSize - start, range.upperBound - place)
                bytes += (blocks[place / blockSize] ?? zeros)[start..<(start + count)]
                place += count
            }
            return bytes
        }

        private static func put(_ bytes: ByteChunk, at offset: Int, in blocks: inout [Int: [UInt8]]) {
            bytes.withUnsafeBytes { source in
                var done = 0
                while done < source.count {
                    let start = (offset + done) % blockSize
                    let count = min(blockSize - start, source.count - done)
                    blocks[(offset + done) / blockSize, default: zeros].withUnsafeMutableBytes { block in
                        let target = UnsafeMutableRawBufferPointer(rebasing: block[start..<(start + count)])
                        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[done..<(done + count)]))
                    }
                    done += count
                }
            }
        }

        private static func cut(_ blocks: inout [Int: [UInt8]], to size: Int) {
            let whole = (size + blockSize - 1) / blockSize
            for block in Array(blocks.keys) where block >= whole { blocks[block] = nil }
            guard size % blockSize > 0, blocks[size / blockSize] != nil else { return }
            put(ByteChunk(Array(zeros.dropFirst(size % blockSize))), at: size, in: &blocks)
        }
    }
}
