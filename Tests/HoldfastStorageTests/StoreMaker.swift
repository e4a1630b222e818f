// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage

/// A store under test and what it left on the disk.
struct StoreFixture: Sendable {
    let store: any CacheStore
    let directory: TemporaryDirectory?

    /// The bytes held, measured at the files themselves where there are files.
    func heldBytes() -> Int {
        directory?.blockBytes() ?? store.statistics.bytesUsed
    }
}

/// A way to make a store, so that one table of laws runs against each.
struct StoreMaker: Sendable, CustomStringConvertible {
    let description: String
    let make: @Sendable (Int) async throws -> StoreFixture

    /// Runs `body` with a fresh store, closes it and removes what it left.
    func with<Result>(
        capacity: Int = 4 << 20,
        _ body: (StoreFixture) async throws -> Result
    ) async throws -> Result {
        let fixture = try await make(capacity)
        defer { fixture.directory?.remove() }
        let result = try await body(fixture)
        await fixture.store.close()
        return result
    }

    static let memory = StoreMaker(description: "MemoryStore") { capacity in
        StoreFixture(store: MemoryStore(capacity: capacity), directory: nil)
    }

    static let disk = StoreMaker(description: "DiskStore") { capacity in
        let directory = try TemporaryDirectory()
        let store = try await DiskStore.open(directory: directory.path, capacity: capacity, now: .at(0))
        return StoreFixture(store: store, directory: directory)
    }

    static let all = [memory, disk]
}

/// A directory of its own under the system's place for temporary files.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        let base = FileManager.default.temporaryDirectory.path
        path = base + "/holdfast-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Paths of all regular files beneath, relative, sorted.
    func files() -> [String] {
        guard let walk = FileManager.default.enumerator(atPath: path) else { return [] }
        return walk.compactMap { $0 as? String }.filter { isFile($0) }.sorted()
    }

    private func isFile(_ name: String) -> Bool {
        var isDirectory: ObjCBool = false
        return FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory)
            && !isDirectory.boolValue
    }

    /// The sizes of all files, each rounded up to blocks of 4 KiB.
    func blockBytes() -> Int {
        files().reduce(0) { sum, name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: path + "/" + name)
            let size = (attributes?[.size] as? NSNumber)?.intValue ?? 0
            return sum + (size + 4_095) / 4_096 * 4_096
        }
    }

    func bytes(of name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path + "/" + name)))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path + "/" + name))
    }
}
