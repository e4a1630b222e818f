// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension SimulatedFileSystem {
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
