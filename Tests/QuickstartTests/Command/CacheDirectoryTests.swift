// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastCommand
import HoldfastStorage
import Testing

@testable import Quickstart

@Suite("The directory of the disk cache", .timeLimit(.minutes(20)))
struct CacheDirectoryTests {
    @Test("A temporary directory is private and removed with its contents")
    func temporary() throws {
        let directory = try CacheDirectory(in: nil)
        #expect(directory.isTemporary)
        let mode = try FileManager.default.attributesOfItem(atPath: directory.path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        try Data("x".utf8).write(to: URL(fileURLWithPath: directory.path).appendingPathComponent("file"))
        directory.removeIfTemporary()
        #expect(!FileManager.default.fileExists(atPath: directory.path))
    }

    @Test("In a given directory a subdirectory is created and kept, and nothing else is touched")
    func named() throws {
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        try Data("mine".utf8).write(to: scratch.url.appendingPathComponent("other"))
        let directory = try CacheDirectory(in: scratch.url.path)
        directory.removeIfTemporary()
        #expect(try scratch.contents() == ["holdfast-quickstart", "other"])
        #expect(directory.path == scratch.url.appendingPathComponent("holdfast-quickstart").path)
    }

    @Test("A path through a file is refused in one line that names it, with status 1")
    func unusable() throws {
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let file = scratch.url.appendingPathComponent("file")
        try Data("x".utf8).write(to: file)
        let failure = try #require(throws: CommandFailure.self) { try CacheDirectory(in: file.path) }
        #expect(failure.exitStatus == 1)
        #expect(failure.description.contains(file.path))
        #expect(failure.description.contains("Not a directory"))
        #expect(failure.description.contains("--directory"))
    }

    @Test("A store that another process holds is refused with status 1")
    func locked() async throws {
        let scratch = try ScratchDirectory()
        defer { scratch.remove() }
        let directory = try CacheDirectory(in: scratch.url.path)
        let store = try await directory.openStore(capacity: 1 << 20, clock: InstantClock())
        let failure = await #expect(throws: CommandFailure.self) {
            _ = try await directory.openStore(capacity: 1 << 20, clock: InstantClock())
        }
        #expect(failure?.exitStatus == 1)
        #expect(failure?.description.contains(directory.path) == true)
        await store.close()
    }
}
