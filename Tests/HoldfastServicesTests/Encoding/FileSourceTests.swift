// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Dispatch
import Foundation
import Holdfast
import HoldfastStorage
import Testing

@testable import HoldfastServices

@Suite("FileSource", .timeLimit(.minutes(20)))
struct FileSourceTests {
    /// What may become of a file between two attempts, or while one reads it.
    enum Change: String, Sendable, CaseIterable {
        case vanishes, grows, shrinks, isRewritten, isReplaced, becomesFolder

        func apply(_ url: URL) throws {
            let manager = FileManager.default
            let content = try Data(contentsOf: url)
            switch self {
            case .vanishes: try manager.removeItem(at: url)
            case .grows: try write(content + [1], url)
            case .shrinks: try write(content.dropLast(), url)
            case .isRewritten: try write(Data(content.map { $0 ^ 1 }), url)
            case .isReplaced:
                let date = try manager.attributesOfItem(atPath: url.path)[.modificationDate]
                let other = url.appendingPathExtension("other")
                try Data(content.map { $0 ^ 1 }).write(to: other)
                // The old one stays elsewhere, so that its number is not given to the new one.
                try manager.moveItem(at: url, to: url.appendingPathExtension("old"))
                try manager.moveItem(at: other, to: url)
                try manager.setAttributes([.modificationDate: date ?? Date()], ofItemAtPath: url.path)
            case .becomesFolder:
                try manager.removeItem(at: url)
                try manager.createDirectory(at: url, withIntermediateDirectories: false)
            }
        }

        /// Writes into the file itself, at a later time than before.
        private func write(_ content: Data, _ url: URL) throws {
            let handle = try FileHandle(forWritingTo: url)
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: content)
            try handle.close()
            let later = Date(timeIntervalSinceNow: 60)
            try FileManager.default.setAttributes([.modificationDate: later], ofItemAtPath: url.path)
        }
    }

    private func all(_ source: FileSource) async throws -> [UInt8] {
        try await ResponseBody(source).collect().array
    }

    /// How many files of this process lie in a folder and are open; nil where the system does not tell.
    private func openFiles(in folder: TemporaryFolder) -> Int? {
        let numbers = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return numbers?.filter { number in
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
            return path?.hasPrefix(folder.url.path) ?? false
        }.count
    }

    @Test("All bytes are read, in chunks, and as often as needed", arguments: [0, 1, 262_144, 262_145, 700_000])
    func whole(size: Int) async throws {
        let folder = try TemporaryFolder()
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let snapshot = try FileSnapshot(of: try folder.file("a", bytes))
        #expect(snapshot.size == size)
        for _ in 0..<2 {
            let source = FileSource(snapshot)
            #expect(try await all(source) == bytes)
            #expect(try await source.next() == nil)
            #expect(openFiles(in: folder) ?? 0 == 0)
        }
    }

    @Test("A file behind a symbolic link is read")
    func link() async throws {
        let folder = try TemporaryFolder()
        let link = folder.url.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: try folder.file("a", [1, 2]))
        #expect(try await all(FileSource(try FileSnapshot(of: link))) == [1, 2])
    }

    @Test("A path that is not a file is refused when the request is built")
    func noFile() throws {
        let folder = try TemporaryFolder()
        let urls = [folder.url, folder.url.appendingPathComponent("none"), URL(string: "https://h.example/SECRET")]
        for url in urls {
            let error = try #require(throws: ServiceError.self) { try FileSnapshot(of: try #require(url)) }
            #expect(error.code == .badRequest)
            #expect(error.progress == .notSent)
        }
    }

    @Test("A file that was replaced is an error and does not give other content", arguments: Change.allCases)
    func changedBefore(change: Change) async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a", Array(repeating: 7, count: 1_000))
        let snapshot = try FileSnapshot(of: url)
        #expect(try await all(FileSource(snapshot)).count == 1_000)
        try change.apply(url)
        let error = await #expect(throws: ServiceError.self) { try await all(FileSource(snapshot)) }
        #expect(error?.code == .badRequest)
        #expect(error?.message.hasPrefix("The file a ") == true)
    }

    @Test("A file that changes while it is read is an error", arguments: [Change.grows, .shrinks, .isRewritten])
    func changedMeanwhile(change: Change) async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a", Array(repeating: 7, count: 600_000))
        let source = FileSource(try FileSnapshot(of: url))
        #expect(try await source.next()?.count == 262_144)
        try change.apply(url)
        let error = await #expect(throws: ServiceError.self) { try await all(source) }
        #expect(error?.code == .badRequest)
    }

    @Test("A change is noticed at once: before the first byte, and where bytes are missing")
    func noticedAtOnce() async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a", Array(repeating: 7, count: 900_000))
        let begun = FileSource(try FileSnapshot(of: url))
        let late = FileSource(try FileSnapshot(of: url))
        _ = try await begun.next()
        let handle = try FileHandle(forWritingTo: url)
        try handle.truncate(atOffset: 300_000)
        try handle.close()
        await #expect(throws: ServiceError.self) { try await begun.next() }
        await #expect(throws: ServiceError.self) { try await late.next() }
    }

    @Test("A file that is removed while it is read is still read completely, since it is open")
    func removedMeanwhile() async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a", Array(repeating: 7, count: 600_000))
        let source = FileSource(try FileSnapshot(of: url))
        let first = try await source.next()?.count ?? 0
        try Change.vanishes.apply(url)
        #expect(try await all(source).count + first == 600_000)
    }

    @Test("Cancelling or releasing a source closes its file")
    func closing() async throws {
        let folder = try TemporaryFolder()
        let snapshot = try FileSnapshot(of: try folder.file("a", Array(repeating: 7, count: 600_000)))
        let source = FileSource(snapshot)
        _ = try await source.next()
        #expect(openFiles(in: folder) ?? 1 == 1)
        source.cancel()
        source.cancel()
        #expect(openFiles(in: folder) ?? 0 == 0)
        await #expect(throws: CancellationError.self) { try await source.next() }
        do {
            let dropped = FileSource(snapshot)
            _ = try await dropped.next()
        }
        // The queue lets go of the source a moment after the chunk came.
        var tries = 0
        while openFiles(in: folder) ?? 0 != 0, tries < 1_000_000 {
            tries += 1
            await Task.yield()
        }
        #expect(openFiles(in: folder) ?? 0 == 0)
    }

    @Test("A cancelled task gets CancellationError")
    func cancelledTask() async throws {
        let folder = try TemporaryFolder()
        let source = FileSource(try FileSnapshot(of: try folder.file("a", [1])))
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            _ = try await source.next()
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    /// The outcomes of two reads at the same time, in the order in which they end.
    private func twoReads(of source: any ByteSource) async -> [Result<ByteChunk?, any Error>] {
        // All threads for files are taken, so no read of a file ends before both have begun.
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<4 { BlockingWork.enqueue { gate.wait() } }
        return await withTaskGroup(of: Result<ByteChunk?, any Error>.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    do {
                        return .success(try await source.next())
                    } catch {
                        return .failure(error)
                    }
                }
            }
            var outcomes: [Result<ByteChunk?, any Error>] = []
            while let outcome = await group.next() {
                if outcomes.isEmpty { for _ in 0..<4 { gate.signal() } }
                outcomes.append(outcome)
            }
            return outcomes
        }
    }

    @Test(
        "Of two readers at the same time the second is refused, and the first gets its bytes",
        arguments: [false, true]
    )
    func secondReader(isForm: Bool) async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a", Array(repeating: 7, count: 600_000))
        var source: any ByteSource = FileSource(try FileSnapshot(of: url))
        if isForm, case .factory(_, let make) = try HttpBody.multipart([.file("f", at: url)]).encode().content.form {
            source = try await make()
        }
        _ = try await source.next()
        let outcomes = await twoReads(of: source)
        let error = #expect(throws: ServiceError.self) { try outcomes[0].get() }
        #expect(error?.message == ServiceError.secondReader.message)
        #expect(try outcomes[1].get()?.count == 262_144)
    }

    @Test("Cancelling a form's stream closes its file, and ends a part's stream")
    func cancelledForm() async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a", Array(repeating: 7, count: 600_000))
        let chunks = Chunks(["a", "b"])
        for form in [[.file("f", at: url)], [.stream("s") { chunks }]] as [MultipartForm] {
            guard case .factory(_, let make) = try HttpBody.multipart(form).encode().content.form else { return }
            let source = try await make()
            _ = try await source.next()
            _ = try await source.next()
            source.cancel()
            await #expect(throws: CancellationError.self) { try await source.next() }
            #expect(openFiles(in: folder) ?? 0 == 0)
        }
        #expect(chunks.isCancelled)
    }
}
