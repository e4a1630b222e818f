// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastStorage
import Synchronization

/// The machine's files, with a fault at a chosen step.
final class FaultyFileSystem: FileSystem {
    /// What goes wrong.
    enum Fault: Sendable {
        /// Nothing; steps are only counted.
        case none
        /// One step is refused with this number.
        case once(Int, errno: Int32)
        /// One step is refused; if it writes, half of the bytes are written.
        case torn(Int, errno: Int32)
        /// From this step on nothing has any effect, as if the process had died; a write in that moment is torn.
        case crash(Int)
        /// These steps are refused.
        case range(Range<Int>, errno: Int32)
    }

    private struct State {
        var steps = 0
        var fault: Fault
    }

    private let real = POSIXFileSystem()
    private let state: Mutex<State>

    init(_ fault: Fault = .none) {
        state = Mutex(State(fault: fault))
    }

    /// How many steps were taken so far.
    var steps: Int { state.withLock { $0.steps } }

    /// Plans another fault, counted from now.
    func plan(_ fault: Fault) {
        state.withLock { $0 = State(fault: fault) }
    }

    /// Counts a step: the number to refuse it with, and whether a write should be torn.
    private func step() -> (errno: Int32, tears: Bool)? {
        state.withLock { state in
            defer { state.steps += 1 }
            switch state.fault {
            case .none: return nil
            case .once(let place, let errno): return state.steps == place ? (errno, false) : nil
            case .torn(let place, let errno): return state.steps == place ? (errno, true) : nil
            case .crash(let place): return state.steps >= place ? (5, state.steps == place) : nil
            case .range(let range, let errno): return range.contains(state.steps) ? (errno, false) : nil
            }
        }
    }

    private func check(_ operation: String, _ path: String) throws(FileSystemError) {
        if let fault = step() { throw FileSystemError(operation: operation, path: path, errno: fault.errno) }
    }

    func createDirectory(_ path: String) throws(FileSystemError) {
        try check("createDirectory", path)
        try real.createDirectory(path)
    }

    func attributes(of path: String) throws(FileSystemError) -> FileAttributes {
        try check("attributes", path)
        return try real.attributes(of: path)
    }

    func list(_ path: String) throws(FileSystemError) -> [String] {
        try check("list", path)
        return try real.list(path)
    }

    func open(_ path: String, _ access: FileAccess) throws(FileSystemError) -> OpenFile {
        try check("open", path)
        return try real.open(path, access)
    }

    func size(of file: OpenFile) throws(FileSystemError) -> Int {
        try check("size", "file")
        return try real.size(of: file)
    }

    func read(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8] {
        try check("read", "file")
        return try real.read(file, from: offset, count: count)
    }

    func write(_ bytes: ByteChunk, to file: OpenFile, at offset: Int) throws(FileSystemError) {
        if let fault = step() {
            if fault.tears { try real.write(bytes[0..<(bytes.count / 2)], to: file, at: offset) }
            throw FileSystemError(operation: "write", path: "file", errno: fault.errno)
        }
        try real.write(bytes, to: file, at: offset)
    }

    func write(
        _ head: ByteChunk,
        _ body: ByteChunk,
        to file: OpenFile,
        at offset: Int
    ) throws(FileSystemError) {
        try write(ByteChunk(head.array + body.array), to: file, at: offset)
    }

    func readIfCached(_ file: OpenFile, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        try check("readIfCached", "file")
        return try real.readIfCached(file, from: offset, count: count)
    }

    func sync(_ file: OpenFile) throws(FileSystemError) {
        try check("sync", "file")
        try real.sync(file)
    }

    func syncDirectory(_ path: String) throws(FileSystemError) {
        try check("syncDirectory", path)
        try real.syncDirectory(path)
    }

    func allocate(_ file: OpenFile, size: Int) throws(FileSystemError) {
        try check("allocate", "file")
        try real.allocate(file, size: size)
    }

    func truncate(_ file: OpenFile, to size: Int) throws(FileSystemError) {
        try check("truncate", "file")
        try real.truncate(file, to: size)
    }

    func close(_ file: OpenFile) {
        real.close(file)
    }

    func rename(_ path: String, to newPath: String) throws(FileSystemError) {
        try check("rename", path)
        try real.rename(path, to: newPath)
    }

    func remove(_ path: String) throws(FileSystemError) {
        try check("remove", path)
        try real.remove(path)
    }

    func removeDirectory(_ path: String) throws(FileSystemError) {
        try check("removeDirectory", path)
        try real.removeDirectory(path)
    }

    func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try check("lock", "file")
        return try real.lock(file)
    }

    var bootIdentity: [UInt8] { real.bootIdentity }
}
