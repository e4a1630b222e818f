// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage
internal import Synchronization

extension SimulatedFileSystem {
    /// A fault at a chosen step.
    ///
    /// Steps are counted from 0 at the call of ``SimulatedFileSystem/plan(_:)``; a fault that is limited by ``only(_:)`` counts
    /// only the steps of those operations.
    public struct Fault: Sendable {
        enum Effect: Sendable {
            case refuse(Int32)
            case tear(Int32, keeping: Int?)
            case stopAfter
            case stopWithin
        }

        let steps: Range<Int>
        let effect: Effect
        var operations: Set<String>?

        /// One step fails with this number and has no effect.
        public static func once(at step: Int, errno: Int32) -> Fault {
            Fault(steps: only(step), effect: .refuse(errno))
        }

        /// Every step from this one on fails with this number.
        public static func always(from step: Int = 0, errno: Int32) -> Fault {
            Fault(steps: max(0, step)..<Int.max, effect: .refuse(errno))
        }

        /// These steps fail with this number.
        public static func during(_ steps: Range<Int>, errno: Int32) -> Fault {
            Fault(steps: steps, effect: .refuse(errno))
        }

        /// One step fails with this number; if it writes, a prefix of its bytes is written.
        ///
        /// - Parameters:
        ///   - step: which one, from 0.
        ///   - errno: the number of the failure.
        ///   - count: bytes of the prefix; nil: half of the bytes.
        public static func shortWrite(at step: Int, errno: Int32, keeping count: Int? = nil) -> Fault {
            Fault(steps: only(step), effect: .tear(errno, keeping: count))
        }

        /// This step succeeds, and the file system stops before the next one: all later calls throw `EIO` and have no effect.
        public static func stop(after step: Int) -> Fault { Fault(steps: only(step), effect: .stopAfter) }

        /// The file system stops in this step: if the step writes, half of its bytes are written; otherwise it has no effect.
        public static func stop(within step: Int) -> Fault { Fault(steps: only(step), effect: .stopWithin) }

        private static func only(_ step: Int) -> Range<Int> {
            step < 0 || step == .max ? 0..<0 : step..<(step + 1)
        }

        /// The same fault, for these operations only, named like the methods of `FileSystem`; `"write"` means both kinds.
        public func only(_ operations: String...) -> Fault {
            var fault = self
            fault.operations = Set(operations)
            return fault
        }
    }

    /// A step that succeeded or failed.
    public struct Step: Sendable, Hashable, CustomStringConvertible {
        /// The number, from 0 since the file system was made; plans do not reset it.
        public let number: Int
        /// The name of the `FileSystem` method.
        public let operation: String
        /// The path; for an open file, the path that it was opened by.
        public let path: String
        /// Where in the file, for reads and writes.
        public let offset: Int
        /// How many bytes were requested, for reads and writes; the size for `truncate` and `allocate`.
        public let count: Int
        /// The number that it failed with; nil: it succeeded.
        public let errno: Int32?

        public var description: String {
            "\(number) \(operation) \(path) \(offset)+\(count)" + (errno.map { " errno \($0)" } ?? "")
        }
    }

    /// Which reads that must not wait succeed; see ``SimulatedFileSystem/cachedReads``.
    package struct CachedReads: Sendable {
        let pattern: [Bool]

        /// All.
        package static let all = CachedReads(pattern: [true])
        /// None.
        package static let none = CachedReads(pattern: [false])

        /// By this pattern, repeated; true succeeds. With an empty one none succeeds.
        package static func pattern(_ pattern: [Bool]) -> CachedReads {
            CachedReads(pattern: pattern.isEmpty ? [false] : pattern)
        }
    }

    /// What is planned, and what was done.
    struct Script: Sendable {
        private struct Planned: Sendable {
            let fault: Fault
            var seen = 0
        }

        /// How a step continues.
        struct Verdict: Sendable {
            /// The number that it fails with.
            var errno: Int32?
            /// Bytes that a failed write still writes: nil for none, else up to this many, or half of them for `.max`.
            var keeping: Int?
            var stopsAfter = false
        }

        /// The error of a stopped file system.
        static let stoppedNumber: Int32 = 5
        /// The log keeps at least this many of the newest steps.
        static let logLimit = 100_000

        private var planned: [Planned] = []
        var isStopped = false
        var stepsSincePlan = 0
        var stepsEver = 0
        var log: [Step] = []
        private(set) var cachedReads = CachedReads.all
        private var cachedReadCount = 0

        mutating func plan(_ faults: [Fault]) {
            planned = faults.map { Planned(fault: $0) }
            stepsSincePlan = 0
        }

        /// Counts a step and decides its result; the first matching fault of the plan applies.
        mutating func decide(_ operation: String) -> Verdict {
            if isStopped { return Verdict(errno: Self.stoppedNumber) }
            stepsSincePlan += 1
            var verdict: Verdict?
            for index in planned.indices where planned[index].fault.operations?.contains(operation) ?? true {
                let number = planned[index].seen
                planned[index].seen += 1
                guard verdict == nil, planned[index].fault.steps.contains(number) else { continue }
                switch planned[index].fault.effect {
                case .refuse(let errno): verdict = Verdict(errno: errno)
                case .tear(let errno, let keeping): verdict = Verdict(errno: errno, keeping: keeping ?? .max)
                case .stopAfter: verdict = Verdict(stopsAfter: true)
                case .stopWithin: verdict = Verdict(errno: Self.stoppedNumber, keeping: .max, stopsAfter: true)
                }
            }
            return verdict ?? Verdict()
        }

        mutating func note(_ operation: String, path: String, offset: Int, count: Int, errno: Int32?) {
            if log.count >= 2 * Self.logLimit { log.removeFirst(Self.logLimit) }
            log.append(
                Step(number: stepsEver, operation: operation, path: path, offset: offset, count: count, errno: errno)
            )
            stepsEver += 1
        }

        mutating func set(_ cachedReads: CachedReads) {
            self.cachedReads = cachedReads
            cachedReadCount = 0
        }

        mutating func isNextReadCached() -> Bool {
            defer { cachedReadCount &+= 1 }
            return cachedReads.pattern[cachedReadCount % cachedReads.pattern.count]
        }
    }
}

// Changes that a test makes to the files without their user's knowledge: no steps, no faults, and no limit of space. They count as
// synced.
extension SimulatedFileSystem {
    /// The bytes of a file; nil if there is none.
    public func contents(of path: String) -> [UInt8]? {
        world.state.withLock { state in
            guard let number = try? state.tree.node(at: Tree.Route(path)), let node = state.tree.nodes[number],
                node.kind == .file
            else { return nil }
            return node.content.read(from: 0, count: node.content.size)
        }
    }

    /// Replaces the bytes of a file, or makes a file in an existing directory.
    ///
    /// - Returns: false if there is no such directory, or if the name belongs to something other than a file.
    @discardableResult
    package func setContents(of path: String, to bytes: [UInt8]) -> Bool {
        damage(path, makes: true) { content in
            content.resize(to: 0)
            content.write(ByteChunk(bytes), at: 0)
        }
    }

    /// Flips one bit of a file.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - offset: the byte, from 0; one outside the file changes nothing.
    ///   - bit: 0 (lowest) to 7.
    /// - Returns: false if there is no such file or no such byte.
    @discardableResult
    package func flipBit(of path: String, at offset: Int, bit: Int = 0) -> Bool {
        var isThere = false
        let isFile = damage(path) { content in
            guard offset >= 0, let byte = content.read(from: offset, count: 1).first else { return }
            content.write(ByteChunk([byte ^ (1 << UInt8(truncatingIfNeeded: bit & 7))]), at: offset)
            isThere = true
        }
        return isFile && isThere
    }

    /// Cuts or extends a file.
    ///
    /// - Returns: false if there is no such file.
    @discardableResult
    package func setSize(of path: String, to size: Int) -> Bool {
        damage(path) { $0.resize(to: min(max(0, size), Content.sizeLimit)) }
    }

    /// Removes a file, or a directory with all of its contents, as a person might while the files are in use.
    ///
    /// - Returns: false if nothing has the name.
    @discardableResult
    package func wipe(_ path: String) -> Bool {
        world.state.withLock { state in
            guard let number = try? state.tree.node(at: Tree.Route(path)), number != Tree.root else { return false }
            return state.tree.wipe(path, number: number)
        }
    }

    /// Makes a symbolic link: `attributes(of:)` reports it as `.other`, and it cannot be opened (`ELOOP`).
    ///
    /// - Returns: false if the name is taken or its directory does not exist.
    @discardableResult
    package func makeLink(_ path: String) -> Bool {
        world.state.withLock { state in (try? state.tree.make(.other, at: Tree.Route(path))) != nil }
    }

    /// Changes permissions or ownership; both are reported but not enforced.
    ///
    /// - Returns: false if nothing has the name.
    @discardableResult
    package func setAttributes(of path: String, permissions: UInt32? = nil, isOwn: Bool? = nil) -> Bool {
        world.state.withLock { state in
            guard let number = try? state.tree.node(at: Tree.Route(path)) else { return false }
            if let permissions { state.tree.nodes[number]?.permissions = permissions & 0o7777 }
            if let isOwn { state.tree.nodes[number]?.isOwn = isOwn }
            return true
        }
    }

    /// The paths of all files, sorted.
    public var paths: [String] {
        world.state.withLock { state in
            var paths: [String] = []
            var waiting = [(path: "", node: Tree.root)]
            while let (path, number) = waiting.popLast() {
                guard let node = state.tree.nodes[number] else { continue }
                if node.kind == .directory {
                    waiting += node.names.map { (path + "/" + $0.key, $0.value) }
                } else {
                    paths.append(path)
                }
            }
            return paths.sorted()
        }
    }

    private func damage(_ path: String, makes: Bool = false, by change: (inout Content) -> Void) -> Bool {
        world.state.withLock { state in
            if makes, (try? state.tree.node(at: Tree.Route(path))) == nil {
                _ = try? state.tree.make(.file, at: Tree.Route(path))
            }
            guard let number = try? state.tree.node(at: Tree.Route(path)), state.tree.nodes[number]?.kind == .file
            else {
                return false
            }
            let outcome: Void? = try? state.tree.update(number) { content in
                change(&content)
                content.sync()
            }
            return outcome != nil
        }
    }
}

extension SimulatedFileSystem.Tree {
    fileprivate mutating func wipe(_ path: String, number: Int) -> Bool {
        let names = nodes[number]?.names ?? [:]
        for (name, child) in names { _ = wipe(path + "/" + name, number: child) }
        return (try? remove(Route(path), isDirectory: nodes[number]?.kind == .directory)) != nil
    }
}
