// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastStorage
internal import Synchronization

/// A file system in memory for tests: it counts its steps, fails where it is told to, and crashes.
///
/// Files behave as on a POSIX system: an open file keeps its bytes when its name is removed, renames are atomic, and locks belong
/// to open files. At first there is only `/`. Numbers of open files are never reused, so that use after closing is detected
/// (`EBADF`). Space is counted in blocks of 4 KiB for written or allocated bytes; holes and directories are free, and unlinked
/// files count while they are open.
///
/// Each call of a `FileSystem` method except `close` and `bootIdentity` is one step. ``plan(_:)`` says which steps fail;
/// ``crashed(_:)`` returns the file system that the next process, or the next boot, finds. To simulate a power loss it remembers
/// all unsynced changes; turn that off in tests that write without end and do not lose power.
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

    /// The state that a file system shares with the copies of it that hold directories.
    final class World: Sendable {
        let state: Mutex<State>

        init(_ state: State) { self.state = Mutex(state) }
    }

    let world: World
    /// The held directories, the latest first.
    let held: [(path: String, node: Int)]

    /// An empty file system.
    ///
    /// - Parameters:
    ///   - capacity: bytes, of which the whole blocks of 4 KiB can be used; nil: no limit.
    ///   - remembersUnsynced: whether a power loss can be simulated; otherwise everything written counts as synced.
    public convenience init(capacity: Int? = nil, remembersUnsynced: Bool = true) {
        let blocks = capacity.map { max(0, $0) / Content.blockSize }
        self.init(State(tree: Tree(capacity: blocks, isRecorded: remembersUnsynced)))
    }

    private init(_ state: State) {
        world = World(state)
        held = []
    }

    /// The same files, with one more held directory.
    init(_ other: SimulatedFileSystem, holding path: String, node: Int) {
        world = other.world
        held = [(path, node)] + other.held
    }

    /// The route of a path: from the innermost held directory, or from the root.
    func route(_ path: String) -> Tree.Route {
        for (directory, node) in held where path == directory || path.hasPrefix(directory + "/") {
            return Tree.Route(String(path.dropFirst(directory.count)), from: node)
        }
        return Tree.Route(path)
    }

    // MARK: Controlling it

    /// Replaces the plan of faults and counts steps from 0 again. Without faults, all steps succeed.
    ///
    /// If several faults match one step, the first one applies. A stopped file system stays stopped.
    public func plan(_ faults: Fault...) { world.state.withLock { $0.script.plan(faults) } }

    /// Stops the file system, if it has not stopped yet, and returns its successor: with no planned faults and an empty log.
    ///
    /// You can call it several times, to examine several ends of one run.
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

    /// Which calls of ``readIfCached(_:from:count:)`` return bytes; all by default. Setting it restarts the pattern.
    package var cachedReads: CachedReads {
        get { world.state.withLock { $0.script.cachedReads } }
        set { world.state.withLock { $0.script.set(newValue) } }
    }

    /// The boot identity; at most 64 bytes are reported.
    public var bootIdentity: [UInt8] {
        get { world.state.withLock { $0.bootIdentity } }
        set { world.state.withLock { $0.bootIdentity = Array(newValue.prefix(64)) } }
    }

    /// Bytes in total, in whole blocks; nil: no limit. A limit below the current use refuses further blocks and removes none.
    public var capacity: Int? {
        get { world.state.withLock { $0.tree.capacity.map { $0 * Content.blockSize } } }
        set { world.state.withLock { $0.tree.capacity = newValue.map { max(0, $0) / Content.blockSize } } }
    }

    // MARK: Observing it

    /// Steps since the last call of ``plan(_:)``, or since the beginning.
    package var stepCount: Int { world.state.withLock { $0.script.stepsSincePlan } }

    /// The latest steps, oldest first: at least 100,000, if there were as many.
    public var log: [Step] { world.state.withLock { $0.script.log } }

    /// Whether the file system has stopped.
    package var isStopped: Bool { world.state.withLock { $0.script.isStopped } }

    /// Bytes used now, in whole blocks, including unlinked files that are open.
    package var usedBytes: Int { world.state.withLock { $0.tree.usedBlocks * Content.blockSize } }

    /// The most bytes ever used at one time.
    package var peakBytes: Int { world.state.withLock { $0.tree.peakBlocks * Content.blockSize } }

    /// How many files are open; files still open at the end are a leak.
    package var openFileCount: Int { world.state.withLock { $0.tree.open.count } }

    // MARK: Steps

    /// Runs one step: counts it, decides whether it fails, and logs it.
    func step<Result: Sendable>(
        _ operation: String,
        on path: String,
        at offset: Int = 0,
        count: Int = 0,
        torn: (inout Tree, Int) throws(Tree.Refusal) -> Void = { (_: inout Tree, _: Int) throws(Tree.Refusal) in },
        by body: (inout State) throws(Tree.Refusal) -> Result
    ) throws(FileSystemError) -> Result {
        try world.state.withLock { state throws(FileSystemError) in
            let verdict = state.script.decide(operation)
            do throws(Tree.Refusal) {
                if let errno = verdict.errno {
                    // Even the prefix may meet a full device; the planned number is reported.
                    if let most = verdict.keeping {
                        try? torn(&state.tree, most == .max ? count / 2 : min(most, count))
                    }
                    throw Tree.Refusal(errno)
                }
                let result = try body(&state)
                state.script.note(operation, path: path, offset: offset, count: count, errno: nil)
                if verdict.stopsAfter { state.script.isStopped = true }
                return result
            } catch {
                state.script.note(operation, path: path, offset: offset, count: count, errno: error.errno)
                if verdict.stopsAfter { state.script.isStopped = true }
                throw FileSystemError(operation: operation, path: path, errno: error.errno)
            }
        }
    }

    /// The path that an open file was opened by.
    func path(of file: OpenFile) -> String {
        world.state.withLock { $0.tree.open[file.descriptor]?.path } ?? "\(file.descriptor)"
    }

    /// How the run ends; see ``SimulatedFileSystem/crashed(_:)``.
    public struct Crash: Sendable {
        enum Form: Sendable {
            case process
            case power(seed: UInt64)
        }

        let form: Form

        /// The process is killed: everything written is there, and the boot identity stays.
        public static let process = Crash(form: .process)

        /// Power is lost: what was synced is there, and all, some or none of the rest.
        ///
        /// - Each sector (512 bytes) of a file contains the result of any number of its unsynced writes, from none to all. The size
        ///   is the synced one, the latest one, or one in between.
        /// - Each change of names since its directory was synced is kept or lost. A rename is kept or lost as a whole, and a name
        ///   that referred to an older file may refer to it again. If a directory's own name is lost, its contents are lost with
        ///   it.
        /// - The boot identity changes.
        ///
        /// - Parameter generator: one number is drawn from it, and everything else depends only on that number.
        public static func power(using generator: inout some RandomNumberGenerator) -> Crash {
            Crash(form: .power(seed: generator.next()))
        }
    }
}

// The calls of the port.
extension SimulatedFileSystem {
    public func holding(_ path: String) throws(FileSystemError) -> any FileSystem {
        let route = route(path)
        let node = try step("holding", on: path) { state throws(Tree.Refusal) in
            let node = try state.tree.node(at: route)
            guard state.tree.nodes[node]?.kind == .directory else { throw Tree.Refusal(ENOTDIR) }
            return node
        }
        return SimulatedFileSystem(self, holding: path, node: node)
    }

    public func isNamed(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try step("isNamed", on: self.path(of: file)) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: false)
            return state.tree.nodes[node]?.isNamed ?? false
        }
    }

    public func createDirectory(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("createDirectory", on: path) { state throws(Tree.Refusal) in
            _ = try state.tree.make(.directory, at: route)
        }
    }

    public func attributes(of path: String) throws(FileSystemError) -> FileAttributes {
        let route = route(path)
        return try step("attributes", on: path) { state throws(Tree.Refusal) in
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
        return try step("list", on: path) { state throws(Tree.Refusal) in
            guard let node = state.tree.nodes[try state.tree.node(at: route)] else { throw Tree.Refusal(ENOENT) }
            guard node.kind == .directory else { throw Tree.Refusal(ENOTDIR) }
            // Sorted, so that every run is the same.
            return node.names.keys.sorted()
        }
    }

    public func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile {
        let route = route(path)
        return try step("open", on: path) { state throws(Tree.Refusal) in
            OpenFile(descriptor: try state.tree.openFile(path, route: route, access: access))
        }
    }

    public func size(of file: OpenFile) throws(FileSystemError) -> Int {
        try step("size", on: path(of: file)) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: false)
            return state.tree.nodes[node]?.content.size ?? 0
        }
    }

    public func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8] {
        try step("read", on: path(of: file), at: offset, count: count) { state throws(Tree.Refusal) in
            try state.tree.read(file.descriptor, from: offset, count: count)
        }
    }

    public func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        try step("readIfCached", on: path(of: file), at: offset, count: count) { state throws(Tree.Refusal) in
            let bytes = try state.tree.read(file.descriptor, from: offset, count: count)
            return state.script.isNextReadCached() && bytes.count == max(0, count) ? bytes : nil
        }
    }

    public func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        try step(
            "write",
            on: path(of: file),
            at: offset,
            count: bytes.count,
            torn: { tree, most throws(Tree.Refusal) in
                try tree.write(bytes[0..<most], to: file.descriptor, at: offset)
            },
            by: { state throws(Tree.Refusal) in
                try state.tree.write(bytes, to: file.descriptor, at: offset)
            }
        )
    }

    public func write(_ head: ByteChunk, _ body: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        // One step because it is one call, so a torn write is torn as a whole.
        var all: [UInt8] = []
        all.reserveCapacity(head.count + body.count)
        head.append(to: &all)
        body.append(to: &all)
        try write(ByteChunk(all), to: file, at: offset)
    }

    public func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError) {
        try step("truncate", on: path(of: file), count: size) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: true)
            guard size >= 0 else { throw Tree.Refusal(EINVAL) }
            guard size <= Content.sizeLimit else { throw Tree.Refusal(EFBIG) }
            try state.tree.update(node) { $0.resize(to: size) }
        }
    }

    public func allocate(_ file: OpenFile, size: Int) throws(FileSystemError) {
        try step("allocate", on: path(of: file), count: size) { state throws(Tree.Refusal) in
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
        try step("sync", on: path(of: file)) { state throws(Tree.Refusal) in
            let node = try state.tree.node(of: file.descriptor, toWrite: false)
            try state.tree.update(node) { $0.sync() }
        }
    }

    public func syncDirectory(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("syncDirectory", on: path) { state throws(Tree.Refusal) in try state.tree.syncDirectory(route) }
    }

    public func close(_ file: OpenFile) {
        world.state.withLock { state in
            // A dead process closes nothing: what it had open stays open until the crash.
            if !state.script.isStopped { state.tree.close(file.descriptor) }
        }
    }

    public func rename(_ path: String, to newPath: String) throws(FileSystemError) {
        let (route, newRoute) = (route(path), route(newPath))
        try step("rename", on: path) { state throws(Tree.Refusal) in try state.tree.rename(route, to: newRoute) }
    }

    public func remove(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("remove", on: path) { state throws(Tree.Refusal) in
            try state.tree.remove(route, isDirectory: false)
        }
    }

    public func removeDirectory(_ path: String) throws(FileSystemError) {
        let route = route(path)
        try step("removeDirectory", on: path) { state throws(Tree.Refusal) in
            try state.tree.remove(route, isDirectory: true)
        }
    }

    public func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try step("lock", on: path(of: file)) { state throws(Tree.Refusal) in
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

    /// Writes as much as fits, and throws if that is not all.
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
    /// What the next process finds: no file is open or locked.
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
            // A file has one name: if a change between two kept ones is lost, the later name wins.
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

    /// Keeps what is reachable from the root, and takes the current names and bytes as synced.
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
