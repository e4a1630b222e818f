// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastStorage
internal import Synchronization

// What a test does to the files behind the back of whoever uses them: no steps, no faults, and no room is asked for. What is
// changed so counts as synced.
extension SimulatedFileSystem {
    /// The bytes of a file; nil where none is.
    public func contents(of path: String) -> [UInt8]? {
        world.state.withLock { state in
            guard let number = try? state.tree.node(at: Tree.Route(path)), let node = state.tree.nodes[number],
                node.kind == .file
            else { return nil }
            return node.content.read(from: 0, count: node.content.size)
        }
    }

    /// Replaces the bytes of a file that is there, or makes one in a directory that is.
    ///
    /// - Returns: false when there is no such directory, or something that is no file bears the name.
    @discardableResult
    public func setContents(of path: String, to bytes: [UInt8]) -> Bool {
        damage(path, makes: true) { content in
            content.resize(to: 0)
            content.write(ByteChunk(bytes), at: 0)
        }
    }

    /// Turns one bit of a file round.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - offset: the byte, from 0; one outside the file changes nothing.
    ///   - bit: 0 (lowest) to 7.
    /// - Returns: false when there is no such file or no such byte.
    @discardableResult
    public func flipBit(of path: String, at offset: Int, bit: Int = 0) -> Bool {
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
    /// - Returns: false when there is no such file.
    @discardableResult
    public func setSize(of path: String, to size: Int) -> Bool {
        damage(path) { $0.resize(to: min(max(0, size), Content.sizeLimit)) }
    }

    /// Removes a file, or a directory with all that is in it, as a person might while the files are in use.
    ///
    /// - Returns: false when nothing bears the name.
    @discardableResult
    public func wipe(_ path: String) -> Bool {
        world.state.withLock { state in
            guard let number = try? state.tree.node(at: Tree.Route(path)), number != Tree.root else { return false }
            return state.tree.wipe(path, number)
        }
    }

    /// Makes a symbolic link: `attributes(of:)` calls it `.other`, and it cannot be opened (`ELOOP`).
    ///
    /// - Returns: false when something bears the name or its directory is not there.
    @discardableResult
    public func makeLink(_ path: String) -> Bool {
        world.state.withLock { state in (try? state.tree.make(.other, at: Tree.Route(path))) != nil }
    }

    /// Gives what bears the name other permissions or another owner; both are told and not enforced.
    ///
    /// - Returns: false when nothing bears the name.
    @discardableResult
    public func setAttributes(of path: String, permissions: UInt32? = nil, isOwn: Bool? = nil) -> Bool {
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

    private func damage(_ path: String, makes: Bool = false, _ change: (inout Content) -> Void) -> Bool {
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
    fileprivate mutating func wipe(_ path: String, _ number: Int) -> Bool {
        let names = nodes[number]?.names ?? [:]
        for (name, child) in names { _ = wipe(path + "/" + name, child) }
        return (try? remove(Route(path), isDirectory: nodes[number]?.kind == .directory)) != nil
    }
}
