// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Testing

@testable import CrashChild

/// Promises 2 and 3 of the store, on devices that are small.
@Suite("A store on a small device", .timeLimit(.minutes(20)), .serialized)
struct FullDeviceTests {
    enum Kind: String, CaseIterable, Sendable {
        case real
        case simulated

        func device(size: Int) throws -> SmallDevice {
            let device = try self == .real ? SmallDevice.real(size: size) : .simulated(size: size)
            print("Full device tests, \(rawValue): \(device.name)")
            return device
        }
    }

    private func open(_ device: SmallDevice, capacity: Int) async throws -> DiskStore {
        let now = StoreInstant(milliseconds: 0)
        let (directory, files) = (device.root + "/store", device.files)
        return try await DiskStore.open(directory: directory, capacity: capacity, fileSystem: files, now: now)
    }

    /// - Returns: the code of the error, nil when the put was acknowledged.
    private func put(
        _ store: DiskStore,
        _ identity: CrashIdentity,
        _ stamp: CrashStamp,
        now: StoreInstant
    ) async -> StoreError.Code? {
        do throws(StoreError) {
            let writer = try await store.write(
                identity.storeKey,
                variant: identity.storeVariant,
                description: stamp.entryDescription,
                expectedLength: nil,
                now: now
            )
            try await writer.append(ByteChunk(stamp.body(of: identity)))
            try await writer.commit(nil, now: now)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("A gathered write that the device cuts short leaves a prefix and reports ENOSPC", arguments: Kind.allCases)
    func gathered(_ kind: Kind) throws {
        let device = try kind.device(size: 256 << 10)
        defer { device.remove() }
        let files = device.files
        let file = try files.open(device.root + "/f", .create)
        defer { files.close(file) }
        let identity = CrashIdentity.all[0]
        let all = ByteChunk(CrashStamp(put: 1, length: 400_000, tags: []).body(of: identity))
        let error = #expect(throws: FileSystemError.self) {
            try files.write(all[0..<10_000], all[10_000..<all.count], to: file, at: 100)
        }
        #expect(error?.errno == ENOSPC)
        let left = try files.read(file, from: 100, count: all.count)
        #expect(left.count > 100_000 && left == Array(all.array.prefix(left.count)), "\(left.count) on \(device.name)")
    }

    @Test(
        "The bytes on the device never exceed the capacity, with writers, reclaim and open bodies",
        arguments: Kind.allCases
    )
    func bound(_ kind: Kind) async throws {
        let capacity = 2 << 20
        let device = try kind.device(size: 16 << 20)
        defer { device.remove() }
        let store = try await open(device, capacity: capacity)
        let seed: UInt64 = .random(in: 0 ..< .max)
        var generator = SeededGenerator(seed: seed)
        var held: [any StoredBody] = []
        var (peak, acknowledged) = (0, 0)
        for number in 1...300 as ClosedRange<UInt64> {
            let identity = CrashIdentity.all[Int.random(in: 0..<CrashIdentity.all.count, using: &generator)]
            let length = Int.random(in: 0..<(number % 10 == 0 ? 400_000 : 20_000), using: &generator)
            let now = StoreInstant(milliseconds: Int64(number))
            let code = await put(store, identity, CrashStamp(put: number, length: length, tags: []), now: now)
            if code == nil { acknowledged += 1 }
            #expect(code == nil || code == .noSpace || code == .tooLarge, "seed \(seed) step \(number)")
            if let entry = try await store.entries(for: identity.storeKey, now: now).first, number % 7 == 0 {
                // Bodies that a slow reader holds open count as well, also when their entries have left.
                if let body = try? await store.body(of: entry) { held.append(body) }
                if held.count > 4 { held.removeFirst() }
            }
            peak = max(peak, device.usedBytes())
        }
        if case .simulated(let files) = device { peak = max(peak, files.peakBytes) }
        #expect(peak <= capacity, "seed \(seed): \(peak) bytes on \(device.name)")
        #expect(acknowledged > 200, "seed \(seed): the store went on working")
        held = []
        await store.close()
    }

    #if os(Linux)
        /// A child process is born with copies of all descriptors and keeps them until it runs its program: a server that starts
        /// programs has such children at any time. The copies here are this process's own and are kept for as long.
        @Test("File descriptors that a child process inherited hold no space on the device")
        func inherited() async throws {
            let capacity = 2 << 20
            let device = try Kind.real.device(size: 16 << 20)
            defer { device.remove() }
            let store = try await open(device, capacity: capacity)
            var inherited = InheritedDescriptors(root: device.root)
            var peak = 0
            for number in 1...60 as ClosedRange<UInt64> {
                let identity = CrashIdentity.all[Int(number) % CrashIdentity.all.count]
                let now = StoreInstant(milliseconds: Int64(number))
                let length = number % 2 == 0 ? 300_000 : 9_000
                let code = await put(store, identity, CrashStamp(put: number, length: length, tags: []), now: now)
                #expect(code == nil || code == .noSpace, "step \(number)")
                if let entry = try await store.entries(for: identity.storeKey, now: now).first {
                    _ = try await store.body(of: entry).read(from: 0, upTo: 10)
                }
                inherited.take()
                peak = max(peak, device.usedBytes())
            }
            #expect(peak <= capacity, "\(peak) bytes on \(device.name)")
            inherited.close()
            await store.close()
        }
    #endif

    @Test("A full device loses nothing, reports .noSpace, and puts resume when there is room", arguments: Kind.allCases)
    func full(_ kind: Kind) async throws {
        let device = try kind.device(size: 6 << 20)
        defer { device.remove() }
        let store = try await open(device, capacity: 4 << 20)
        var known: [CrashIdentity: CrashStamp] = [:]
        for (number, identity) in CrashIdentity.all.prefix(10).enumerated() {
            let stamp = CrashStamp(put: UInt64(number) + 1, length: 5_000, tags: [])
            if await put(store, identity, stamp, now: StoreInstant(milliseconds: 0)) == nil { known[identity] = stamp }
        }
        #expect(known.count == 10)
        // Someone else fills the device to the last block.
        let filler = try device.files.open(device.root + "/filler", .create)
        var size = 0
        while (try? device.files.write(ByteChunk(Array(repeating: 1, count: 4_096)), to: filler, at: size)) != nil {
            size += 4_096
        }
        var codes: Set<StoreError.Code> = []
        var time: Int64 = 0
        for (number, identity) in CrashIdentity.all.enumerated() {
            // Past any rest that failures brought, by the caller's clock.
            time += 60_000
            let stamp = CrashStamp(put: 100 + UInt64(number), length: 300_000, tags: [])
            if let code = await put(store, identity, stamp, now: StoreInstant(milliseconds: time)) {
                codes.insert(code)
            } else {
                known[identity] = stamp
            }
        }
        #expect(
            codes.contains(.noSpace) && codes.isSubset(of: [.noSpace, .temporarilyUnavailable]),
            "\(codes) on \(device.name)"
        )
        time += 60_000
        try await check(store, known, now: StoreInstant(milliseconds: time))
        device.files.close(filler)
        try device.files.remove(device.root + "/filler")
        var tries = 0
        repeat {
            time += 60_000
            tries += 1
        } while await put(
            store,
            CrashIdentity.all[0],
            CrashStamp(put: 999, length: 30_000, tags: []),
            now: StoreInstant(milliseconds: time)
        ) != nil && tries < 100
        #expect(tries < 100, "puts resume on \(device.name)")
        known[CrashIdentity.all[0]] = CrashStamp(put: 999, length: 30_000, tags: [])
        await store.close()
        let again = try await open(device, capacity: 4 << 20)
        try await check(again, known, now: StoreInstant(milliseconds: 0))
        await again.close()
    }

    /// Nothing is there but what is known, and that whole; entries may have been evicted.
    private func check(_ store: DiskStore, _ known: [CrashIdentity: CrashStamp], now: StoreInstant) async throws {
        for line in await CrashSurvey.lines(of: store, now: now) {
            switch line {
            case .saw(let identity, let sight?): #expect(sight.stamp == known[identity])
            case .wrong(let text): Issue.record("\(text)")
            default: break
            }
        }
    }
}

#if os(Linux)
    /// Copies of the open descriptors of files below a directory, as a child process gets them.
    private struct InheritedDescriptors {
        let root: String
        private var copies: [Int32] = []
        private var files: Set<UInt> = []

        init(root: String) {
            self.root = root
        }

        /// Copies what is open now, a descriptor a file.
        mutating func take() {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
            for name in names {
                let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
                var status = stat()
                guard let link, link.hasPrefix(root), let descriptor = Int32(name), fstat(descriptor, &status) == 0,
                    files.insert(status.st_ino).inserted
                else { continue }
                let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
                if copy >= 0 { copies.append(copy) }
            }
        }

        func close() {
            for copy in copies { Glibc.close(copy) }
        }
    }
#endif
