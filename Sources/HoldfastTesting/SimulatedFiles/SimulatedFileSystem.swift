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
}
