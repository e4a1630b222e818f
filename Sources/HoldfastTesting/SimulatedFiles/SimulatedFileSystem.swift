// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastStorage
internal import Synchronization

/// A file system in memory, for tests of what uses one: it counts its steps, fails where it is told to, and crashes.
///
/// Files live as on a POSIX system: an open file keeps its bytes when its name goes, names change at once, locks belong to open
/// files. Only `/` is there at first. Numbers of open files are not used twice, so that a late use of a closed one is seen
/// (`EBADF`). Blocks of 4 KiB are counted for bytes that were written or allocated, holes and directories being free, and
/// unlinked files count while they are open.
///
/// Each call of a `FileSystem` method but `close` and `bootIdentity` is one step. ``plan(_:)`` says which fail; ``crashed(_:)``
/// gives the file system that the next process, or the next boot, finds. For a power loss all that was not synced is remembered;
/// tests that write without end and lose no power turn that off.
///
/// ```swift
/// let files = SimulatedFileSystem(capacity: 8 << 20)
/// let store = try await DiskStore.open(directory: "/cache", capacity: 4 << 20, fileSystem: files, now: now)
/// files.plan(.shortWrite(at: 3, errno: ENOSPC))
/// // use the store, then see what the next boot finds:
/// let next = files.crashed(.power(using: &generator))
/// ```
///
/// It may be used from any thread; each step is done as a whole. A step costs a lock and, for reads and writes, a copy.
public final class SimulatedFileSystem: FileSystem {
    struct State: Sendable {
        var tree: Tree
        var script = Script()
        var boot: UInt64 = 1
        var bootIdentity: [UInt8] = Array("simulated boot 1".utf8)
    }

    /// What a file system shares with those of which directories are held.
    final class World: Sendable {
        let state: Mutex<State>

        init(_ state: State) {
            self.state = Mutex(state)
        }
    }

    let world: World
    /// The directories that are held, the last one first.
    let held: [(path: String, node: Int)]

    /// An empty file system.
    ///
    /// - Parameters:
    ///   - capacity: bytes, of which the whole blocks of 4 KiB can be used; nil: no bound.
    ///   - remembersUnsynced: whether a power loss can be told; else all that is written counts as synced.
    public convenience init(capacity: Int? = nil, remembersUnsynced: Bool = true) {
        let blocks = capacity.map { max(0, $0) / Content.blockSize }
        self.init(State(tree: Tree(capacity: blocks, isRecorded: remembersUnsynced)))
    }

    private init(_ state: State) {
        world = World(state)
        held = []
    }

    /// The same files, with one more directory held.
    init(_ other: SimulatedFileSystem, holding path: String, node: Int) {
        world = other.world
        held = [(path, node)] + other.held
    }

    /// Where a path leads: from the innermost directory that is held, or from the root.
    func route(_ path: String) -> Tree.Route {
        for (directory, node) in held where path == directory || path.hasPrefix(directory + "/") {
            return Tree.Route(String(path.dropFirst(directory.count)), from: node)
        }
        return Tree.Route(path)
    }

    // MARK: What the test says

    /// Replaces the plan: what goes wrong from now on, steps being counted anew from 0. No fault: all is well again.
    ///
    /// Where several faults fit one step, the first decides. A stopped world stays stopped.
    public func plan(_ faults: Fault...) {
        world.state.withLock { $0.script.plan(faults) }
    }

    /// Stops the world here, if it has not stopped, and gives what comes after: with no fault planned and an empty log.
    ///
    /// May be called several times, so that one run is judged by many ends.
    public func crashed(_ crash: Crash) -> SimulatedFileSystem {
        var next = world.state.withLock { state in
            state.script.isStopped = true
            return state
        }
        next.script = Script()
        switch crash.form {
        case .process:
            next.tree = next.tree.afterKill()
        case .power(let seed):
            var generator = SeededGenerator(seed: seed)
            next.tree = next.tree.afterPowerLoss(using: &generator)
            next.boot += 1
            next.bootIdentity = Array("simulated boot \(next.boot)".utf8)
        }
        return SimulatedFileSystem(next)
    }

    /// Which calls of ``readIfCached(_:from:count:)`` are answered with bytes; all by default. Setting it begins the pattern anew.
    public var cachedReads: CachedReads {
        get { world.state.withLock { $0.script.cachedReads } }
        set { world.state.withLock { $0.script.set(newValue) } }
    }

    /// What the system says of its start; at most 64 bytes are told.
    public var bootIdentity: [UInt8] {
        get { world.state.withLock { $0.bootIdentity } }
        set { world.state.withLock { $0.bootIdentity = Array(newValue.prefix(64)) } }
    }

    /// Bytes in all, in whole blocks; nil: no bound. A bound below what is used refuses further blocks and takes none away.
    public var capacity: Int? {
        get { world.state.withLock { $0.tree.capacity.map { $0 * Content.blockSize } } }
        set { world.state.withLock { $0.tree.capacity = newValue.map { max(0, $0) / Content.blockSize } } }
    }

    // MARK: What the test sees

    /// Steps since the last call of ``plan(_:)``, or since the beginning.
    public var stepCount: Int { world.state.withLock { $0.script.stepsSincePlan } }

    /// The newest steps, oldest first: at least 100,000 where there were as many.
    public var log: [Step] { world.state.withLock { $0.script.log } }

    /// Whether the world has stopped.
    public var isStopped: Bool { world.state.withLock { $0.script.isStopped } }

    /// Bytes used now, in whole blocks, those of unlinked files that are open included.
    public var usedBytes: Int { world.state.withLock { $0.tree.usedBlocks * Content.blockSize } }

    /// The most bytes that were ever used at one instant.
    public var peakBytes: Int { world.state.withLock { $0.tree.peakBlocks * Content.blockSize } }

    /// How many files are open: what is left when all are done is a leak.
    public var openFileCount: Int { world.state.withLock { $0.tree.open.count } }

    // MARK: Steps

    /// Takes one step: counted, judged, done or refused, and noted.
    func step<Result: Sendable>(
        _ operation: String,
        _ path: String,
        at offset: Int = 0,
        count: Int = 0,
        torn: (inout Tree, Int) throws(Tree.Refusal) -> Void = { (_: inout Tree, _: Int) throws(Tree.Refusal) in },
        _ body: (inout State) throws(Tree.Refusal) -> Result
    ) throws(FileSystemError) -> Result {
        try world.state.withLock { state throws(FileSystemError) in
            let verdict = state.script.judge(operation)
            do throws(Tree.Refusal) {
                if let errno = verdict.errno {
                    // The prefix may itself meet a full device; the planned number is the one that is told.
                    if let most = verdict.keeping {
                        try? torn(&state.tree, most == .max ? count / 2 : min(most, count))
                    }
                    throw Tree.Refusal(errno)
                }
                let result = try body(&state)
                state.script.note(operation, path, offset, count, errno: nil)
                if verdict.stopsAfter { state.script.isStopped = true }
                return result
            } catch {
                state.script.note(operation, path, offset, count, errno: error.errno)
                if verdict.stopsAfter { state.script.isStopped = true }
                throw FileSystemError(operation: operation, path: path, errno: error.errno)
            }
        }
    }

    /// The path that an open file was opened by.
    func path(of file: OpenFile) -> String {
        world.state.withLock { $0.tree.open[file.descriptor]?.path } ?? "\(file.descriptor)"
    }

    /// How the world ends; see ``SimulatedFileSystem/crashed(_:)``.
    public struct Crash: Sendable {
        enum Form: Sendable {
            case process
            case power(seed: UInt64)
        }

        let form: Form

        /// The process is killed: all that was written is there, and the boot identity stays.
        public static let process = Crash(form: .process)

        /// Power is lost: what was synced is there, and of the rest anything or nothing.
        ///
        /// - Of the sectors (512 bytes) of a file each holds what any of the unsynced writes to it left, from none to the
        ///   last, and the size is the synced one, the latest or one between.
        /// - Each change of names since its directory was synced is kept or lost; a rename as a whole, and a name that
        ///   stood for an older file may stand for it again. What was in a directory whose own name is lost is lost with it.
        /// - The boot identity is a new one.
        ///
        /// - Parameter generator: one number is drawn from it, and all that follows depends on nothing else.
        public static func power(using generator: inout some RandomNumberGenerator) -> Crash {
            Crash(form: .power(seed: generator.next()))
        }
    }
}

// The calls of the port.
extension SimulatedFileSystem {
    public func holding(_ path: String) throws(FileSystemError) -> any FileSystem {
        let route = route(path)
        let node = try step("holding", path) { state throws(Tree.Refusal) in
            let node = try state.tree.node(at: route)
            guard state.tree.nodes[node]?.kind == .directory else { throw Tree.Refusal(ENOTDIR) }
            return node
        }
        return SimulatedFileSystem(self, holding: path, node: node)
    }

    public func isNamed(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try step("isNamed", self.path(of: file)) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: false)
            return state.tree.nodes[node]?.isNamed ?? false
        }
    }

    public func createDirectory(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("createDirectory", path) { state throws(Tree.Refusal) in
            _ = try state.tree.make(.directory, at: route)
        }
    }

    public func attributes(of path: String) throws(FileSystemError) -> FileAttributes {
        let route = route(path)
        return try step("attributes", path) { state throws(Tree.Refusal) in
            guard let node = state.tree.nodes[try state.tree.node(at: route)] else { throw Tree.Refusal(ENOENT) }
            return FileAttributes(
                kind: node.kind,
                size: node.content.size,
                permissions: node.permissions,
                isOwn: node.isOwn
            )
        }
    }

    public func list(_ path: String) throws(FileSystemError) -> [String] {
        let route = route(path)
        return try step("list", path) { state throws(Tree.Refusal) in
            guard let node = state.tree.nodes[try state.tree.node(at: route)] else { throw Tree.Refusal(ENOENT) }
            guard node.kind == .directory else { throw Tree.Refusal(ENOTDIR) }
            // Sorted, since a run must be the same each time.
            return node.names.keys.sorted()
        }
    }

    public func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile {
        let route = route(path)
        return try step("open", path) { state throws(Tree.Refusal) in
            OpenFile(descriptor: try state.tree.openFile(path, route, access))
        }
    }

    public func size(of file: OpenFile) throws(FileSystemError) -> Int {
        try step("size", path(of: file)) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: false)
            return state.tree.nodes[node]?.content.size ?? 0
        }
    }

    public func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8] {
        try step("read", path(of: file), at: offset, count: count) { state throws(Tree.Refusal) in
            try state.tree.read(file.descriptor, from: offset, count: count)
        }
    }

    public func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        try step("readIfCached", path(of: file), at: offset, count: count) { state throws(Tree.Refusal) in
            let bytes = try state.tree.read(file.descriptor, from: offset, count: count)
            return state.script.isNextReadCached() && bytes.count == max(0, count) ? bytes : nil
        }
    }

    public func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        try step(
            "write",
            path(of: file),
            at: offset,
            count: bytes.count,
            torn: { tree, most throws(Tree.Refusal) in
                try tree.write(bytes[0..<most], to: file.descriptor, at: offset)
            },
            { state throws(Tree.Refusal) in
                try state.tree.write(bytes, to: file.descriptor, at: offset)
            }
        )
    }

    public func write(
        _ head: ByteChunk,
        _ body: ByteChunk,
        to file: OpenFile,
        at offset: Int
    ) throws(FileSystemError) {
        // One step as it is one call, and so torn as a whole.
        var all: [UInt8] = []
        all.reserveCapacity(head.count + body.count)
        head.append(to: &all)
        body.append(to: &all)
        try write(ByteChunk(all), to: file, at: offset)
    }

    public func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError) {
        try step("truncate", path(of: file), count: size) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: true)
            guard size >= 0 else { throw Tree.Refusal(EINVAL) }
            guard size <= Content.sizeLimit else { throw Tree.Refusal(EFBIG) }
            try state.tree.update(node) { $0.resize(to: size) }
        }
    }

    public func allocate(_ file: OpenFile, size: Int) throws(FileSystemError) {
        try step("allocate", path(of: file), count: size) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: true)
            guard size <= Content.sizeLimit else { throw Tree.Refusal(EFBIG) }
            let free = state.tree.freeBlocks
            let isWhole = try state.tree.update(node) { content in
                let fitting = content.fitting(0..<max(0, size), free: free)
                content.reserve(to: fitting)
                return fitting >= size
            }
            if !isWhole { throw Tree.Refusal(ENOSPC) }
        }
    }

    public func sync(_ file: OpenFile) throws(FileSystemError) {
        try step("sync", path(of: file)) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: false)
            try state.tree.update(node) { $0.sync() }
        }
    }

    public func syncDirectory(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("syncDirectory", path) { state throws(Tree.Refusal) in try state.tree.syncDirectory(route) }
    }

    public func close(_ file: OpenFile) {
        world.state.withLock { state in
            // A process that is dead closes nothing more: what it had open stays so until the crash is told.
            if !state.script.isStopped { state.tree.close(file.descriptor) }
        }
    }

    public func rename(_ path: String, to newPath: String) throws(FileSystemError) {
        let (route, newRoute) = (route(path), route(newPath))
        try step("rename", path) { state throws(Tree.Refusal) in try state.tree.rename(route, to: newRoute) }
    }

    public func remove(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("remove", path) { state throws(Tree.Refusal) in
            try state.tree.remove(route, isDirectory: false)
        }
    }

    public func removeDirectory(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("removeDirectory", path) { state throws(Tree.Refusal) in
            try state.tree.remove(route, isDirectory: true)
        }
    }

    public func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try step("lock", path(of: file)) { state throws(Tree.Refusal) in
            try state.tree.lock(file.descriptor)
        }
    }
}

extension SimulatedFileSystem.Tree {
    fileprivate func read(_ descriptor: Int32, from offset: Int, count: Int) throws(Refusal) -> [UInt8] {
        let node = try node(of: descriptor, toWrite: false)
        guard offset >= 0 else { throw Refusal(EINVAL) }
        return nodes[node]?.content.read(from: offset, count: max(0, count)) ?? []
    }

    /// Writes what there is room for, and refuses if that is not all.
    fileprivate mutating func write(_ bytes: ByteChunk, to descriptor: Int32, at offset: Int) throws(Refusal) {
        let node = try node(of: descriptor, toWrite: true)
        guard offset >= 0 else { throw Refusal(EINVAL) }
        guard offset <= SimulatedFileSystem.Content.sizeLimit - bytes.count else { throw Refusal(EFBIG) }
        let free = freeBlocks
        let written = try update(node) { content in
            let fitting = content.fitting(offset..<(offset + bytes.count), free: free)
            content.write(bytes[0..<fitting], at: offset)
            return fitting
        }
        if written < bytes.count { throw Refusal(ENOSPC) }
    }
}

extension SimulatedFileSystem.Tree {
    /// What the next process finds: no file is open and none locked.
    func afterKill() -> SimulatedFileSystem.Tree {
        var tree = self
        for descriptor in open.keys { tree.close(descriptor) }
        tree.peakBlocks = tree.usedBlocks
        return tree
    }

    /// What the next boot finds.
    func afterPowerLoss(using generator: inout some RandomNumberGenerator) -> SimulatedFileSystem.Tree {
        guard isRecorded else { return afterKill() }
        var tree = afterKill()
        for (number, node) in tree.nodes { tree.nodes[number]?.names = node.syncedNames }
        for change in nameChanges where Bool.random(using: &generator) {
            // A file has one name: where a change between two kept ones is lost, the later name is the one.
            if let moved = change.added?.node { tree.dropNames(of: moved) }
            tree.apply(change, to: \.names)
        }
        tree.settle(using: &generator)
        return tree
    }

    private mutating func dropNames(of number: Int) {
        for (directory, node) in nodes where node.names.values.contains(number) {
            nodes[directory]?.names = node.names.filter { $0.value != number }
        }
    }

    /// Keeps what can be reached from the root, and takes the names and bytes of now for synced ones.
    private mutating func settle(using generator: inout some RandomNumberGenerator) {
        var reached: Set<Int> = []
        var waiting = [Self.root]
        while let number = waiting.popLast() {
            if !reached.insert(number).inserted { continue }
            waiting += (nodes[number]?.names.values).map(Array.init) ?? []
        }
        nodes = nodes.filter { reached.contains($0.key) }
        nameChanges = []
        usedBlocks = 0
        for number in nodes.keys.sorted() {
            guard var node = nodes[number] else { continue }
            node.syncedNames = node.names
            node.isNamed = true
            node.content = node.content.afterPowerLoss(using: &generator)
            usedBlocks += node.content.blockCount
            nodes[number] = node
        }
        peakBlocks = usedBlocks
    }
}
