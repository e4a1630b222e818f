// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage

extension SimulatedFileSystem {
    /// Names, files and open files, without injected faults; errors are system error numbers.
    struct Tree: Sendable {
        struct Refusal: Error {
            let errno: Int32

            init(_ errno: Int32) { self.errno = errno }
        }

        struct Node: Sendable {
            let kind: FileAttributes.Kind
            var permissions: UInt32
            var isOwn = true
            var content: Content
            var names: [String: Int] = [:]
            var syncedNames: [String: Int] = [:]
            /// Whether a name refers to it now.
            var isNamed = true
            var openCount = 0
            var lockHolder: Int32?
        }

        /// A name in a directory, and the node that it refers or referred to.
        struct Entry: Sendable {
            let directory: Int
            let name: String
            let node: Int
        }

        /// A change of names since the directories were synced; both halves are applied, or neither.
        struct NameChange: Sendable {
            var removed: Entry?
            var added: Entry?
        }

        struct Open: Sendable {
            let node: Int
            let path: String
            let mayWrite: Bool
        }

        /// A path from a directory to a name below it.
        struct Route: Sendable, Hashable {
            let start: Int
            let names: [String]

            init(_ path: String, from start: Int = Tree.root) {
                self.start = start
                names = path.split(separator: "/").map(String.init).filter { $0 != "." }
            }

            private init(start: Int, names: [String]) {
                self.start = start
                self.names = names
            }

            var parent: Route { Route(start: start, names: names.dropLast()) }
        }

        static let root = 0

        var nodes: [Int: Node] = [:]
        var open: [Int32: Open] = [:]
        var nameChanges: [NameChange] = []
        var capacity: Int?
        var usedBlocks = 0
        var peakBlocks = 0
        let isRecorded: Bool
        private var nextNode = 1
        private var nextDescriptor: Int32 = 3

        init(capacity: Int?, isRecorded: Bool) {
            self.capacity = capacity
            self.isRecorded = isRecorded
            nodes[Self.root] = Node(kind: .directory, permissions: 0o755, content: Content(isRecorded: false))
        }

        /// Blocks that are still free.
        var freeBlocks: Int { capacity.map { max(0, $0 - usedBlocks) } ?? .max }

        // MARK: Names

        /// The node of a path.
        func node(at route: Route) throws(Refusal) -> Int {
            var node = route.start
            for name in route.names {
                // A held directory may have been removed.
                guard let directory = nodes[node] else { throw Refusal(ENOENT) }
                guard directory.kind == .directory else { throw Refusal(ENOTDIR) }
                guard let next = directory.names[name] else { throw Refusal(ENOENT) }
                node = next
            }
            return node
        }

        /// The directory that contains the last part of a path, and that part.
        func place(of route: Route) throws(Refusal) -> (directory: Int, name: String) {
            guard let name = route.names.last else { throw Refusal(EINVAL) }
            let number = try node(at: route.parent)
            guard let directory = nodes[number] else { throw Refusal(ENOENT) }
            guard directory.kind == .directory else { throw Refusal(ENOTDIR) }
            // Nothing can be made in a removed directory.
            guard directory.isNamed else { throw Refusal(ENOENT) }
            return (number, name)
        }

        /// Makes a node where there is none.
        @discardableResult
        mutating func make(_ kind: FileAttributes.Kind, at route: Route) throws(Refusal) -> Int {
            let place = try place(of: route)
            guard nodes[place.directory]?.names[place.name] == nil else { throw Refusal(EEXIST) }
            let number = nextNode
            nextNode += 1
            nodes[number] = Node(
                kind: kind,
                permissions: kind == .directory ? 0o700 : 0o600,
                content: Content(isRecorded: isRecorded)
            )
            change(NameChange(added: Entry(directory: place.directory, name: place.name, node: number)))
            return number
        }

        mutating func remove(_ route: Route, isDirectory: Bool) throws(Refusal) {
            let place = try place(of: route)
            guard let number = nodes[place.directory]?.names[place.name], let node = nodes[number] else {
                throw Refusal(ENOENT)
            }
            if isDirectory {
                guard node.kind == .directory else { throw Refusal(ENOTDIR) }
                guard node.names.isEmpty else { throw Refusal(ENOTEMPTY) }
            } else if node.kind == .directory {
                throw Refusal(EISDIR)
            }
            change(NameChange(removed: Entry(directory: place.directory, name: place.name, node: number)))
            unname(number)
        }

        mutating func rename(_ route: Route, to newRoute: Route) throws(Refusal) {
            let old = try place(of: route)
            let new = try place(of: newRoute)
            guard let number = nodes[old.directory]?.names[old.name] else { throw Refusal(ENOENT) }
            let replaced = nodes[new.directory]?.names[new.name]
            if replaced == number { return }
            if let replaced, let target = nodes[replaced] {
                if target.kind == .directory {
                    guard nodes[number]?.kind == .directory else { throw Refusal(EISDIR) }
                    guard target.names.isEmpty else { throw Refusal(ENOTEMPTY) }
                } else if nodes[number]?.kind == .directory {
                    throw Refusal(ENOTDIR)
                }
            }
            if route.start == newRoute.start, newRoute.names.starts(with: route.names) { throw Refusal(EINVAL) }
            change(
                NameChange(
                    removed: Entry(directory: old.directory, name: old.name, node: number),
                    added: Entry(directory: new.directory, name: new.name, node: number)
                )
            )
            if let replaced { unname(replaced) }
        }

        mutating func syncDirectory(_ route: Route) throws(Refusal) {
            let number = try node(at: route)
            guard nodes[number] != nil else { throw Refusal(ENOENT) }
            guard nodes[number]?.kind == .directory else { throw Refusal(ENOTDIR) }
            guard isRecorded else { return }
            var later: [NameChange] = []
            for change in nameChanges {
                if change.removed?.directory == number || change.added?.directory == number {
                    apply(change, to: \.syncedNames)
                } else {
                    later.append(change)
                }
            }
            nameChanges = later
            // Whatever the order in which other directories were synced, the device now has the current names of this one.
            let names = nodes[number]?.names ?? [:]
            nodes[number]?.syncedNames = names
            collect()
        }

        private mutating func change(_ change: NameChange) {
            apply(change, to: \.names)
            if isRecorded { nameChanges.append(change) }
        }

        mutating func apply(_ change: NameChange, to names: WritableKeyPath<Node, [String: Int]>) {
            if let gone = change.removed, nodes[gone.directory]?[keyPath: names][gone.name] == gone.node {
                nodes[gone.directory]?[keyPath: names][gone.name] = nil
            }
            if let new = change.added { nodes[new.directory]?[keyPath: names][new.name] = new.node }
        }

        // MARK: Lifetime of files

        private mutating func unname(_ number: Int) {
            nodes[number]?.isNamed = false
            release(number)
        }

        /// Frees the blocks of a file that has no name and is not open.
        private mutating func release(_ number: Int) {
            guard let node = nodes[number], !node.isNamed, node.openCount == 0 else { return }
            usedBlocks -= node.content.blockCount
            // For simulated power losses, keep an unlinked file: it may return with its name.
            if !isRecorded { nodes[number] = nil }
        }

        /// Removes nodes that no name refers to any more, on the device either.
        private mutating func collect() {
            var named: Set<Int> = [Self.root]
            for node in nodes.values { named.formUnion(node.syncedNames.values) }
            for change in nameChanges {
                if let entry = change.removed { named.insert(entry.node) }
                if let entry = change.added { named.insert(entry.node) }
            }
            nodes = nodes.filter { $0.value.isNamed || $0.value.openCount > 0 || named.contains($0.key) }
        }

        mutating func openFile(_ path: String, route: Route, access: FileAccess) throws(Refusal) -> Int32 {
            let place = try place(of: route)
            let number: Int
            if let present = nodes[place.directory]?.names[place.name] {
                if access == .create { throw Refusal(EEXIST) }
                switch nodes[present]?.kind {
                case .other: throw Refusal(ELOOP)
                case .directory where access != .read: throw Refusal(EISDIR)
                default: number = present
                }
            } else if access == .read || access == .write {
                throw Refusal(ENOENT)
            } else {
                number = try make(.file, at: route)
            }
            let descriptor = nextDescriptor
            nextDescriptor += 1
            nodes[number]?.openCount += 1
            open[descriptor] = Open(node: number, path: path, mayWrite: access != .read)
            return descriptor
        }

        mutating func close(_ descriptor: Int32) {
            guard let file = open.removeValue(forKey: descriptor) else { return }
            if nodes[file.node]?.lockHolder == descriptor { nodes[file.node]?.lockHolder = nil }
            nodes[file.node]?.openCount -= 1
            release(file.node)
        }

        mutating func lock(_ descriptor: Int32) throws(Refusal) -> Bool {
            guard let file = open[descriptor] else { throw Refusal(EBADF) }
            let holder = nodes[file.node]?.lockHolder
            guard holder == nil || holder == descriptor else { return false }
            nodes[file.node]?.lockHolder = descriptor
            return true
        }

        /// Changes the content of a file and counts its blocks.
        mutating func update<Result>(_ node: Int, by body: (inout Content) -> Result) throws(Refusal) -> Result {
            guard var content = nodes[node]?.content else { throw Refusal(EBADF) }
            // Taken out, so that the change is made in place and copies nothing.
            nodes[node]?.content = Content(isRecorded: false)
            let before = content.blockCount
            let result = body(&content)
            usedBlocks += content.blockCount - before
            peakBlocks = max(peakBlocks, usedBlocks)
            nodes[node]?.content = content
            return result
        }

        /// The node of an open file, if it may be used this way.
        func node(of descriptor: Int32, toWrite: Bool) throws(Refusal) -> Int {
            guard let file = open[descriptor], !toWrite || file.mayWrite else { throw Refusal(EBADF) }
            guard nodes[file.node]?.kind == .file else { throw Refusal(EISDIR) }
            return file.node
        }
    }
}

extension SimulatedFileSystem {
    /// The bytes of one file: as they are read, and as they are certainly on the device.
    struct Content: Sendable {
        static let blockSize = 4_096
        /// What a device writes completely or not at all.
        static let sectorSize = 512
        /// The largest size of a file.
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

        init(isRecorded: Bool) { self.isRecorded = isRecorded }

        /// Blocks that the file occupies; holes occupy none.
        var blockCount: Int { blocks.count }

        /// The part of `range` that fits into `free` more blocks, from its start.
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

        /// Reserves the blocks of all bytes before `end`.
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

        /// The content after a power loss: each sector after any number of its changes, from none to all.
        ///
        /// In half of the files, all sectors have the same result, since such losses are the common ones.
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
            // Zeros matter only where there were other bytes: a truncation may cover a vast hole.
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
