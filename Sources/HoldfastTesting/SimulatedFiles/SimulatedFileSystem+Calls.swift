// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
public import HoldfastStorage
internal import Synchronization

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
