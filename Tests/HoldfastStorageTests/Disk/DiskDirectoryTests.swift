// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@Suite("DiskStore: the directory", .timeLimit(.minutes(20)))
struct DiskDirectoryTests {
    private static func open(_ files: any FileSystem, _ directory: String = "/store") async throws -> DiskStore {
        try await DiskStore.open(directory: directory, capacity: 1 << 20, fileSystem: files, now: .at(0))
    }

    @Test("A second opener is told who holds the directory")
    func locked() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let first = try await Self.open(POSIXFileSystem(), directory.path)
        do {
            _ = try await Self.open(POSIXFileSystem(), directory.path)
            Issue.record("opened twice")
        } catch let error as StoreError {
            #expect(error.code == .locked)
            #expect(error.message.contains("\(ProcessInfo.processInfo.processIdentifier)"))
        }
        await first.close()
        let second = try await Self.open(POSIXFileSystem(), directory.path)
        await second.close()
    }

    @Test("Links, files and directories writable by others are refused, and so are invalid paths and capacities")
    func unsafeDirectories() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory.path
        let manager = FileManager.default
        try manager.createDirectory(atPath: path + "/real", withIntermediateDirectories: false)
        try manager.createSymbolicLink(atPath: path + "/link", withDestinationPath: path + "/real")
        try directory.write([], to: "file")
        for name in ["/link", "/link/", "/file"] {
            let code = await errorCode { _ = try await Self.open(POSIXFileSystem(), path + name) }
            #expect(code == .unsafeDirectory, "\(name)")
        }
        for mode in [0o777, 0o720, 0o702] {
            try manager.setAttributes([.posixPermissions: mode], ofItemAtPath: path + "/real")
            let code = await errorCode { _ = try await Self.open(POSIXFileSystem(), path + "/real") }
            #expect(code == .unsafeDirectory, "\(mode)")
        }
        #expect(try manager.contentsOfDirectory(atPath: path + "/real").isEmpty)
        for directory in ["relative", "", path + "/x\0y"] {
            let code = await errorCode { _ = try await Self.open(POSIXFileSystem(), directory) }
            #expect(code == .badConfiguration)
        }
        let code = await errorCode {
            _ = try await DiskStore.open(directory: path, capacity: DiskStore.minimumCapacity - 1, now: .at(0))
        }
        #expect(code == .badConfiguration)
    }

    @Test("A foreign owner of the directory or of files in it is refused", arguments: ["", "/segments", "/blobs"])
    func foreignOwner(part: String) async throws {
        let files = SimulatedFileSystem()
        let first = try await Self.open(files)
        await first.close()
        #expect(files.setAttributes(of: "/store" + part, isOwn: false))
        #expect(await errorCode { _ = try await Self.open(files) } == .unsafeDirectory)
        #expect(files.setAttributes(of: "/store" + part, permissions: 0o722, isOwn: true))
        #expect(await errorCode { _ = try await Self.open(files) } == .unsafeDirectory)
        #expect(files.setAttributes(of: "/store" + part, permissions: 0o755))
        await (try Self.open(files)).close()
    }

    @Test("Directories get mode 0700, files 0600, and no name reveals a key")
    func modes() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let root = directory.path + "/store"
        let store = try await Self.open(POSIXFileSystem(), root)
        try await store.put("secretname", variant: "secretvariant", [UInt8](repeating: 1, count: 100_000))
        let files = POSIXFileSystem()
        for path in [root, root + "/segments", root + "/blobs"] {
            #expect(try files.attributes(of: path).permissions == 0o700)
        }
        for name in directory.files() {
            #expect(try files.attributes(of: directory.path + "/" + name).permissions == 0o600, "\(name)")
            #expect(!name.contains("secret"))
        }
        await store.close()
    }

    @Test("An unknown or damaged format is set aside and a new store made; foreign files stay", arguments: [8, 20])
    func unknownFormat(damaged place: Int) async throws {
        let files = SimulatedFileSystem()
        let first = try await Self.open(files)
        try await first.put("a", [1])
        await first.close()
        for copy in [0, 4_096] { #expect(files.flipBit(of: "/store/FORMAT", at: copy + place, bit: 2)) }
        #expect(files.setContents(of: "/store/segments/precious", to: [1]))
        #expect(files.setContents(of: "/store/letter", to: [1]))
        let second = try await Self.open(files)
        #expect(second.secret != first.secret)
        #expect(try await second.get("a").isEmpty)
        try await second.put("a", [2])
        await second.close()
        #expect(files.paths.filter { $0.hasSuffix("/segments/precious") }.count == 1, "\(files.paths)")
        #expect(files.paths.contains("/store/letter"))
        let third = try await Self.open(files)
        #expect(third.secret == second.secret)
        #expect(try await third.wholeBody(of: #require(try await third.get("a").first)) == [2])
        await third.close()
    }
}
